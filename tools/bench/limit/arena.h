#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "limit/flag.h"
#include "limit/shared_window.h"

namespace hvd::bench::limit {

// A float32 sum between processes of one host whose values lie in shared memory already: each rank reduces its share
// from all buffers and stores the sum into all of them. No copy at all.
class ArenaLimit {
 public:
  // Collective; throws as SharedWindow does. Room for `capacity` elements.
  ArenaLimit(MPI_Comm communicator, std::size_t capacity);

  // This rank's values.
  float* values() const { return values_of(rank_); }
  // Collective, in place; the count agrees on all ranks.
  void allreduce(std::size_t count);

 private:
  struct Control {
    Flag ready;
    Flag reduced;
  };
  Control& control(int rank) const { return *reinterpret_cast<Control*>(window_.part(rank)); }
  float* values_of(int rank) const { return reinterpret_cast<float*>(window_.part(rank) + sizeof(Control)); }

  int rank_ = 0;
  int size_ = 1;
  SharedWindow window_;
  std::uint64_t calls_ = 0;
  std::vector<const float*> sources_;
  std::vector<float*> destinations_;
};

}  // namespace hvd::bench::limit
