#include <utility>  // Boost 1.74's coroutine headers use std::exchange without it

#include "engine/engine.h"

#include <unistd.h>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

#include "config/settings.h"
#include "engine/rendezvous.h"
#include "negotiation/rank_groups.h"
#include "observe/timeline.h"

namespace hvd::detail {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How often a driver looks again before it sleeps, and after how many looks it wakes those who sleep in a socket. With
// more ranks than cores it does not look again at all: every turn of a spinning rank is taken from one that has work.
constexpr int waiter_looks = 600;
constexpr int thread_looks = 100;
constexpr int looks_before_ringing = 100;
constexpr int yields_for_remote_news = 100;
constexpr auto longest_sleep = 1s;

// Reading the clock takes as long as a look at everything that may have changed.
constexpr int steps_per_clock = 31;

// Who has waited so long for another host does not look again before it sleeps, or it would hardly sleep at all.
constexpr auto long_wait = 10ms;

// How often a driver looks for messages from other hosts, which wake nobody: with operations in flight, with none or
// when nothing has come for a while, and when both are so.
constexpr auto busy_poll = 100us;
constexpr auto idle_poll = 1ms;
constexpr auto long_idle_poll = 5ms;
constexpr auto long_idle = 1s;

int choose_look_limit(const Topology& topology) {
  return topology.local_size() <= static_cast<int>(std::thread::hardware_concurrency()) ? waiter_looks : 0;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Counts a thread that is inside, so that nothing is freed under it: it counts itself, then looks whether there is
// something to wait for; end() finishes all operations, then looks at the count (sequentially consistent, both).
class Caller {
 public:
  explicit Caller(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() { count_.fetch_sub(1); }

 private:
  std::atomic<int>& count_;
};

// Does nothing; its memory comes from a pool, for many submissions post one.
struct WakeUp {
  using allocator_type = std::pmr::polymorphic_allocator<std::byte>;
  std::pmr::memory_resource* memory;
  allocator_type get_allocator() const noexcept { return memory; }
  void operator()() const {}
};

// Ranks that wait so long for one operation have nothing else to do: the root hears of it, for it may be a deadlock.
constexpr auto blocked_after = 250ms;

Config checked(Config config) {
  check_config(config);
  for (auto& ranks : config.process_sets) std::ranges::sort(ranks);
  return config;
}

// Up to the first that cannot be, and why that cannot: all ranks must hear of it, for they wait for this one.
std::pair<ProcessSets, std::string> sets_of(const Topology& topology, const Config& config) {
  ProcessSets sets(topology.size(), {});
  for (const auto& ranks : config.process_sets) {
    if (const std::string problem = sets.problem_with(ranks); !problem.empty()) {
      return {sets, fmt::format("Config::process_sets: {}: {}", format_ranks(ranks), problem)};
    }
    sets.add(ranks);
  }
  return {sets, std::string()};
}

}  // namespace

Engine::Engine(std::unique_ptr<Transport> transport, const Config& config)
    : config_(checked(config)),
      transport_(std::move(transport)),
      topology_(transport_->topology()),
      logger_(config.log_level, config.log_hide_time, topology_.rank(), topology_.size()),
      look_limit_(choose_look_limit(topology_)),
      sets_(sets_of(topology_, config_).first),
      arenas_(topology_.local_rank()),
      table_(sets_) {
  std::string trouble = sets_of(topology_, config_).second;
  if (trouble.empty()) trouble = start_timeline();
  world_ = agree_on_start(*transport_, config_, trouble);
  std::unique_ptr<SharedMemory> world_memory;
  require_no_trouble(*transport_, config_, connect(world_memory));
  coordinator_ = std::make_unique<Coordinator>(Surroundings{.transport = *transport_,
                                                            .segment = *segment_,
                                                            .bells = *bells_,
                                                            .table = table_,
                                                            .sets = sets_,
                                                            .arenas = arenas_,
                                                            .observers = observers_,
                                                            .logger = logger_,
                                                            .config = config_},
                                               world_, std::move(world_memory));
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() { leave("its runtime was destroyed"); }

// Makes what the ranks of the host share. Returns what has gone wrong, or nothing.
std::string Engine::connect(std::unique_ptr<SharedMemory>& world_memory) {
  try {
    const auto local_ranks = topology_.ranks_on(topology_.host());
    segment_ =
        std::make_unique<HostSegment>(transport_->share(HostSegment::bytes_for(topology_), config_.start_timeout));
    world_memory = transport_->share(
        DataPlane::bytes_for_world(topology_, static_cast<std::size_t>(config_.chunk_bytes)), config_.start_timeout);
    bells_ = std::make_unique<HostBells>(*segment_, topology_);
    doorbell_ =
        std::make_unique<Doorbell>(io_, world_, topology_.rank(), std::vector(local_ranks.begin(), local_ranks.end()));
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Returns why it cannot be written, or nothing.
std::string Engine::start_timeline() {
  if (config_.timeline.empty()) return {};
  try {
    const TimelineOptions options{.pattern = config_.timeline,
                                  .rank = topology_.rank(),
                                  .size = topology_.size(),
                                  .host = boost::asio::ip::host_name()};
    observers_.add(std::make_shared<Timeline>(options, logger_));
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void Engine::throw_if_forked() const {
  if (!forked()) return;
  throw NotInitializedError(fmt::format(
      "not usable after fork: this process is a child of rank {}; start helpers before init() or without fork",
      topology_.rank()));
}

void Engine::submit(const OperationPtr& operation, bool wake) {
  throw_if_forked();
  const Caller caller(callers_);
  operation->engine = shared_from_this();
  table_.admit(operation);
  observers_.tell(Stage::submitted, *operation);
  table_.hand_over(operation);
  if (wake) wake_driver();
}

bool Engine::wait(const OperationPtr& operation, std::optional<TimePoint> until) {
  throw_if_forked();
  const Caller caller(callers_);
  const Caller waiter(operation->waiters);
  // A wait without a bound is told to the root when it has become long, once.
  bool tell = !until && topology_.size() > 1;
  TimePoint now = Clock::now();
  const TimePoint blocked_at = now + blocked_after;
  for (; !operation->done(); now = Clock::now()) {
    if (until && now >= *until) return false;
    if (tell && now >= blocked_at) {
      table_.tell_blocked(operation);
      tell = false;
    }
    const std::optional<TimePoint> pause = tell ? std::optional(blocked_at) : until;
    if (token_.try_take()) {
      drive_for(*operation, pause);
      give_up_token();
    } else {
      wake_driver();  // it may sleep, and not know of this operation yet
      const auto limit = pause ? std::min<Clock::duration>(*pause - now, longest_sleep) : longest_sleep;
      operation->sleep(limit);
    }
  }
  return true;
}

bool Engine::cancel(const OperationPtr& operation) {
  throw_if_forked();
  if (!operation->done()) {
    table_.ask_to_withdraw(operation);
    wait(operation, std::nullopt);
  }
  return operation->failure() && operation->failure()->code == ErrorCode::cancelled;
}

std::uint32_t Engine::next_arena() {
  const std::uint32_t number = arena_count_.fetch_add(1);
  if (number < SharedArenas::most) return number;
  throw InvalidArgumentError(fmt::format("arena: there are {} already", SharedArenas::most));
}

std::span<std::byte> Engine::share_arena(std::uint32_t number, const std::vector<std::int64_t>& bytes_by_rank) {
  constexpr std::size_t page = 4096;
  std::vector<std::size_t> begins{0};
  for (const int rank : topology_.ranks_on(topology_.host())) {
    const auto bytes = static_cast<std::size_t>(bytes_by_rank.at(static_cast<std::size_t>(rank)));
    begins.push_back(begins.back() + (bytes + page - 1) / page * page);
  }
  const std::string key = fmt::format("{}-arena-{}-{}", world_, number, topology_.host());
  const TimePoint last = after(Clock::now(), config_.start_timeout);
  for (;;) {
    {
      const std::scoped_lock lock(end_mutex_);
      if (coordinator_ == nullptr) throw ShutDownError("arena: the runtime has ended");
      auto memory = transport_->try_share(key, std::max(begins.back(), page), topology_.local_size());
      if (memory != nullptr) return arenas_.add(number, std::move(memory), std::move(begins));
    }
    if (Clock::now() >= last) throw StallError("arena: the other ranks of the host have not come for their memory");
    std::this_thread::sleep_for(100us);
  }
}

Stats Engine::stats() {
  const std::scoped_lock lock(end_mutex_);
  return coordinator_ == nullptr ? last_stats_ : coordinator_->stats();
}

void Engine::drive_for(PendingOperation& operation, std::optional<TimePoint> until) {
  bells_->mine().awake();
  steps_to_clock_ = 0;
  int looks = 0;
  while (!operation.done() && !coordinator_->stopped()) {
    if (step()) {
      looks = 0;
      continue;
    }
    if (until && now_ >= *until) return;
    if (look_again(looks, look_limit_)) continue;
    ring_sleepers();
    const std::uint32_t seen = bells_->mine().announce(Bell::Sleeper::futex);
    if (!step()) {
      const TimePoint now = Clock::now();
      const TimePoint wake = until ? std::min(*until, next_look(now)) : next_look(now);
      bells_->mine().sleep_on_futex(seen, wake - now);
    }
    bells_->mine().awake();
    steps_to_clock_ = 0;
    looks = 0;
  }
}

// Until there is nothing to do, for this thread, before something new comes; returns when to look anyway.
TimePoint Engine::drive_in_background() {
  bells_->mine().awake();
  steps_to_clock_ = 0;
  int looks = 0;
  while (!coordinator_->stopped()) {
    if (step()) {
      looks = 0;
      continue;
    }
    if (coordinator_->busy() && look_again(looks, std::min(look_limit_, thread_looks))) continue;
    ring_sleepers();
    bells_->mine().announce(sleeper());
    if (!step()) break;
    bells_->mine().awake();
    looks = 0;
  }
  return next_look(Clock::now());
}

// From here on news must wake the coordinator thread. What came while the bell said otherwise is looked at once more.
void Engine::give_up_token() {
  bells_->mine().announce(sleeper());
  const bool more = step() || coordinator_->stopped() || coordinator_->must_poll();
  ring_sleepers();
  if (token_.give_back() || more) wake_thread();
}

Bell::Sleeper Engine::sleeper() const { return coordinator_->busy() ? Bell::Sleeper::socket : Bell::Sleeper::resting; }

bool Engine::step() noexcept {
  try {
    if (deserted_.load(std::memory_order_acquire)) throw ShutDownError("shutdown: the other ranks do not answer");
    if (steps_to_clock_-- == 0) {
      now_ = Clock::now();
      steps_to_clock_ = steps_per_clock;
    }
    if (!coordinator_->step(now_)) return false;
    last_news_ = now_;
    return true;
  } catch (const Error& error) {
    coordinator_->break_off({error.code(), error.what()});
  } catch (const std::exception& error) {
    coordinator_->break_off({ErrorCode::internal, fmt::format("internal: {}", error.what())});
  }
  return false;
}

bool Engine::look_again(int& looks, int limit) {
  ++looks;
  if (looks == 1 && coordinator_->must_poll() && Clock::now() - last_news_ > long_wait) return false;
  if (looks == looks_before_ringing) ring_sleepers();
  if (looks <= limit) {
    pause();
    return true;
  }
  // Messages between hosts ring no bell: give way to others, but look a while longer.
  if (coordinator_->must_poll() && looks <= limit + yields_for_remote_news) {
    std::this_thread::yield();
    return true;
  }
  return false;
}

void Engine::ring_sleepers() {
  bells_->flush_late([this](int local_rank) { doorbell_->ring(local_rank); });
}

TimePoint Engine::next_look(TimePoint now) const {
  TimePoint next = now + longest_sleep;
  if (coordinator_->must_poll()) {
    const bool quiet = now - last_news_ > long_idle;
    const auto often = quiet ? idle_poll : busy_poll;
    const auto rarely = quiet ? long_idle_poll : idle_poll;
    next = now + (coordinator_->busy() ? often : rarely);
  }
  if (const auto deadline = coordinator_->deadline()) next = std::min(next, *deadline);
  return next;
}

// A driver that is awake looks by itself; one that sleeps is rung.
void Engine::wake_driver() {
  const Bell::Sleeper who = segment_->bell(topology_.local_rank()).ring();
  if (who == Bell::Sleeper::socket || who == Bell::Sleeper::resting) wake_thread();
}

void Engine::wake_thread() { boost::asio::post(io_, WakeUp{&wake_memory_}); }

void Engine::run() {
  for (TimePoint next = Clock::now();;) {
    if (token_.try_take()) {
      next = drive_in_background();
      const bool over = coordinator_->stopped();
      const bool wanted = token_.give_back();
      if (over) break;
      if (wanted) continue;
    } else {
      next = Clock::now() + longest_sleep;  // the driver sees to it that this thread is woken when it stops
    }
    io_.run_one_until(next);
    io_.poll();
  }
  end();
}

// The runtime is over on all ranks: gives the transport's resources back, once no caller can touch them any more.
void Engine::end() noexcept {
  while (callers_.load() > 0) std::this_thread::sleep_for(10us);
  std::vector<std::unique_ptr<SharedMemory>> memory;
  {
    const std::scoped_lock lock(end_mutex_);
    ring_sleepers();
    last_stats_ = coordinator_->stats();
    memory = coordinator_->release_memory();
    coordinator_.reset();
    doorbell_.reset();
    bells_.reset();
  }
  // Freeing shared windows and communicators waits for the others: without them, these stay until the process ends.
  if (!deserted_.load(std::memory_order_acquire) && transport_->close()) {
    memory.clear();
    segment_.reset();
    transport_.reset();
  } else {
    for (auto& piece : memory) static_cast<void>(piece.release());
    static_cast<void>(segment_.release());
    static_cast<void>(transport_.release());
  }
  const std::scoped_lock lock(end_mutex_);
  ended_.store(true, std::memory_order_release);
  end_reached_.notify_all();
}

bool Engine::await_end(Seconds limit, std::unique_lock<std::mutex>& lock) {
  return end_reached_.wait_for(lock, limit, [this] { return !running(); });
}

// With end_mutex_ held: end() takes the coordinator away under it.
void Engine::ask_to_leave(const Leave& leave) {
  if (coordinator_ == nullptr) return;
  coordinator_->ask_to_leave(leave);
  wake_driver();
}

void Engine::leave(const std::string& reason) noexcept {
  std::unique_lock lock(end_mutex_);
  ask_to_leave({.reason = reason, .at_once = false});
  if (!await_end(config_.shutdown_timeout, lock)) {
    const double waited = config_.shutdown_timeout.count();
    ask_to_leave(
        {.reason = fmt::format("{}, and waited {} s for operations in flight", reason, waited), .at_once = true});
    if (!await_end(config_.shutdown_timeout + 15s, lock)) {
      logger_.error("shutdown: the other ranks do not answer; leaving without them");
      deserted_.store(true, std::memory_order_release);
      if (coordinator_ != nullptr) wake_driver();
      wake_thread();
      end_reached_.wait(lock, [this] { return !running(); });
    }
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace hvd::detail
