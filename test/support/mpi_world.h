#pragma once

#include <mpi.h>

namespace hvd::test {

inline int mpi_value(int (*query)(MPI_Comm, int*), MPI_Comm communicator) {
  int value = -1;
  query(communicator, &value);
  return value;
}

inline int world_size() { return mpi_value(MPI_Comm_size, MPI_COMM_WORLD); }
inline int world_rank() { return mpi_value(MPI_Comm_rank, MPI_COMM_WORLD); }

}  // namespace hvd::test
