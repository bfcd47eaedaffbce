#pragma once

#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "negotiation/arbiter.h"
#include "negotiation/reporter.h"

namespace hvd {

inline Request float_request(const std::string& name, std::int64_t elements = 4, std::uint32_t process_set = 0) {
  Request request;
  request.name = name;
  request.process_set = process_set;
  request.tensors.push_back({.dtype = DataType::f32, .shape = Shape{elements}});
  return request;
}

inline Request bare_request(Operation operation, const std::string& name, std::uint32_t process_set = 0) {
  Request request;
  request.name = name;
  request.process_set = process_set;
  request.operation = operation;
  return request;
}

inline Request join_request(std::uint32_t process_set = 0) {
  return bare_request(Operation::join, "join", process_set);
}

// The negotiation of N ranks without threads, clock or links: tests decide what happens next. A value, so that a test
// can copy it and try every continuation.
class NegotiationWorld {
 public:
  // One submission of a rank, which ends once: by running, or by a failure.
  struct Handle {
    Request request;
    bool open = true;
    bool cancelled = false;  // asked to be
    std::optional<Failure> failure;
  };
  struct Ran {
    std::uint64_t number = 0;
    std::uint32_t process_set = 0;
    bool paired = false;
    std::vector<int> absent;
    std::optional<SetChange> change;
    std::vector<std::string> keys;
    std::vector<std::string> names;
    std::vector<std::uint64_t> prints;
    std::vector<std::vector<std::vector<std::int64_t>>> extents;  // by operation
  };

  explicit NegotiationWorld(int size, const Arbiter::Options& options = {.fusion_threshold = 1 << 20},
                            const std::vector<std::vector<int>>& sets = {})
      : arbiter_(size, options, ProcessSets(size, sets)) {
    for (int r = 0; r < size; ++r) ranks_.emplace_back(r, ProcessSets(size, sets));
  }

  // What may happen.
  void submit(int rank, const Request& request, std::vector<std::int64_t> extents = {}) {
    Rank& r = at(rank);
    const std::uint32_t slot = r.slot_for(key_of(request));
    if (r.handle_of[slot]) throw std::logic_error("submitted while in flight: " + request.name);
    r.handle_of[slot] = r.handles.size();
    r.handles.push_back({.request = request, .failure = {}});
    r.reporter.submit(slot, request, fingerprint(request), std::move(extents));
  }
  void cancel(int rank, const Request& request) {
    Rank& r = at(rank);
    const std::uint32_t slot = r.slots.at(key_of(request));
    r.handles.at(r.handle_of[slot].value()).cancelled = true;
    r.reporter.withdraw(slot);
  }
  void block(int rank, const Request& request) { at(rank).reporter.block(at(rank).slots.at(key_of(request))); }
  void leave(int rank, const Leave& leave) { at(rank).reporter.leave(leave); }
  bool can_report(int rank) const { return !at(rank).stop && at(rank).reporter.has_news(); }
  // Through the wire format, as between processes.
  void report(int rank) {
    hear(rank);
    publish();
  }
  // The root has taken in a report and will take in others before it plans.
  void hear(int rank) {
    const Report report = decode_report(encode(at(rank).reporter.take_report()));
    for (const Ready& ready : report.ready) full_requests_ += ready.request ? 1 : 0;
    arbiter_.accept(rank, report, now);
    must_plan_ = true;
  }
  bool must_plan() const { return must_plan_; }
  void publish() {
    must_plan_ = false;
    for (Plan plan = arbiter_.take_plan(); !plan.empty(); plan = arbiter_.take_plan()) send(plan);
  }
  bool can_receive(int rank) const { return !at(rank).inbox.empty(); }
  void receive(int rank) {
    Rank& r = at(rank);
    r.apply(r.reporter.accept(decode_plan(r.inbox.front())));
    r.inbox.pop_front();
  }
  // Of the batches that the root takes part in; it hears of no others.
  bool can_finish_batch() const { return finished_ < ranks_[0].ran.size(); }
  void finish_batch() {
    const Ran& batch = ranks_[0].ran[finished_++];
    if (batch.paired || batch.change) return;
    arbiter_.on_batch_done(batch.process_set);
    publish();
  }
  void tick() {
    arbiter_.tick(now);
    publish();
  }
  // Until nothing can happen any more.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < size(); ++r) {
        for (; can_report(r); moved = true) report(r);
        for (; can_receive(r); moved = true) receive(r);
      }
      for (; can_finish_batch(); moved = true) finish_batch();
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<Ran>& ran(int rank) const { return at(rank).ran; }
  // Batches of a rank so far, by names; among the members of one set equal or a prefix of what another has.
  std::vector<std::vector<std::string>> history(int rank) const {
    std::vector<std::vector<std::string>> names;
    for (const Ran& batch : at(rank).ran) names.push_back(batch.names);
    return names;
  }
  // Those that the rank knows of.
  const ProcessSets& sets(int rank) const { return at(rank).sets; }
  const std::vector<Handle>& handles(int rank) const { return at(rank).handles; }
  bool in_flight(int rank, const std::string& key) const {
    const auto slot = at(rank).slots.find(key);
    return slot != at(rank).slots.end() && at(rank).handle_of[slot->second].has_value();
  }
  // The latest ones, by name.
  std::map<std::string, Failure> failures(int rank) const {
    std::map<std::string, Failure> failures;
    for (const Handle& handle : at(rank).handles) {
      if (handle.failure) failures.insert_or_assign(handle.request.name, *handle.failure);
    }
    return failures;
  }
  // Failures in plans that concern this rank, each of which should end a handle.
  std::size_t failures_told(int rank) const { return at(rank).failures_told; }
  const std::optional<Stop>& stop(int rank) const { return at(rank).stop; }
  Arbiter& arbiter() { return arbiter_; }
  std::size_t full_requests() const { return full_requests_; }
  std::uint64_t evictions(int rank) const { return at(rank).reporter.counts().evictions; }

