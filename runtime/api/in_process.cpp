#include <hvd/in_process.h>

#include <fmt/format.h>

#include <hvd/error.h>
#include <mutex>
#include <vector>

#include "transport/in_process.h"

namespace hvd {

struct InProcessWorld::State {
  explicit State(int ranks) : size(ranks), hub(make_in_process_hub(ranks)), joined(static_cast<std::size_t>(ranks)) {}

  int size;
  std::shared_ptr<InProcessHub> hub;
  std::mutex mutex;
  std::vector<bool> joined;
};

InProcessWorld::InProcessWorld(int size) {
  if (size < 1) throw InvalidArgumentError(fmt::format("a world of {} ranks", size));
  state_ = std::make_shared<State>(size);
}

InProcessWorld::~InProcessWorld() = default;

std::unique_ptr<Runtime> InProcessWorld::join(int rank, const Config& config) {
  if (rank < 0 || rank >= state_->size) {
    throw InvalidArgumentError(fmt::format("join: rank {} is not in 0..{}", rank, state_->size - 1));
  }
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->joined[static_cast<std::size_t>(rank)])
      throw InvalidArgumentError(fmt::format("join: rank {} is taken", rank));
    state_->joined[static_cast<std::size_t>(rank)] = true;
  }
  const std::vector<int> hosts = config.test_topology.empty()
                                     ? std::vector<int>(static_cast<std::size_t>(state_->size), 0)
                                     : Topology::hosts_from_counts(config.test_topology, state_->size);
  return std::make_unique<Runtime>(make_in_process_transport(state_->hub, Topology(rank, hosts)), config);
}

}  // namespace hvd
