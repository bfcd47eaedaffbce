#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "negotiation/request.h"

namespace hvd {

using TimePoint = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

// An operation that some ranks of its set have submitted and others have not.
struct WaitingTensor {
  Request request;
  std::vector<int> submitted_by;
  std::vector<int> waits_for;
  TimePoint since;  // first submission
};

// "'b' (broadcast float32[2]) submitted by [0] 61 s ago, waits for [1]; rank 1 is at 'c', which waits for [0]": both
// sides, oldest first, where the missing ranks stand, and a guess when two names look like one tensor named differently
// by rank.
std::string describe_stall(const std::vector<WaitingTensor>& waiting, TimePoint now);

// Decides when a stall is reported: once when the oldest operation has waited for the warning time, then at each
// doubling, so that the number of lines grows like a logarithm. Pure state.
class StallClock {
 public:
  explicit StallClock(Seconds warning) : warning_(warning), next_(warning) {}

  // `oldest`: first submission of the oldest waiting operation, if there is one. True: report now.
  bool due(std::optional<TimePoint> oldest, TimePoint now);
  // When due() may say so next.
  std::optional<TimePoint> deadline(std::optional<TimePoint> oldest) const;

 private:
  // Age at which an operation that has waited since then is reported next.
  Seconds due_age(TimePoint since) const;

  Seconds warning_;
  Seconds next_;  // for what was waiting at the last report
  std::optional<TimePoint> last_report_;
};

// What takes longer than a clock can count is as good as for ever.
constexpr Seconds countable{1e9};
TimePoint after(TimePoint start, Seconds duration);

}  // namespace hvd
