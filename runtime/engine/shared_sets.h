#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "negotiation/process_sets.h"

namespace hvd::detail {

// The process sets as user threads see them; changed by the thread that drives progress.
class SharedSets {
 public:
  explicit SharedSets(ProcessSets sets) : sets_(std::move(sets)) {}

  std::optional<std::vector<int>> ranks(std::uint32_t id) const {
    const std::scoped_lock lock(mutex_);
    const ProcessSets::Set* set = sets_.find(id);
    return set == nullptr ? std::nullopt : std::optional(set->ranks);
  }
  bool contains(std::uint32_t outer, std::uint32_t inner) const {
    const std::scoped_lock lock(mutex_);
    return sets_.contains(outer, inner);
  }
  std::string problem_with(const std::vector<int>& ranks) const {
    const std::scoped_lock lock(mutex_);
    return sets_.problem_with(ranks);
  }
  void insert(std::uint32_t id, ProcessSets::Set set) {
    const std::scoped_lock lock(mutex_);
    sets_.insert(id, std::move(set));
  }
  void remove(std::uint32_t id) {
    const std::scoped_lock lock(mutex_);
    sets_.remove(id);
  }

 private:
  mutable std::mutex mutex_;
  ProcessSets sets_;
};

}  // namespace hvd::detail
