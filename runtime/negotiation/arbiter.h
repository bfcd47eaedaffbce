#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "negotiation/messages.h"
#include "negotiation/operation_ids.h"
#include "negotiation/process_sets.h"
#include "negotiation/stall.h"

namespace hvd {

// The root's side of the negotiation, pure state: counts which ranks have reported each operation, compares what they
// said, and plans what runs next, in one order for all. OperationState has the way of an operation.
//
// Batches of a process set are only planned while fewer than `max_in_flight` of them are under way on the root: what
// completes meanwhile gathers and is fused (natural batching), unless ranks that have joined stand aside in it. Of sets
// without the root it does not hear when a batch ends; theirs are planned at once.
//
// A rank that has joined a set counts as having reported every operation of the sets within it.
class Arbiter {
 public:
  struct Options {
    std::int64_t fusion_threshold = 0;
    Seconds stall_warning{0};   // 0: never
    Seconds stall_shutdown{0};  // 0: never
    std::size_t cache_capacity = 16384;
  };
  static constexpr int max_in_flight = 2;
  // How long ranks that wait for each other in making unlike process sets are given to come round, by other threads.
  static constexpr Seconds patience{2};

  Arbiter(int size, const Options& options, ProcessSets sets);

  // Throws InternalError, naming the rank, for a report that contradicts earlier ones.
  void accept(int rank, Report report, TimePoint now);
  void on_batch_done(std::uint32_t process_set);
  // Looks at the clock: operations that have waited too long become failures of the next plan.
  void tick(TimePoint now);
  // When tick() has something to do next.
  std::optional<TimePoint> deadline() const;

  // What all ranks must hear now; often empty. Nothing follows a plan with `stop`, but one with `abandon` may follow
  // one without.
  Plan take_plan();
  // Reports of stalls for the log.
  bool has_warnings() const { return !warnings_.empty(); }
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  // By rank: for how long operations that lacked this rank alone have waited for it.
  const std::vector<Seconds>& waited_for() const { return waited_for_; }

 private:
  void on_ready(int rank, Ready& ready, TimePoint now);
  void on_withdrawn(int rank, const Reference& reference);
  void on_leave(int rank, const Leave& leave);
  std::uint32_t intern(int rank, Ready& ready);
  std::uint32_t add(const Request& request);
  std::uint32_t find(const Reference& reference) const;

  void settle(std::uint32_t id, int rank, TimePoint now);
  void on_joined(int rank, TimePoint now);
  bool has_joined(int rank, std::uint32_t process_set) const;
  void complete(std::uint32_t id, const std::vector<int>& absent);
  std::optional<Failure> compare(const OperationState& state) const;
  std::optional<std::string> problem_with_absent(const OperationState& state, const std::vector<int>& absent) const;
  void fail(std::uint32_t id, const std::vector<int>& ranks, ErrorCode code, const std::string& text);
  void fail(std::uint32_t id, ErrorCode code, const std::string& text);
  void fail_join(int rank, std::uint32_t process_set, const std::string& text);
  bool fail_if_a_rank_has_left(std::uint32_t id);
  void end_wait(std::uint32_t id);

  void look_for_deadlock(TimePoint now);
  void fail_overdue(TimePoint now);
  void fail_doomed();
  std::optional<TimePoint> expiry(const OperationState& state) const;

  bool lacks_ranks(const List<std::uint32_t>& ids) const;
  void plan_failures(Plan& plan);
  void plan_change(Plan& plan, std::uint32_t id);
  void plan_pair(Plan& plan, std::uint32_t id);
  void plan_set(Plan& plan, std::uint32_t process_set);
  void add_entry(Plan& plan, Batch& batch, std::uint32_t id);
  std::vector<std::vector<std::int64_t>> extents_of(const OperationState& state) const;
  void announce(Plan& plan, std::uint32_t id);

  WaitingTensor waiting(std::uint32_t id) const;
  std::vector<WaitingTensor> all_waiting() const;
  std::optional<TimePoint> oldest() const;

  Options options_;
  ProcessSets sets_;
  OperationIds ids_;
  StallClock stall_clock_;
  IdList waiting_;                                         // in the order of the first reports
  std::map<std::uint32_t, List<std::uint32_t>> complete_;  // by process set
  std::vector<std::uint32_t> pairs_;                       // complete, point to point
  std::vector<std::uint32_t> changes_;                     // complete, of process sets
  std::vector<std::pair<int, std::uint32_t>> joins_;       // open: rank, process set; in order
  std::uint64_t join_count_ = 0;
  std::set<std::pair<int, std::uint32_t>> blocked_;  // rank, id
  std::set<std::string> told_deadlocks_;
  std::optional<TimePoint> next_expiry_;  // not later than the first one
  struct Doomed {
    TimePoint at;
    std::vector<std::pair<int, std::uint32_t>> circle;  // of blocked_
  };
  std::optional<Doomed> doomed_;
  std::vector<FailedTensor> failures_;
  std::map<int, Leave> left_;
  std::vector<std::string> warnings_;
  std::vector<Seconds> waited_for_;
  std::uint64_t next_plan_ = 1;
  std::uint64_t next_batch_ = 1;
  std::map<std::uint32_t, int> in_flight_;  // by process set
  bool has_news_ = false;                   // since the last plan, or that one was not empty
  bool stopped_ = false;
  bool abandoned_ = false;
};

}  // namespace hvd
