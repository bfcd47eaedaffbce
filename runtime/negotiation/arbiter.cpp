#include "negotiation/arbiter.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

#include "negotiation/rank_groups.h"
#include "negotiation/report_checks.h"
#include "negotiation/titles.h"

namespace hvd {

namespace {

// By positions, in an alltoall or a scatter, of all tensors.
std::int64_t rows_sent(const OperationState& state, std::size_t from, std::size_t to) {
  if (state.reported[from] == 0 || state.extents[from].empty()) return 0;
  const std::size_t ranks = state.participants.size();
  std::int64_t rows = 0;
  if (state.request().operation == Operation::alltoall) {
    for (std::size_t at = to; at < state.extents[from].size(); at += ranks) rows += state.extents[from][at];
    return rows;
  }
  for (const ScatterLayout& layout : decode_scatter(state.extents[from], ranks)) rows += layout.splits[to];
  return rows;
}

}  // namespace

Arbiter::Arbiter(int size, const Options& options, ProcessSets sets)
    : options_(options),
      sets_(std::move(sets)),
      ids_(size, options.cache_capacity),
      stall_clock_(options.stall_warning),
      waited_for_(static_cast<std::size_t>(size)) {}

void Arbiter::accept(int rank, Report report, TimePoint now) {
  if (report.plans_seen >= next_plan_) {
    throw InternalError(fmt::format("rank {} has seen plan {}, which has not been made", rank, report.plans_seen));
  }
  has_news_ = true;
  for (Ready& ready : report.ready) on_ready(rank, ready, now);
  for (const Reference& reference : report.withdrawn) on_withdrawn(rank, reference);
  for (const Reference& reference : report.blocked) {
    const std::uint32_t id = find(reference);
    if (id != 0 && ids_[id].has_reported(rank) && waiting_.contains(id)) blocked_.emplace(rank, id);
  }
  if (!report.blocked.empty()) look_for_deadlock(now);
  ids_.on_seen(rank, report.plans_seen);
  if (report.leave) on_leave(rank, *report.leave);
}

void Arbiter::on_ready(int rank, Ready& ready, TimePoint now) {
  if (ready.request) check_described(rank, static_cast<int>(waited_for_.size()), ready);
  const std::uint32_t id = intern(rank, ready);
  OperationState& state = ids_[id];
  const auto position = position_in(state.participants, rank);
  if (!position) throw InternalError(fmt::format("rank {} takes no part in {}", rank, title(state)));
  auto& mine = state.reported[*position];
  if (mine != 0) throw InternalError(fmt::format("rank {} reported {} twice", rank, title(state)));
  if (ready.request) {
    state.said.insert_or_assign(ready.fingerprint, std::move(*ready.request));
  } else if (!state.said.contains(ready.fingerprint)) {
    throw InternalError(
        fmt::format("rank {} reported '{}' with a fingerprint that nobody explained", rank, state.name));
  }
  // Of a set that is no more, which the rank may not know yet, nobody looks at them: it fails below.
  if (sets_.find(state.process_set) != nullptr)
    check_extents(rank, state, state.said.at(ready.fingerprint), ready.extents);
  mine = state.last[*position] = ready.fingerprint;
  state.extents[*position] = std::move(ready.extents);
  if (state.count == 0) {
    ids_.start_use(id);
    state.since = state.lacks_one_since = now;
    waiting_.push_back(id);
    const auto limit = expiry(state);
    if (limit) next_expiry_ = next_expiry_ ? std::min(*next_expiry_, *limit) : *limit;
  }
  ++state.count;
  const Request& request = state.said.at(mine);
  const bool joins = request.operation == Operation::join;
  if (sets_.find(state.process_set) == nullptr) {
    fail(id, ErrorCode::invalid_argument, fmt::format("{}: the process set does not exist any more", title(state)));
    return;
  }
  if (joins) {  // what this decides comes before the end of all joins, if this is the last one
    joins_.emplace_back(rank, state.process_set);
    on_joined(rank, now);
    if (mine == 0) return;  // what it decided has failed the join
  }
  settle(id, rank, now);
}

std::uint32_t Arbiter::intern(int rank, Ready& ready) {
  if (ready.id == 0) {
    if (!ready.request) throw InternalError(fmt::format("rank {} reported an operation without id or request", rank));
    return add(*ready.request);
  }
  if (!ids_.valid(ready.id)) throw InternalError(fmt::format("rank {} reported unknown operation {}", rank, ready.id));
  const OperationState& state = ids_[ready.id];
  if (ready.request && key_of(*ready.request) != state.key) {
    throw InternalError(fmt::format("rank {} reported {} '{}' under the number of '{}'", rank,
                                    to_string(ready.request->operation), ready.request->name, state.name));
  }
  if (state.evicted_by == 0) return ready.id;
  // The rank did not know yet. What it meant is still written down here, and goes on under a number of its own.
  if (!ready.request) {
    const auto said = state.said.find(ready.fingerprint);
    if (said == state.said.end()) {
      throw InternalError(
          fmt::format("rank {} reported '{}' with a fingerprint that nobody explained", rank, state.name));
    }
    ready.request = said->second;
  }
  return add(*ready.request);
}

std::uint32_t Arbiter::add(const Request& request) {
  std::string key = key_of(request);
  if (const std::uint32_t known = ids_.find(key); known != 0) return known;
  std::vector<int> participants = sets_.find(0)->ranks;  // of a set that is no more: whoever has not heard of that
  if (request.operation == Operation::send_recv) {
    participants = {std::min(request.root, request.peer), std::max(request.root, request.peer)};
  } else if (const auto* set = sets_.find(request.process_set); set != nullptr) {
    participants = set->ranks;
  }
  OperationState state;
  state.key = std::move(key);
  state.name = request.name;
  state.process_set = request.process_set;
  state.reported.resize(participants.size());
  state.last.resize(participants.size());
  state.extents.resize(participants.size());
  state.participants = std::move(participants);
  return ids_.add(std::move(state));
}

std::uint32_t Arbiter::find(const Reference& reference) const {
  if (reference.id == 0) return ids_.find(reference.key);
  if (!ids_.valid(reference.id)) return 0;
  const OperationState& state = ids_[reference.id];
  return state.evicted_by == 0 ? reference.id : ids_.find(state.key);
}

void Arbiter::on_withdrawn(int rank, const Reference& reference) {
  const std::uint32_t id = find(reference);
  if (id == 0 || !ids_[id].has_reported(rank) || !waiting_.contains(id)) return;  // under way by now
  fail(id, {rank}, ErrorCode::cancelled, fmt::format("{}: cancelled", title(ids_[id])));
}

// Completes or fails the operation if that is decided, now that the rank has reported it or joined.
void Arbiter::settle(std::uint32_t id, int rank, TimePoint now) {
  OperationState& state = ids_[id];
  std::size_t missing = state.participants.size() - state.count;
  if (missing > 0 && !left_.empty() && fail_if_a_rank_has_left(id)) return;
  std::vector<int> absent;
  if (missing > 0 && !joins_.empty()) {
    absent = state.ranks(false);
    std::erase_if(absent, [&](int other) { return !has_joined(other, state.process_set); });
    const Request& request = state.request();
    if (!absent.empty() && (request.operation == Operation::send_recv || request.changes_process_sets())) {
      return fail(id, ErrorCode::mismatch,
                  fmt::format("{}: rank {} has joined and takes no part", title(state), absent.front()));
    }
    missing -= absent.size();
  }
  if (missing == 1) state.lacks_one_since = now;
  if (missing > 0) return;
  waited_for_[static_cast<std::size_t>(rank)] += now - state.lacks_one_since;
  complete(id, absent);
}

void Arbiter::on_joined(int rank, TimePoint now) {
  ++join_count_;
  const auto snapshot = waiting_;
  for (const std::uint32_t id : snapshot) {
    const OperationState& state = ids_[id];
    if (!waiting_.contains(id) || !position_in(state.participants, rank) || state.has_reported(rank)) continue;
    settle(id, rank, now);
  }
}

bool Arbiter::has_joined(int rank, std::uint32_t process_set) const {
  return std::ranges::any_of(
      joins_, [&](const auto& join) { return join.first == rank && sets_.contains(join.second, process_set); });
}

void Arbiter::complete(std::uint32_t id, const std::vector<int>& absent) {
  OperationState& state = ids_[id];
  if (const auto difference = compare(state)) return fail(id, difference->code, difference->text);
  if (!absent.empty()) {
    if (const auto problem = problem_with_absent(state, absent)) {
      const std::string text = fmt::format("{}: {}", title(state), *problem);
      const int root = state.request().root;
      const bool root_is_absent = state.request().has_root() && std::ranges::count(absent, root) > 0;
      const std::uint32_t set = state.process_set;
      fail(id, ErrorCode::mismatch, text);
      if (root_is_absent) fail_join(root, set, text);
      return;
    }
  }
  state.absent = absent;
  end_wait(id);
  const Request& request = state.request();
  if (request.operation == Operation::join) {
    const auto last =
        std::ranges::find(joins_.rbegin(), joins_.rend(), state.process_set, &std::pair<int, std::uint32_t>::second);
    state.extents.front() = {last->first};
    std::erase_if(joins_, [&](const auto& join) { return join.second == state.process_set; });
  }
  if (request.operation == Operation::send_recv) {
    pairs_.push_back(id);
  } else if (request.changes_process_sets()) {
    changes_.push_back(id);
  } else {
    complete_[state.process_set].push_back(id);
  }
}

std::optional<Failure> Arbiter::compare(const OperationState& state) const {
  const Request& reference = state.request();
  const Difference* difference = nullptr;
  const std::uint64_t first = *std::ranges::find_if(state.reported, [](std::uint64_t print) { return print != 0; });
  bool agree = true;
  for (const std::uint64_t print : state.reported) {
    if (print == 0 || print == first) continue;
    agree = false;
    difference = find_difference(reference, state.said.at(print));
    if (difference != nullptr) break;
  }
  if (agree) return std::nullopt;
  if (difference == nullptr) {
    return Failure{ErrorCode::internal, fmt::format("'{}': fingerprints differ between equal requests", state.name)};
  }
  RankGroups groups;
  for (std::size_t i = 0; i < state.participants.size(); ++i) {
    if (state.reported[i] != 0) groups.add(state.participants[i], difference->value(state.said.at(state.reported[i])));
  }
  return Failure{ErrorCode::mismatch, fmt::format("{}: {}: {}", title(state), difference->what, groups.to_string())};
}

// What cannot be served by ranks that have joined.
std::optional<std::string> Arbiter::problem_with_absent(const OperationState& state,
                                                        const std::vector<int>& absent) const {
  const Request& request = state.request();
  if (request.has_root() && std::ranges::count(absent, request.root) > 0) {
    return fmt::format("its root rank {} has joined", request.root);
  }
  if (request.operation != Operation::alltoall && request.operation != Operation::scatter) return std::nullopt;
  for (const int receiver : absent) {
    RankGroups senders;
    const std::size_t to = *position_in(state.participants, receiver);
    for (std::size_t from = 0; from < state.participants.size(); ++from) {
      const std::int64_t rows = rows_sent(state, from, to);
      if (rows > 0) senders.add(state.participants[from], fmt::format("{} rows", rows));
    }
    if (const std::string text = senders.to_string(); !text.empty()) {
      return fmt::format("rank {} has joined and is sent rows: {}", receiver, text);
    }
  }
  return std::nullopt;
}

void Arbiter::end_wait(std::uint32_t id) {
  waiting_.erase(id);
  std::erase_if(blocked_, [&](const auto& blocked) { return blocked.second == id; });
}

void Arbiter::fail(std::uint32_t id, ErrorCode code, const std::string& text) {
  fail(id, ids_[id].ranks(true), code, text);
}

// For these ranks, which have reported it; the others go on waiting.
void Arbiter::fail(std::uint32_t id, const std::vector<int>& ranks, ErrorCode code, const std::string& text) {
  OperationState& state = ids_[id];
  failures_.push_back({.id = id, .ranks = ranks, .failure = {code, text}});
  for (const int rank : ranks) {
    auto& reported = state.reported[*position_in(state.participants, rank)];
    if (state.said.at(reported).operation == Operation::join) {
      std::erase(joins_, std::pair(rank, state.process_set));
    }
    reported = 0;
    --state.count;
    blocked_.erase({rank, id});
  }
  if (state.count > 0) return;
  end_wait(id);
  state.reset();
  ids_.end_use(id);
}

// Ends a join of the rank that covers the set.
void Arbiter::fail_join(int rank, std::uint32_t process_set, const std::string& text) {
  for (const auto& [joined, set] : std::vector(joins_)) {
    if (joined != rank || !sets_.contains(set, process_set)) continue;
    const std::uint32_t id = ids_.find(fmt::format("{}|join", set));
    if (id != 0 && ids_[id].has_reported(rank)) fail(id, {rank}, ErrorCode::mismatch, text);
  }
}

void Arbiter::on_leave(int rank, const Leave& leave) {
  left_.insert_or_assign(rank, leave);
  const auto snapshot = waiting_;
  for (const std::uint32_t id : snapshot) {
    if (!waiting_.contains(id) || fail_if_a_rank_has_left(id) || !leave.at_once) continue;
    fail(id, leave.code, fmt::format("{}: {}", title(ids_[id]), departure(rank, leave)));
  }
}

// An operation that lacks a rank that has left can never run.
bool Arbiter::fail_if_a_rank_has_left(std::uint32_t id) {
  const OperationState& state = ids_[id];
  for (const auto& [rank, leave] : left_) {
    if (!position_in(state.participants, rank) || state.has_reported(rank)) continue;
    if (has_joined(rank, state.process_set)) continue;  // it leaves once its join has ended
    fail(id, ErrorCode::shut_down, fmt::format("{}: {}", title(state), departure(rank, leave)));
    return true;
  }
  return false;
}

}  // namespace hvd
