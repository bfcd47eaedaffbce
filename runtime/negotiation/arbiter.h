#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "negotiation/messages.h"
#include "negotiation/stall.h"

namespace hvd {

// The root's side of the negotiation, pure state: counts which ranks have reported each tensor, compares what they
// said, and plans what runs next, in one order for all.
//
// A tensor goes round: idle -> waiting (first rank reports) -> complete (last rank reports) -> planned, idle again; or
// from waiting to failed, idle again. A plan with batches is only given while fewer than `max_in_flight` batches are
// under way on the root: what completes meanwhile gathers and is fused (natural batching).
class Arbiter {
 public:
  struct Options {
    std::int64_t fusion_threshold = 0;
    Seconds stall_warning{0};   // 0: never
    Seconds stall_shutdown{0};  // 0: never
  };
  static constexpr int max_in_flight = 2;

  Arbiter(int size, const Options& options);

  // Throws InternalError, naming the rank, for a report that contradicts earlier ones.
  void accept(int rank, Report report, TimePoint now);
  void on_batch_done() { --in_flight_; }
  // Looks at the clock: operations that have waited too long become failures of the next plan.
  void tick(TimePoint now);
  // When tick() has something to do next.
  std::optional<TimePoint> deadline() const;

  // What all ranks must hear now; often empty. Nothing follows a plan with `stop`, but one with `abandon` may follow
  // one without.
  Plan take_plan();
  // Reports of stalls for the log.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  struct Tensor {
    std::string name;
    std::uint32_t process_set = 0;
    bool announced = false;                           // every rank knows the id
    std::unordered_map<std::uint64_t, Request> said;  // by fingerprint
    std::vector<std::uint64_t> reported;              // by rank, its fingerprint; 0: not yet
    int count = 0;
    std::vector<std::int64_t> rows;  // by rank, where free
    TimePoint since;
  };

  std::uint32_t intern(int rank, const Ready& ready);
  void complete(std::uint32_t id);
  void fail(std::uint32_t id, ErrorCode code, const std::string& text);
  void reset(Tensor& tensor);
  void announce(Plan& plan, std::uint32_t id);
  bool fail_if_a_rank_has_left(std::uint32_t id);
  void plan_batches(Plan& plan);
  std::optional<Failure> compare(const Tensor& tensor) const;
  std::vector<int> ranks_in(const Tensor& tensor, bool reported) const;
  const Request& request_of(const Tensor& tensor) const;
  std::vector<WaitingTensor> waiting() const;
  std::optional<TimePoint> oldest() const;
  std::string title(const Tensor& tensor) const;

  int size_;
  Options options_;
  StallClock stall_clock_;
  std::vector<Tensor> tensors_;  // by id; 0 is unused
  std::unordered_map<std::string, std::uint32_t> id_of_;
  std::map<std::uint64_t, std::uint32_t> waiting_;  // order of first report -> id
  std::vector<std::uint64_t> ticket_;               // by id: its key in waiting_
  std::uint64_t next_ticket_ = 1;
  std::vector<std::uint32_t> complete_;
  std::vector<FailedTensor> failures_;
  std::map<int, Leave> left_;
  std::vector<std::string> warnings_;
  std::uint64_t next_batch_ = 1;
  int in_flight_ = 0;
  bool stopped_ = false;
  bool abandoned_ = false;
};

}  // namespace hvd
