#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "negotiation/arbiter.h"
#include "negotiation/fuser.h"
#include "negotiation/titles.h"

namespace hvd {

namespace {

// What an operation adds to its batch. Where rows are each rank's own, those of all ranks together.
std::int64_t batch_bytes(const OperationState& state, const Request& request) {
  if (!request.rows_may_differ()) return request.bytes();
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < state.participants.size(); ++i) {
    if (state.reported[i] == 0) continue;
    for (std::size_t k = 0; k < state.extents[i].size(); ++k) {
      const std::size_t each = request.operation == Operation::alltoall ? state.participants.size() : 1;
      bytes += state.extents[i][k] * request.tensors[k / each].row_bytes();
    }
  }
  return bytes;
}

}  // namespace

Plan Arbiter::take_plan() {
  Plan plan;
  if (!std::exchange(has_news_, false)) return plan;  // the usual answer: asked whenever somebody looks
  const auto urgent = std::ranges::find_if(left_, [](const auto& left) { return left.second.at_once; });
  const bool abandon = urgent != left_.end();
  if (stopped_ && (abandoned_ || !abandon)) return plan;
  if (!stopped_) {
    if (failures_.empty()) plan.evicted = ids_.evict(next_plan_);  // else a failure might lose its number
    plan_failures(plan);
    if (!abandon) {
      for (auto& [set, ids] : complete_) {
        if (in_flight_[set] < max_in_flight || lacks_ranks(ids)) plan_set(plan, set);
      }
      for (const std::uint32_t id : std::exchange(pairs_, {})) plan_pair(plan, id);
      for (const std::uint32_t id : std::exchange(changes_, {})) plan_change(plan, id);
    }
    plan_failures(plan);  // of what changes of sets have broken off
  }
  // A rank that left at once takes no part in batches any more: nothing is waited for, not even what is complete.
  const bool nothing_left = waiting_.empty() && pairs_.empty() && changes_.empty() &&
                            std::ranges::all_of(complete_, [](const auto& set) { return set.second.empty(); });
  if (abandon || (!left_.empty() && nothing_left)) {
    const auto& [rank, leave] = abandon ? *urgent : *left_.begin();
    plan.stop = Stop{.reason = departure(rank, leave), .abandon = abandon, .code = leave.code};
    stopped_ = true;
    abandoned_ = abandon;
  }
  if (!plan.empty()) {
    plan.number = next_plan_++;
    has_news_ = true;
  }
  return plan;
}

// Runs at once: held back, it might meet what the ranks that it lacks report once they have joined no more.
bool Arbiter::lacks_ranks(const List<std::uint32_t>& ids) const {
  return std::ranges::any_of(ids, [this](std::uint32_t id) { return !ids_[id].absent.empty(); });
}

void Arbiter::on_batch_done(std::uint32_t process_set) {
  has_news_ = true;
  const auto set = in_flight_.find(process_set);
  if (set != in_flight_.end()) --set->second;  // else it has been removed meanwhile
}

void Arbiter::plan_failures(Plan& plan) {
  for (FailedTensor& failed : failures_) {
    announce(plan, failed.id);
    plan.failures.push_back(std::move(failed));
  }
  failures_.clear();
}

void Arbiter::plan_set(Plan& plan, std::uint32_t process_set) {
  const List<std::uint32_t> ids = std::exchange(complete_[process_set], {});
  List<Fusable> operations;
  operations.reserve(ids.size());
  for (const std::uint32_t id : ids) {
    const Request& request = ids_[id].request();
    operations.push_back({.request = &request, .bytes = batch_bytes(ids_[id], request), .absent = ids_[id].absent});
  }
  const auto* set = sets_.find(process_set);
  const bool root_takes_part = set != nullptr && position_in(set->ranks, 0).has_value();
  for (const auto& members : fuse(operations, options_.fusion_threshold)) {
    Batch batch{
        .number = next_batch_++, .process_set = process_set, .pair = {}, .absent = {}, .change = {}, .entries = {}};
    batch.absent = ids_[ids[members.front()]].absent;
    batch.entries.reserve(members.size());
    for (const std::size_t member : members) add_entry(plan, batch, ids[member]);
    plan.batches.push_back(std::move(batch));
    if (root_takes_part) ++in_flight_[process_set];
  }
  for (const std::uint32_t id : ids) {
    ids_[id].reset();
    ids_.end_use(id);
  }
}

