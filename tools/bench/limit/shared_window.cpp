#include "limit/shared_window.h"

#include <sys/statvfs.h>

#include <cstring>
#include <stdexcept>

namespace hvd::bench::limit {

namespace {

// Open MPI backs a window by a file there and does not look whether it fits: the program would die of SIGBUS.
bool fits(MPI_Comm communicator, std::size_t bytes) {
  struct statvfs space {};
  int good = 1;
  if (statvfs("/dev/shm", &space) == 0) good = space.f_bavail * space.f_frsize > bytes ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, communicator);
  return good != 0;
}

}  // namespace

SharedWindow::SharedWindow(MPI_Comm communicator, std::size_t bytes_per_rank) {
  int size = 0;
  int rank = 0;
  int neighbours = 0;
  MPI_Comm_size(communicator, &size);
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &neighbours);
  MPI_Comm_free(&host);
  MPI_Allreduce(MPI_IN_PLACE, &neighbours, 1, MPI_INT, MPI_MIN, communicator);
  if (neighbours != size) throw std::runtime_error("the ranks are on several hosts");
  if (!fits(communicator, bytes_per_rank * static_cast<std::size_t>(size))) {
    throw std::runtime_error("/dev/shm has not enough room");
  }

  constexpr std::size_t page = 4096;
  const std::size_t rounded = (bytes_per_rank + page - 1) / page * page;
  void* base = nullptr;
  MPI_Win_allocate_shared(static_cast<MPI_Aint>(rounded), 1, MPI_INFO_NULL, communicator, &base, &window_);
  for (int i = 0; i < size; ++i) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* part = nullptr;
    MPI_Win_shared_query(window_, i, &bytes, &unit, &part);
    parts_.push_back(static_cast<std::byte*>(part));
  }
  std::memset(part(rank), 0, rounded);
  MPI_Barrier(communicator);
}

SharedWindow::~SharedWindow() { MPI_Win_free(&window_); }

}  // namespace hvd::bench::limit
