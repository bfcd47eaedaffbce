#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/chunk_stream.h"
#include "engine/executor.h"
#include "engine/observers.h"
#include "engine/tensor_table.h"
#include "negotiation/arbiter.h"
#include "negotiation/reporter.h"
#include "observe/log.h"
#include "transport/control_links.h"

namespace hvd::detail {

// Joins the pure negotiation to links, table and executor: one step() looks at everything once. Never blocks. All
// members belong to the thread that holds the progress token, but ask_to_leave().
class Coordinator {
 public:
  Coordinator(Transport& transport, Segment& segment, HostBells& bells, TensorTable& table, Observers& observers,
              const Logger& logger, const Arbiter::Options& options);

  // True when something moved: call again before sleeping.
  bool step(TimePoint now);
  // Something of this rank is under way, so its peers' progress matters.
  bool busy() const;
  // When step() has something to do even if nothing happens.
  std::optional<TimePoint> deadline() const;
  // The runtime is over: everything in flight has been finished or failed, and the others have been told.
  bool stopped() const { return stopped_; }
  // Messages between hosts ring no bell: with several hosts, somebody has to look.
  bool must_poll() const;

  // Any thread.
  void ask_to_leave(Leave leave);
  // An invariant does not hold on this rank: tells the others, as far as that goes, and stops.
  void break_off(const Failure& cause);

 private:
  bool take_submissions();
  bool negotiate_as_root(TimePoint now);
  bool negotiate_with_root();
  void apply(Plan plan);
  bool flush(TimePoint now);
  void stop(const Failure& cause);
  void finish(const OperationPtr& operation, const std::optional<Failure>& failure);

  Transport& transport_;
  ControlLinks links_;
  TensorTable& table_;
  Observers& observers_;
  const Logger& logger_;
  ChunkStream stream_;
  Executor executor_;
  Reporter reporter_;
  std::optional<Arbiter> arbiter_;  // on the root
  std::vector<OperationPtr> by_slot_;
  std::vector<OperationPtr> submitted_;
  std::size_t in_flight_ = 0;  // taken and not finished
  std::optional<Stop> stopping_;
  bool over_ = false;     // nothing is in flight any more, and nothing comes
  bool stopped_ = false;  // nor is there anything left to say
  std::optional<TimePoint> flush_until_;
  std::mutex leave_mutex_;
  std::optional<Leave> leave_;
  std::atomic<bool> leave_asked_{false};
};

}  // namespace hvd::detail
