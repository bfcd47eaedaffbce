#include "negotiation/arbiter.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

#include "negotiation/fuser.h"
#include "negotiation/rank_groups.h"
#include "negotiation/reporter.h"

namespace hvd {

Arbiter::Arbiter(int size, const Options& options)
    : size_(size), options_(options), stall_clock_(options.stall_warning), tensors_(1), ticket_(1) {}

void Arbiter::accept(int rank, Report report, TimePoint now) {
  for (Ready& ready : report.ready) {
    const std::uint32_t id = intern(rank, ready);
    Tensor& tensor = tensors_[id];
    auto& mine = tensor.reported[static_cast<std::size_t>(rank)];
    if (mine != 0) throw InternalError(fmt::format("rank {} reported {} twice", rank, title(tensor)));
    if (ready.request) {
      tensor.said.insert_or_assign(ready.fingerprint, std::move(*ready.request));
    } else if (!tensor.said.contains(ready.fingerprint)) {
      throw InternalError(
          fmt::format("rank {} reported '{}' with a fingerprint that nobody explained", rank, tensor.name));
    }
    mine = ready.fingerprint;
    tensor.rows[static_cast<std::size_t>(rank)] = ready.rows;
    if (++tensor.count == 1) {
      tensor.since = now;
      ticket_[id] = next_ticket_++;
      waiting_.emplace(ticket_[id], id);
    }
    if (tensor.count == size_) {
      complete(id);
    } else {
      fail_if_a_rank_has_left(id);
    }
  }
  if (report.leave) {
    left_.insert_or_assign(rank, *report.leave);
    const auto snapshot = waiting_;
    for (const auto& [ticket, id] : snapshot) {
      if (!fail_if_a_rank_has_left(id) && report.leave->at_once) {
        fail(id, ErrorCode::shut_down,
             fmt::format("{}: rank {} has left: {}", title(tensors_[id]), rank, report.leave->reason));
      }
    }
  }
}

std::uint32_t Arbiter::intern(int rank, const Ready& ready) {
  if (ready.id != 0) {
    if (ready.id >= tensors_.size())
      throw InternalError(fmt::format("rank {} reported unknown tensor {}", rank, ready.id));
    return ready.id;
  }
  if (!ready.request) throw InternalError(fmt::format("rank {} reported a tensor without id or request", rank));
  const auto next = static_cast<std::uint32_t>(tensors_.size());
  const auto [entry, is_new] = id_of_.try_emplace(tensor_key(ready.request->process_set, ready.request->name), next);
  if (is_new) {
    const auto ranks = static_cast<std::size_t>(size_);
    tensors_.push_back({.name = ready.request->name,
                        .process_set = ready.request->process_set,
                        .announced = false,
                        .said = {},
                        .reported = std::vector<std::uint64_t>(ranks, 0),
                        .count = 0,
                        .rows = std::vector<std::int64_t>(ranks, 0),
                        .since = {}});
    ticket_.push_back(0);
  }
  return entry->second;
}

void Arbiter::complete(std::uint32_t id) {
  const Tensor& tensor = tensors_[id];
  if (const auto difference = compare(tensor)) {
    fail(id, difference->code, difference->text);
    return;
  }
  waiting_.erase(ticket_[id]);
  complete_.push_back(id);
}

std::optional<Failure> Arbiter::compare(const Tensor& tensor) const {
  const std::uint64_t first = tensor.reported[0];
  if (std::ranges::all_of(tensor.reported, [&](std::uint64_t print) { return print == first; })) return std::nullopt;
  const Request& reference = tensor.said.at(first);
  const Difference* difference = nullptr;
  for (const std::uint64_t print : tensor.reported) {
    difference = find_difference(reference, tensor.said.at(print));
    if (difference != nullptr) break;
  }
  if (difference == nullptr) {
    return Failure{ErrorCode::internal, fmt::format("'{}': fingerprints differ between equal requests", tensor.name)};
  }
  RankGroups groups;
  for (int rank = 0; rank < size_; ++rank) {
    groups.add(rank, difference->value(tensor.said.at(tensor.reported[static_cast<std::size_t>(rank)])));
  }
  return Failure{ErrorCode::mismatch, fmt::format("{}: {}: {}", title(tensor), difference->what, groups.to_string())};
}

void Arbiter::fail(std::uint32_t id, ErrorCode code, const std::string& text) {
  Tensor& tensor = tensors_[id];
  failures_.push_back({.id = id, .ranks = ranks_in(tensor, true), .failure = {code, text}});
  waiting_.erase(ticket_[id]);
  reset(tensor);
}

void Arbiter::reset(Tensor& tensor) {
  std::ranges::fill(tensor.reported, 0);
  tensor.count = 0;
}

// An operation that lacks a rank that has left can never run.
bool Arbiter::fail_if_a_rank_has_left(std::uint32_t id) {
  const Tensor& tensor = tensors_[id];
  for (const auto& [rank, leave] : left_) {
    if (tensor.reported[static_cast<std::size_t>(rank)] != 0) continue;
    fail(id, ErrorCode::shut_down, fmt::format("{}: rank {} has left: {}", title(tensor), rank, leave.reason));
    return true;
  }
  return false;
}

void Arbiter::tick(TimePoint now) {
  if (stall_clock_.due(oldest(), now)) warnings_.push_back(describe_stall(waiting(), now));
  if (options_.stall_shutdown.count() <= 0) return;
  std::vector<std::uint32_t> overdue;
  for (const auto& [ticket, id] : waiting_) {
    if (Seconds(now - tensors_[id].since) >= options_.stall_shutdown) overdue.push_back(id);
  }
  if (overdue.empty()) return;
  const std::string report = describe_stall(waiting(), now);
  for (const std::uint32_t id : overdue) {
    const Tensor& tensor = tensors_[id];
    fail(id, ErrorCode::stalled,
         fmt::format("{}: stalled for {:.3g} s: submitted by {}, waits for {}. All that waits: {}", title(tensor),
                     Seconds(now - tensor.since).count(), format_ranks(ranks_in(tensor, true)),
                     format_ranks(ranks_in(tensor, false)), report));
  }
}

std::optional<TimePoint> Arbiter::deadline() const {
  std::optional<TimePoint> next = stall_clock_.deadline(oldest());
  if (const auto start = oldest(); start && options_.stall_shutdown.count() > 0) {
    const TimePoint shutdown = after(*start, options_.stall_shutdown);
    next = next ? std::min(*next, shutdown) : shutdown;
  }
  return next;
}

Plan Arbiter::take_plan() {
  Plan plan;
  const auto urgent = std::ranges::find_if(left_, [](const auto& left) { return left.second.at_once; });
  const bool abandon = urgent != left_.end();
  if (stopped_ && (abandoned_ || !abandon)) return plan;
  if (!stopped_) {
    for (FailedTensor& failed : failures_) {
      announce(plan, failed.id);
      plan.failures.push_back(std::move(failed));
    }
    failures_.clear();
    if (in_flight_ < max_in_flight && !abandon) plan_batches(plan);
  }
  // A rank that left at once takes no part in batches any more: nothing is waited for, not even what is complete.
  if (abandon || (!left_.empty() && waiting_.empty() && complete_.empty())) {
    const auto& [rank, leave] = abandon ? *urgent : *left_.begin();
    plan.stop = Stop{.reason = fmt::format("rank {} has left: {}", rank, leave.reason), .abandon = abandon};
    stopped_ = true;
    abandoned_ = abandon;
  }
  return plan;
}

void Arbiter::plan_batches(Plan& plan) {
  std::vector<Fusable> tensors;
  for (const std::uint32_t id : complete_) {
    const Request& request = request_of(tensors_[id]);
    std::int64_t bytes = request.bytes();
    if (request.rows_may_differ()) {
      const std::int64_t row_bytes =
          request.shape.with_rows(1).elements() * static_cast<std::int64_t>(size_of(request.dtype));
      bytes = 0;
      for (const std::int64_t rows : tensors_[id].rows) bytes += rows * row_bytes;
    }
    tensors.push_back({&request, bytes});
  }
  for (const auto& members : fuse(tensors, options_.fusion_threshold)) {
    Batch batch{.number = next_batch_++, .entries = {}};
    for (const std::size_t member : members) {
      const std::uint32_t id = complete_[member];
      announce(plan, id);
      tensors_[id].announced = true;
      batch.entries.push_back({.id = id, .rows = {}});
      if (tensors[member].request->rows_may_differ()) batch.entries.back().rows = tensors_[id].rows;
    }
    plan.batches.push_back(std::move(batch));
    ++in_flight_;
  }
  for (const std::uint32_t id : complete_) {
    Tensor& tensor = tensors_[id];
    // All ranks said the same: nothing else will be referred to by its fingerprint alone.
    if (tensor.said.size() > 1)
      std::erase_if(tensor.said, [&](const auto& said) { return said.first != tensor.reported[0]; });
    reset(tensor);
  }
  complete_.clear();
}

void Arbiter::announce(Plan& plan, std::uint32_t id) {
  const Tensor& tensor = tensors_[id];
  if (!tensor.announced) plan.names.push_back({.id = id, .process_set = tensor.process_set, .name = tensor.name});
}

std::vector<int> Arbiter::ranks_in(const Tensor& tensor, bool reported) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if ((tensor.reported[static_cast<std::size_t>(rank)] != 0) == reported) ranks.push_back(rank);
  }
  return ranks;
}