void Arbiter::plan_pair(Plan& plan, std::uint32_t id) {
  Batch batch{.number = next_batch_++,
              .process_set = 0,
              .pair = ids_[id].participants,
              .absent = {},
              .change = {},
              .entries = {}};
  add_entry(plan, batch, id);
  plan.batches.push_back(std::move(batch));
  ids_[id].reset();
  ids_.end_use(id);
}

// A set that is removed ends in this order: what is ready everywhere runs, the change, failures of what is not.
void Arbiter::plan_change(Plan& plan, std::uint32_t id) {
  const Request request = ids_[id].request();
  Batch batch{.number = 0, .process_set = 0, .pair = {}, .absent = {}, .change = SetChange{}, .entries = {}};
  if (request.operation == Operation::add_process_set) {
    std::vector<int> ranks;
    for (const std::int64_t rank : ids_[id].extents.front()) ranks.push_back(static_cast<int>(rank));
    if (const std::string problem = sets_.problem_with(ranks); !problem.empty()) {
      return fail(id, ErrorCode::invalid_argument, fmt::format("{}: {}", title(ids_[id]), problem));
    }
    batch.change->id = sets_.add(ranks);
    batch.change->channel = sets_.find(batch.change->id)->channel;
    batch.change->ranks = ranks;
  } else {
    const auto set = static_cast<std::uint32_t>(request.root);
    if (sets_.find(set) == nullptr) {
      return fail(id, ErrorCode::invalid_argument, title(ids_[id]) + ": there is no such process set");
    }
    if (!complete_[set].empty()) plan_set(plan, set);
    batch.change->id = set;
    const auto snapshot = waiting_;
    for (const std::uint32_t other : snapshot) {
      if (ids_[other].process_set != set) continue;
      fail(other, ErrorCode::invalid_argument, title(ids_[other]) + ": the process set has been removed");
    }
    sets_.remove(set);
    in_flight_.erase(set);
    complete_.erase(set);
    ids_.retire_set(set);
    ids_.retire(id);
  }
  batch.number = next_batch_++;
  add_entry(plan, batch, id);
  plan.batches.push_back(std::move(batch));
  ids_[id].reset();
  ids_.end_use(id);
}

void Arbiter::add_entry(Plan& plan, Batch& batch, std::uint32_t id) {
  OperationState& state = ids_[id];
  announce(plan, id);
  state.announced = true;
  const std::uint64_t print = *std::ranges::find_if(state.reported, [](std::uint64_t p) { return p != 0; });
  if (!state.absent.empty() && (state.described != join_count_ || state.described_as != print)) {
    plan.descriptions.push_back({.id = id, .request = state.said.at(print)});
    state.described = join_count_;
    state.described_as = print;
  }
  batch.entries.push_back({.id = id, .extents = extents_of(state)});
}

std::vector<std::vector<std::int64_t>> Arbiter::extents_of(const OperationState& state) const {
  const Request& request = state.request();
  if (request.operation == Operation::scatter) return {state.extents[*position_in(state.participants, request.root)]};
  if (request.operation == Operation::join) return {state.extents.front()};
  if (!request.has_extents()) return {};
  auto extents = state.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (state.reported[i] != 0) continue;
    const std::size_t each = request.operation == Operation::alltoall ? extents.size() : 1;
    extents[i].assign(request.tensors.size() * each, 0);
  }
  return extents;
}

void Arbiter::announce(Plan& plan, std::uint32_t id) {
  const OperationState& state = ids_[id];
  if (!state.announced) plan.names.push_back({.id = id, .key = state.key});
}

}  // namespace hvd
