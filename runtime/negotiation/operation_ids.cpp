#include "negotiation/operation_ids.h"

#include <algorithm>
#include <utility>

#include "negotiation/process_sets.h"

namespace hvd {

bool OperationState::has_reported(int rank) const {
  const auto position = position_in(participants, rank);
  return position && reported[*position] != 0;
}

std::vector<int> OperationState::ranks(bool that_have_reported) const {
  std::vector<int> result;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    if ((reported[i] != 0) == that_have_reported) result.push_back(participants[i]);
  }
  return result;
}

const Request& OperationState::request() const {
  const auto first = std::ranges::find_if(reported, [](std::uint64_t print) { return print != 0; });
  return said.at(*first);
}

void OperationState::reset() {
  std::ranges::fill(reported, 0);
  count = 0;
  absent.clear();
  if (said.size() == 1) return;
  std::erase_if(said, [this](const auto& entry) { return std::ranges::count(last, entry.first) == 0; });
}

std::uint32_t OperationIds::find(const std::string& key) const {
  const auto found = id_of_.find(key);
  return found == id_of_.end() ? 0 : found->second;
}

std::uint32_t OperationIds::add(OperationState state) {
  auto id = static_cast<std::uint32_t>(states_.size());
  if (free_.empty()) {
    states_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  id_of_.emplace(state.key, id);
  states_[id] = std::move(state);
  end_use(id);
  return id;
}

void OperationIds::retire(std::uint32_t id) { retired_.push_back(id); }

void OperationIds::retire_set(std::uint32_t process_set) {
  for (const std::uint32_t id : idle_) {
    if (states_[id].process_set == process_set) retired_.push_back(id);
  }
}

void OperationIds::evict(std::uint32_t id, std::uint64_t plan, List<std::uint32_t>& evicted) {
  idle_.erase(id);
  id_of_.erase(states_[id].key);
  states_[id].evicted_by = plan;
  evicted.push_back(id);
  evicted_.push_back(id);
}

List<std::uint32_t> OperationIds::evict(std::uint64_t plan) {
  List<std::uint32_t> evicted;
  for (const std::uint32_t id : std::exchange(retired_, {})) {
    if (idle_.contains(id)) evict(id, plan, evicted);
  }
  if (id_of_.size() <= capacity_) return evicted;
  // An eighth at a time: each time costs a report of every rank.
  const std::size_t target = capacity_ - capacity_ / 8;
  while (id_of_.size() > target && !idle_.empty()) {
    evict(*idle_.begin(), plan, evicted);
  }
  return evicted;
}

void OperationIds::on_seen(int rank, std::uint64_t plan) {
  seen_[static_cast<std::size_t>(rank)] = plan;
  if (evicted_.empty()) return;
  const std::uint64_t all = *std::ranges::min_element(seen_);
  while (!evicted_.empty() && states_[evicted_.front()].evicted_by <= all) {
    states_[evicted_.front()] = {};
    free_.push_back(evicted_.front());
    evicted_.pop_front();
  }
}

}  // namespace hvd
