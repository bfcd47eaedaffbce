#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace hvd::bench::limit {

// Memory that all ranks of a communicator map, one part for each rank, on pages of its own and zeroed. Making and
// ending it is collective.
class SharedWindow {
 public:
  // Throws std::runtime_error, on all ranks, when the ranks do not share memory or there is not enough of it.
  SharedWindow(MPI_Comm communicator, std::size_t bytes_per_rank);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> parts_;
};

}  // namespace hvd::bench::limit