// What the first rank that has reported said.
const Request& Arbiter::request_of(const Tensor& tensor) const {
  const auto said = std::ranges::find_if(tensor.reported, [](std::uint64_t print) { return print != 0; });
  return tensor.said.at(*said);
}

std::vector<WaitingTensor> Arbiter::waiting() const {
  std::vector<WaitingTensor> result;
  for (const auto& [ticket, id] : waiting_) {
    const Tensor& tensor = tensors_[id];
    result.push_back({.request = request_of(tensor),
                      .submitted_by = ranks_in(tensor, true),
                      .waits_for = ranks_in(tensor, false),
                      .since = tensor.since});
  }
  return result;
}

std::optional<TimePoint> Arbiter::oldest() const {
  if (waiting_.empty()) return std::nullopt;
  return tensors_[waiting_.begin()->second].since;
}

// "allreduce 'w'"; without the operation where the ranks' operations differ.
std::string Arbiter::title(const Tensor& tensor) const {
  std::optional<Operation> operation;
  for (const std::uint64_t print : tensor.reported) {
    if (print == 0) continue;
    const Operation said = tensor.said.at(print).operation;
    if (operation && *operation != said) return fmt::format("'{}'", tensor.name);
    operation = said;
  }
  const std::string set = tensor.process_set == 0 ? "" : fmt::format(" process set {}", tensor.process_set);
  return operation ? fmt::format("{} '{}'{}", to_string(*operation), tensor.name, set)
                   : fmt::format("'{}'{}", tensor.name, set);
}

}  // namespace hvd
