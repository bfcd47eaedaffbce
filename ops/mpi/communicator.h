#pragma once

#include <mpi.h>

#include <utility>

#include "mpi/environment.h"

namespace hvd::mpi {

// Owns a communicator; errors come back as codes.
class Communicator {
 public:
  explicit Communicator(MPI_Comm handle) : handle_(handle) {
    check(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  Communicator(Communicator&& other) noexcept : handle_(other.release()) {}
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator() {
    if (handle_ != MPI_COMM_NULL && !finalized()) MPI_Comm_free(&handle_);
  }

  static Communicator duplicate(MPI_Comm original) {
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
    return Communicator(copy);
  }
  static Communicator split(const Communicator& original, int color) {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(original.get(), color, original.rank(), &part), "MPI_Comm_split");
    return Communicator(part);
  }
  static Communicator split_by_shared_memory(const Communicator& original) {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split_type(original.get(), MPI_COMM_TYPE_SHARED, original.rank(), MPI_INFO_NULL, &part),
          "MPI_Comm_split_type");
    return Communicator(part);
  }

  MPI_Comm get() const { return handle_; }
  MPI_Comm release() { return std::exchange(handle_, MPI_COMM_NULL); }
  int rank() const {
    int rank = 0;
    check(MPI_Comm_rank(handle_, &rank), "MPI_Comm_rank");
    return rank;
  }
  int size() const {
    int size = 0;
    check(MPI_Comm_size(handle_, &size), "MPI_Comm_size");
    return size;
  }

 private:
  MPI_Comm handle_;
};

}  // namespace hvd::mpi
