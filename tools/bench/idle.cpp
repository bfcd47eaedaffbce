#include "idle.h"

#include <hvd/hvd.h>
#include <ctime>
#include <thread>

namespace hvd::bench {

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

void run_idle(Session& session, double seconds) {
  if (!session.peers().hvd) return session.say("idle: hvd is not among the peers");
  std::vector<float> values(1, 1.0F);
  allreduce(values, {.name = "idle"});
  session.world().barrier();
  // The last operation may still be put away.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));

  const Stats before = stats();
  const double cpu_before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double cpu = cpu_seconds() - cpu_before;
  const double wall = microseconds_since(start) * 1e-6;
  const Stats after = stats();

  Record record = session.record("idle", 0, DataType::f32);
  record.peer = "hvd";
  record.variant = "asleep";
  record.counts["seconds"] = wall;
  record.counts["messages"] = session.world().greatest(
      static_cast<double>(after.reports_sent - before.reports_sent + after.plans_received - before.plans_received));
  record.counts["cores"] = session.world().greatest(cpu / wall);
  session.add({record});
}

}  // namespace hvd::bench
