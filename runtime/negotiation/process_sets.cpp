#include "negotiation/process_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "negotiation/rank_groups.h"

namespace hvd {

ProcessSets::ProcessSets(int size, const std::vector<std::vector<int>>& sets) : size_(size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  sets_.emplace(0, Set{.ranks = std::move(all), .channel = 0});
  for (const auto& ranks : sets) add(ranks);
}

std::string ProcessSets::problem_with(const std::vector<int>& ranks) const {
  if (ranks.empty()) return "it has no ranks";
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size_) return fmt::format("rank {} is not in 0..{}", rank, size_ - 1);
  }
  if (const auto twice = std::ranges::adjacent_find(ranks); twice != ranks.end()) {
    return fmt::format("rank {} is in it twice", *twice);
  }
  for (const auto& [id, set] : sets_) {
    if (set.ranks == ranks) return fmt::format("process set {} has the same ranks", id);
  }
  if (sets_.size() == most_channels) return fmt::format("there are {} process sets already", most_channels);
  return {};
}

std::uint32_t ProcessSets::add(const std::vector<int>& ranks) {
  std::vector<bool> taken(most_channels, false);
  for (const auto& [id, set] : sets_) taken[set.channel] = true;
  // In turn: a rank that is slow may still have messages of a set that was removed lately.
  do {
    last_channel_ = (last_channel_ + 1) % most_channels;
  } while (taken[last_channel_]);
  sets_.emplace(next_, Set{.ranks = ranks, .channel = last_channel_});
  return next_++;
}

const ProcessSets::Set* ProcessSets::find(std::uint32_t id) const {
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : &found->second;
}

bool ProcessSets::contains(std::uint32_t outer, std::uint32_t inner) const {
  if (outer == inner || outer == 0) return true;
  const Set* large = find(outer);
  const Set* small = find(inner);
  return large != nullptr && small != nullptr && std::ranges::includes(large->ranks, small->ranks);
}

std::optional<std::size_t> position_in(const std::vector<int>& ranks, int rank) {
  const auto found = std::ranges::lower_bound(ranks, rank);
  if (found == ranks.end() || *found != rank) return std::nullopt;
  return static_cast<std::size_t>(found - ranks.begin());
}

}  // namespace hvd
