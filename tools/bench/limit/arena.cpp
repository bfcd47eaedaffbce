#include "limit/arena.h"

#include "limit/combine.h"
#include "limit/segments.h"

namespace hvd::bench::limit {

ArenaLimit::ArenaLimit(MPI_Comm communicator, std::size_t capacity)
    : window_(communicator, sizeof(Control) + capacity * sizeof(float)) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size_);
  sources_.resize(static_cast<std::size_t>(size_));
  destinations_.resize(static_cast<std::size_t>(size_));
}

void ArenaLimit::allreduce(std::size_t count) {
  ++calls_;
  publish(control(rank_).ready, calls_);
  for (int i = 0; i < size_; ++i) await(control(i).ready.value, calls_);
  const std::size_t begin = share(count, rank_, size_);
  for (int i = 0; i < size_; ++i) {
    sources_[static_cast<std::size_t>(i)] = values_of(i) + begin;
    destinations_[static_cast<std::size_t>(i)] = values_of(i) + begin;
  }
  combine(sources_, destinations_, share(count, rank_ + 1, size_) - begin, false);
  publish(control(rank_).reduced, calls_);
  for (int i = 0; i < size_; ++i) await(control(i).reduced.value, calls_);
}

}  // namespace hvd::bench::limit
