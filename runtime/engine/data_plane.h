#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/chunk_stream.h"
#include "engine/executor.h"
#include "engine/launch.h"
#include "engine/observers.h"
#include "negotiation/process_sets.h"
#include "shm/host_bells.h"
#include "transport/transport.h"

namespace hvd::detail {

// Runs this rank's batches: those of a process set one after the other in buffers of the set's own, unlike sets
// independently, point-to-point messages as they come. Progress token only.
class DataPlane {
 public:
  struct Options {
    LaunchOptions launch;
    std::size_t chunk_bytes = 0;
    std::string world;         // token that tells this world's memory from others'
    Seconds stall_warning{0};  // for what has been agreed and does not move; 0: never
    Seconds stall_shutdown{0};
  };

  // `world_memory` has the size that bytes_for_world() says.
  DataPlane(Transport& transport, HostBells& bells, const SharedArenas& arenas, Observers& observers, Options options,
            const ProcessSets& sets, std::unique_ptr<SharedMemory> world_memory, Executor::OnFinished on_finished,
            Executor::OnBatchDone on_batch_done);
  static std::size_t bytes_for_world(const Topology& world, std::size_t chunk_bytes);

  void enqueue(ExecutableBatch batch, TimePoint now);
  bool step(TimePoint now);
  bool idle() const;
  // A batch is under way, or about to be, before which this operation cannot begin.
  bool would_wait(const Request& request) const;
  void abandon();
  // Messages that ring no bell are under way: somebody has to look.
  bool must_poll() const;

  // What has been agreed and has not moved for too long: a report for the log at growing distances, and at last a
  // failure.
  struct Stall {
    std::string report;
    bool is_fatal = false;
  };
  std::optional<Stall> look_for_stall(TimePoint now);
  std::optional<TimePoint> deadline() const;

  DataStats stats() const;
  // What messages that were given up may still read. Nothing can be done afterwards.
  std::vector<std::unique_ptr<SharedMemory>> release_memory();

 private:
  // Of one process set.
  struct Lane {
    Lane(DataPlane& plane, Members set_members, std::string key);

    // True once the memory is there.
    bool attach(DataPlane& plane);
    // On this host.
    bool all_attached() const;
    // Those of this host that keep the others waiting, as far as can be seen here.
    std::vector<int> behind() const;
    std::optional<Executor::Stuck> oldest() const;

    Members members;
    std::string memory_key;
    ChunkPlan plan;
    std::unique_ptr<ChunkBuffers> buffers;
    std::unique_ptr<ChunkStream> stream;
    Executor executor;
    std::optional<ExecutableBatch> removal;  // what ends the lane, once it is idle
    TimePoint removal_since;
  };

  void add_lane(std::uint32_t id, const std::vector<int>& ranks, std::uint32_t channel);
  void finish_change(const ExecutableBatch& batch);
  std::string describe(const Executor::Stuck& stuck, const Lane* lane, TimePoint now) const;
  std::pair<std::optional<Executor::Stuck>, const Lane*> oldest() const;

  Transport& transport_;
  HostBells& bells_;
  const SharedArenas& arenas_;
  Observers& observers_;
  Options options_;
  Executor::OnFinished on_finished_;
  Executor::OnBatchDone on_batch_done_;
  std::map<std::uint32_t, std::unique_ptr<Lane>> lanes_;
  Executor pairs_;
  DataStats ended_;  // of lanes that are no more
  StallClock stall_clock_;
};

}  // namespace hvd::detail
