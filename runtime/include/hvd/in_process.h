#pragma once

#include <memory>

#include <hvd/config.h>
#include <hvd/runtime.h>

namespace hvd {

// N ranks in one process, one thread each, without MPI: for tests of programs that use hvd.
//
//   hvd::InProcessWorld world(4);
//   for (int rank = 0; rank < 4; ++rank)
//     threads.emplace_back([&, rank] { auto runtime = world.join(rank); runtime->barrier(); });
class HVD_API InProcessWorld {
 public:
  explicit InProcessWorld(int size);
  ~InProcessWorld();
  InProcessWorld(const InProcessWorld&) = delete;
  InProcessWorld& operator=(const InProcessWorld&) = delete;

  // Called once for each rank, each in its own thread; returns when all ranks have joined. Throws InvalidArgumentError
  // when the rank is out of range or taken, StallError when the others do not come within config.start_timeout.
  std::unique_ptr<Runtime> join(int rank, const Config& config = {});

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hvd
