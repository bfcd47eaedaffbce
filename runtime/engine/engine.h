#pragma once

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <hvd/config.h>
#include <hvd/observer.h>

#include "engine/coordinator.h"
#include "engine/doorbell.h"
#include "engine/observers.h"
#include "engine/pending_operation.h"
#include "engine/progress_token.h"
#include "engine/tensor_table.h"
#include "observe/log.h"
#include "shm/host_bells.h"
#include "shm/shared_arenas.h"
#include "transport/transport.h"
#include "types/fork.h"

namespace hvd::detail {

// The threads around a coordinator: who drives it, who sleeps, who wakes whom.
//
// Driving needs the progress token. The coordinator thread takes it when it is woken and gives it up when there is
// nothing to do; a thread that waits for an operation takes it, if free, and drives until its operation is done, which
// saves two thread hand-offs. Whoever gives the token up leaves this rank's bell set so that news wakes the coordinator
// thread:
//
// | driver                | sleeps in             | bell says | woken by                                          |
// |-----------------------|-----------------------|-----------|---------------------------------------------------|
// | waiting user thread   | futex on the bell     | futex     | a peer's or an own submission's ring              |
// | coordinator thread    | io_context            | socket, or resting when nothing is in flight               |
// |                       |                       |           | datagram (peers), post (own process), time        |
// | waiter without token  | futex on its operation| -         | the driver finishing the operation                |
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::unique_ptr<Transport> transport, const Config& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Topology& topology() const { return topology_; }
  const Config& config() const { return config_; }
  const SharedSets& sets() const { return sets_; }
  Stats stats();
  bool running() const { return !ended_.load(std::memory_order_acquire); }
  // In a child of the process that made it, an engine has no thread and must not touch what it shares with the parent.
  bool forked() const { return fork_count() != forks_; }
  void throw_if_forked() const;

  // Hands over an operation whose arguments have been checked. `wake`: see to it that somebody drives; not needed when
  // the caller waits next.
  void submit(const OperationPtr& operation, bool wake);
  // For what was submitted without.
  void wake();
  // Drives or sleeps until the operation is done or the time has come; true if done.
  bool wait(const OperationPtr& operation, std::optional<TimePoint> until);
  // Withdraws the operation unless it is under way; waits for the decision. True if it was withdrawn.
  bool cancel(const OperationPtr& operation);
  // The number of the next arena, as far as this rank knows.
  std::uint32_t next_arena() const { return arena_count_.load(); }
  struct ArenaMemory {
    std::unique_ptr<SharedMemory> memory;
    std::vector<std::size_t> begins;  // of the parts of the ranks of this host, and the end
  };
  // Of so many bytes by rank. Throws when there is no room for it.
  ArenaMemory share_arena(std::uint32_t number, const std::vector<std::int64_t>& bytes_by_rank);
  // From here on what lies in it is reduced there; returns this rank's part.
  std::span<std::byte> add_arena(std::uint32_t number, ArenaMemory arena);
  // Ends this rank's part, see Runtime::shutdown() and, for `at_once`, Runtime::leave(); joins the coordinator thread.
  void leave(const std::string& reason, bool at_once) noexcept;
  void add_observer(std::shared_ptr<Observer> observer) { observers_.add(std::move(observer)); }

 private:
  static int choose_look_limit(const Topology& topology);
  std::string start_timeline();
  std::string connect(std::unique_ptr<SharedMemory>& world_memory);
  void run();
  bool step() noexcept;
  void drive_for(PendingOperation& operation, std::optional<TimePoint> until);
  TimePoint drive_in_background();
  void give_up_token();
  Bell::Sleeper sleeper() const;
  bool look_again(int& looks, int pauses, int yields);
  void ring_sleepers();
  TimePoint next_look(TimePoint now) const;
  void wake_driver();
  void wake_thread();
  void ask_to_leave(const Leave& leave);
  bool await_end(Seconds limit, std::unique_lock<std::mutex>& lock);
  void end() noexcept;

  const int forks_ = fork_count();
  Config config_;
  std::unique_ptr<Transport> transport_;
  const Topology topology_;
  Logger logger_;
  const int look_limit_;
  std::string world_;  // token that tells this world's memory from others'
  boost::asio::io_context io_{1};
  std::unique_ptr<Doorbell> doorbell_;
  std::unique_ptr<HostSegment> segment_;
  std::unique_ptr<HostBells> bells_;
  Observers observers_;
  SharedSets sets_;
  SharedArenas arenas_;
  std::atomic<std::uint32_t> arena_count_{0};
  TensorTable table_;
  std::unique_ptr<Coordinator> coordinator_;
  ProgressToken token_;
  TimePoint now_{};              // as last read; progress token, as the next two
  int steps_to_clock_ = 0;       // until it is read again
  TimePoint last_news_{};        // when step() moved something
  std::atomic<int> callers_{0};  // threads inside submit() and wait()
  std::atomic<bool> ended_{false};
  std::atomic<bool> deserted_{false};  // the other ranks do not answer: leave without them
  Stats last_stats_;                   // once the coordinator is gone
  std::mutex end_mutex_;
  std::condition_variable end_reached_;
  std::thread thread_;
};

}  // namespace hvd::detail
