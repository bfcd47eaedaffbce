#pragma once

#include <mpi.h>

#include <cstddef>

#include <hvd/types.h>

namespace hvd::bench {

// The ranks that mpirun has started, without hvd: made before it, gone after it.
class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void barrier() const;
  // Collective: each value replaced by its mean, or its greatest, over the ranks.
  void average(double* values, std::size_t count) const;
  double greatest(double value) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

// How MPI knows a dtype and its sum. Of float16 and bfloat16 it knows nothing: they are 16-bit words with an operation
// of ours that adds in float, as Horovod has it.
struct MpiSum {
  MPI_Datatype type;
  MPI_Op op;
};
MpiSum mpi_sum(DataType dtype);

}  // namespace hvd::bench
