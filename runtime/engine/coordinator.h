#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <hvd/stats.h>

#include "engine/data_plane.h"
#include "engine/observers.h"
#include "engine/shared_sets.h"
#include "engine/tensor_table.h"
#include "negotiation/arbiter.h"
#include "negotiation/reporter.h"
#include "observe/log.h"
#include "transport/control_links.h"

namespace hvd::detail {

// What the coordinator acts on; all of it outlives it.
struct Surroundings {
  Transport& transport;
  HostSegment& segment;
  HostBells& bells;
  TensorTable& table;
  SharedSets& sets;
  const SharedArenas& arenas;
  Observers& observers;
  const Logger& logger;
  const Config& config;
};

// Joins the pure negotiation to links, table and data plane: one step() looks at everything once. Never blocks. All
// members belong to the thread that holds the progress token, but ask_to_leave() and stats().
class Coordinator {
 public:
  // `world`: the token that tells this world from others.
  Coordinator(const Surroundings& surroundings, const std::string& world, std::unique_ptr<SharedMemory> world_memory);

  // True when something moved: call again before sleeping. The clock may be read now and then only: what depends on it
  // is looked at when `now` has changed.
  bool step(TimePoint now);
  // Something of this rank is under way, so its peers' progress matters.
  bool busy() const;
  // When step() has something to do even if nothing happens.
  std::optional<TimePoint> deadline() const;
  // The runtime is over: everything in flight has been finished or failed, and the others have been told.
  bool stopped() const { return stopped_; }
  // Messages between hosts ring no bell: with several hosts, somebody has to look.
  bool must_poll() const;
  // For who ends the transport, see DataPlane.
  std::vector<std::unique_ptr<SharedMemory>> release_memory() { return plane_.release_memory(); }

  // Any thread.
  void ask_to_leave(Leave leave);
  Stats stats() const;
  // An invariant does not hold on this rank: tells the others, as far as that goes, and stops.
  void break_off(const Failure& cause);

 private:
  bool take_news();
  bool has_to_speak() const;
  Report take_report();
  bool negotiate_as_root(TimePoint now);
  bool negotiate_with_root(TimePoint now);
  Bytes counted(Bytes message);
  void send_plan(const Plan& plan);
  void apply(Plan plan, TimePoint now);
  ExecutableBatch take_on(Reporter::Work& work);
  bool look_at_clocks(TimePoint now);
  void report_stall(const std::string& text);
  bool flush(TimePoint now);
  void stop(const Failure& cause);
  void finish(const OperationPtr& operation, const std::optional<Failure>& failure);
  void on_batch_done(const ExecutableBatch& batch, bool failed);
  void count(const ExecutableBatch& batch);
  void publish();

  Surroundings around_;
  ControlLinks links_;
  DataPlane plane_;
  Reporter reporter_;
  std::optional<Arbiter> arbiter_;  // on the root
  std::vector<OperationPtr> by_slot_;
  TensorTable::News news_;
  std::size_t in_flight_ = 0;  // taken and not finished
  bool urgent_ = false;        // what has become ready need not gather any longer
  TimePoint last_look_;        // at what depends on the clock
  std::optional<Stop> stopping_;
  bool over_ = false;     // nothing is in flight any more, and nothing comes
  bool stopped_ = false;  // nor is there anything left to say
  std::optional<TimePoint> flush_until_;
  std::mutex leave_mutex_;
  std::optional<Leave> leave_;
  std::atomic<bool> leave_asked_{false};
  Stats counts_;
  mutable std::mutex stats_mutex_;
  Stats published_;
};

}  // namespace hvd::detail
