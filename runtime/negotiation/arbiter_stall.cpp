#include <fmt/format.h>

#include <algorithm>

#include "negotiation/arbiter.h"
#include "negotiation/deadlock.h"
#include "negotiation/rank_groups.h"
#include "negotiation/titles.h"

namespace hvd {

namespace {

constexpr std::size_t most_told = 64;

Seconds limit_of(const Request& request, Seconds configured) {
  if (request.operation == Operation::join) return Seconds(request.timeout);
  if (request.timeout <= 0) return configured;
  return configured.count() <= 0 ? Seconds(request.timeout) : std::min(configured, Seconds(request.timeout));
}

}  // namespace

// When the operation has waited too long.
std::optional<TimePoint> Arbiter::expiry(const OperationState& state) const {
  const Seconds limit = limit_of(state.request(), options_.stall_shutdown);
  if (limit.count() <= 0 || limit >= countable) return std::nullopt;
  return after(state.since, limit);
}

void Arbiter::tick(TimePoint now) {
  has_news_ = true;
  if (stall_clock_.due(oldest(), now)) warnings_.push_back(describe_stall(all_waiting(), now));
  if (doomed_ && now >= doomed_->at) fail_doomed();
  if (next_expiry_ && now >= *next_expiry_) fail_overdue(now);
}

void Arbiter::fail_overdue(TimePoint now) {
  std::vector<std::uint32_t> overdue;
  next_expiry_.reset();
  for (const std::uint32_t id : waiting_) {
    const auto limit = expiry(ids_[id]);
    if (!limit) continue;
    if (now >= *limit) {
      overdue.push_back(id);
    } else {
      next_expiry_ = next_expiry_ ? std::min(*next_expiry_, *limit) : *limit;
    }
  }
  if (overdue.empty()) return;
  const std::string report = describe_stall(all_waiting(), now);
  for (const std::uint32_t id : overdue) {
    const OperationState& state = ids_[id];
    fail(id, ErrorCode::stalled,
         fmt::format("{}: stalled for {:.3g} s: submitted by {}, waits for {}. All that waits: {}", title(state),
                     Seconds(now - state.since).count(), format_ranks(state.ranks(true)),
                     format_ranks(state.ranks(false)), report));
  }
}

std::optional<TimePoint> Arbiter::deadline() const {
  std::optional<TimePoint> next = stall_clock_.deadline(oldest());
  for (const auto& other : {next_expiry_, doomed_ ? std::optional(doomed_->at) : std::nullopt}) {
    if (other) next = next ? std::min(*next, *other) : *other;
  }
  return next;
}

// Warned of at once, for the stall time is long. Not an error: a rank may have other threads, on which the others wait.
void Arbiter::look_for_deadlock(TimePoint now) {
  std::vector<WaitingTensor> operations;
  operations.reserve(blocked_.size());
  std::vector<BlockedRank> blocked;
  for (const auto& [rank, id] : blocked_) {
    operations.push_back(waiting(id));
    blocked.push_back({.rank = rank, .in = &operations.back()});
  }
  const auto circle = find_deadlock(blocked);
  if (circle.empty()) return;
  const std::string text = describe_deadlock(circle);
  if (told_deadlocks_.size() < most_told && told_deadlocks_.insert(text).second) {
    warnings_.push_back(fmt::format("these ranks wait for each other: {}", text));
  }
  const bool sets_differ = std::ranges::all_of(
      circle, [](const BlockedRank& b) { return b.in->request.operation == Operation::add_process_set; });
  if (!sets_differ || doomed_) return;
  doomed_.emplace(Doomed{.at = after(now, patience), .circle = {}});
  for (const BlockedRank& b : circle) doomed_->circle.emplace_back(b.rank, ids_.find(key_of(b.in->request)));
}

// Ranks that make unlike process sets, and nothing has changed about that. With them fail all who are at the same.
void Arbiter::fail_doomed() {
  const Doomed doomed = *std::exchange(doomed_, std::nullopt);
  if (!std::ranges::all_of(doomed.circle, [this](const auto& b) { return blocked_.contains(b); })) return;
  RankGroups groups;
  std::set<std::uint32_t> failing;
  for (const auto& [blocked_rank, id] : blocked_) {
    if (ids_[id].request().operation != Operation::add_process_set) continue;
    failing.insert(id);
    for (const int rank : ids_[id].ranks(true)) groups.add(rank, ids_[id].name);
  }
  const std::string text = fmt::format("add_process_set: ranks of the set differ: {}", groups.to_string());
  for (const std::uint32_t id : failing) fail(id, ErrorCode::mismatch, text);
}

WaitingTensor Arbiter::waiting(std::uint32_t id) const {
  const OperationState& state = ids_[id];
  std::vector<int> missing = state.ranks(false);
  std::erase_if(missing, [&](int rank) { return has_joined(rank, state.process_set); });
  return {.request = state.request(),
          .submitted_by = state.ranks(true),
          .waits_for = std::move(missing),
          .since = state.since};
}

// Oldest first. A join waits by its nature, and for as long as the others have data: joins come last.
std::vector<WaitingTensor> Arbiter::all_waiting() const {
  std::vector<WaitingTensor> result;
  for (const std::uint32_t id : waiting_) result.push_back(waiting(id));
  std::stable_partition(result.begin(), result.end(),
                        [](const auto& w) { return w.request.operation != Operation::join; });
  return result;
}

std::optional<TimePoint> Arbiter::oldest() const {
  for (const std::uint32_t id : waiting_) {
    if (ids_[id].request().operation != Operation::join) return ids_[id].since;
  }
  return std::nullopt;
}

}  // namespace hvd