  TimePoint now{};

 private:
  struct Rank {
    Rank(int rank, const ProcessSets& known) : reporter(rank, known), sets(known) {}
    std::uint32_t slot_for(const std::string& key);
    void end(std::uint32_t slot, std::optional<Failure> failure);
    void apply(Reporter::Outcome outcome);

    Reporter reporter;
    ProcessSets sets;
    std::map<std::string, std::uint32_t> slots;
    std::vector<std::optional<std::size_t>> handle_of;  // by slot, what is in flight
    std::vector<std::uint32_t> free_slots;
    std::vector<Handle> handles;
    std::deque<Bytes> inbox;
    std::vector<Ran> ran;
    std::optional<Stop> stop;
    std::size_t failures_told = 0;
  };

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  void send(const Plan& plan) {
    for (Rank& r : ranks_) r.inbox.push_back(encode(plan));
    for (const FailedTensor& failed : plan.failures) {
      for (const int rank : failed.ranks) ++at(rank).failures_told;
    }
  }

  Arbiter arbiter_;
  std::vector<Rank> ranks_;
  bool must_plan_ = false;
  std::size_t finished_ = 0;
  std::size_t full_requests_ = 0;
};

inline std::uint32_t NegotiationWorld::Rank::slot_for(const std::string& key) {
  const auto [slot, is_new] = slots.try_emplace(key, static_cast<std::uint32_t>(handle_of.size()));
  if (!is_new) return slot->second;
  if (free_slots.empty()) {
    handle_of.emplace_back();
  } else {
    slot->second = free_slots.back();
    free_slots.pop_back();
  }
  return slot->second;
}

inline void NegotiationWorld::Rank::end(std::uint32_t slot, std::optional<Failure> failure) {
  if (!handle_of.at(slot)) throw std::logic_error("ended what is not in flight");
  Handle& handle = handles[*std::exchange(handle_of[slot], std::nullopt)];
  handle.open = false;
  handle.failure = std::move(failure);
}

inline void NegotiationWorld::Rank::apply(Reporter::Outcome outcome) {
  for (const std::uint32_t slot : outcome.forgotten) {
    if (handle_of[slot]) continue;
    std::erase_if(slots, [slot](const auto& entry) { return entry.second == slot; });
    free_slots.push_back(slot);
  }
  for (auto& work : outcome.batches) {
    Ran& batch = ran.emplace_back();
    batch.number = work.number;
    batch.process_set = work.process_set;
    batch.absent = work.absent;
    batch.change = work.change;
    if (work.change && work.change->ranks.empty()) sets.remove(work.change->id);
    if (work.change && !work.change->ranks.empty()) {
      sets.insert(work.change->id, {.ranks = work.change->ranks, .channel = work.change->channel});
    }
    for (auto& entry : work.entries) {
      const Request& request = entry.absent ? *entry.absent : handles[handle_of.at(entry.slot).value()].request;
      batch.paired = request.operation == Operation::send_recv;
      batch.keys.push_back(key_of(request));
      batch.names.push_back(request.name);
      batch.prints.push_back(fingerprint(request));
      batch.extents.push_back(std::move(entry.extents));
      if (!entry.absent) end(entry.slot, std::nullopt);
    }
  }
  for (auto& [slot, failure] : outcome.failures) end(slot, failure);
  if (!outcome.stop) return;
  stop = outcome.stop;
  for (std::uint32_t slot = 0; slot < handle_of.size(); ++slot) {
    if (handle_of[slot]) end(slot, Failure{stop->code, stop->reason});
  }
}

}  // namespace hvd
