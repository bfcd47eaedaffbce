#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "negotiation/arbiter.h"
#include "negotiation/reporter.h"

namespace hvd {

inline Request float_request(const std::string& name, std::int64_t elements = 4) {
  Request request;
  request.name = name;
  request.shape = Shape{elements};
  return request;
}

// The negotiation of N ranks without threads, clock or links: tests decide what happens next. A value, so that a test
// can copy it and try every continuation.
class NegotiationWorld {
 public:
  explicit NegotiationWorld(int size, Arbiter::Options options = {.fusion_threshold = 1 << 20})
      : arbiter_(size, options), ranks_(static_cast<std::size_t>(size), Rank(0)) {
    for (int r = 0; r < size; ++r) ranks_[index(r)] = Rank(r);
  }

  // What may happen.
  void submit(int rank, const Request& request) {
    Rank& r = ranks_[index(rank)];
    const auto [slot, is_new] = r.slots.try_emplace(request.name, static_cast<std::uint32_t>(r.names.size()));
    if (is_new) r.names.push_back(request.name);
    r.reporter.submit(slot->second, request, fingerprint(request));
  }
  void leave(int rank, const Leave& leave) { ranks_[index(rank)].reporter.leave(leave); }
  bool can_report(int rank) const { return ranks_[index(rank)].reporter.has_news(); }
  // Through the wire format, as between processes.
  void report(int rank) {
    const Report report = decode_report(encode(ranks_[index(rank)].reporter.take_report()));
    for (const Ready& ready : report.ready) full_requests_ += ready.request ? 1 : 0;
    arbiter_.accept(rank, report, now);
    publish();
  }
  bool can_receive(int rank) const { return !ranks_[index(rank)].inbox.empty(); }
  void receive(int rank) {
    Rank& r = ranks_[index(rank)];
    apply(r, r.reporter.accept(decode_plan(r.inbox.front())));
    r.inbox.pop_front();
  }
  bool can_finish_batch() const { return finished_ < ranks_[0].history.size(); }
  void finish_batch() {
    ++finished_;
    arbiter_.on_batch_done();
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
  // Batches of a rank so far, by names; equal on all ranks or a prefix of what another has.
  const std::vector<std::vector<std::string>>& history(int rank) const { return ranks_[index(rank)].history; }
  const std::map<std::string, Failure>& failures(int rank) const { return ranks_[index(rank)].failures; }
  const std::optional<Stop>& stop(int rank) const { return ranks_[index(rank)].stop; }
  Arbiter& arbiter() { return arbiter_; }
  std::size_t full_requests() const { return full_requests_; }

  TimePoint now{};

 private:
  struct Rank {
    explicit Rank(int rank) : reporter(rank) {}
    Reporter reporter;
    std::map<std::string, std::uint32_t> slots;
    std::vector<std::string> names;
    std::deque<Bytes> inbox;
    std::vector<std::vector<std::string>> history;
    std::map<std::string, Failure> failures;
    std::optional<Stop> stop;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void publish() {
    Plan plan = arbiter_.take_plan();
    if (plan.empty()) return;
    for (Rank& r : ranks_) r.inbox.push_back(encode(plan));
  }
  static void apply(Rank& r, Reporter::Outcome outcome) {
    for (const auto& batch : outcome.batches) {
      auto& names = r.history.emplace_back();
      for (const auto& entry : batch.entries) names.push_back(r.names[entry.slot]);
    }
    for (auto& [slot, failure] : outcome.failures) r.failures[r.names[slot]] = failure;
    if (outcome.stop) r.stop = outcome.stop;
  }

  Arbiter arbiter_;
  std::vector<Rank> ranks_;
  std::size_t finished_ = 0;
  std::size_t full_requests_ = 0;
};

}  // namespace hvd
