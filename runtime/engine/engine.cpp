#include <utility>  // Boost 1.74's coroutine headers use std::exchange without it

#include "engine/engine.h"

#include <boost/asio/ip/host_name.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <hvd/error.h>
#include <algorithm>
#include <limits>

#include "config/settings.h"
#include "engine/caller.h"
#include "engine/rendezvous.h"
#include "negotiation/rank_groups.h"
#include "observe/timeline.h"

namespace hvd::detail {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

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

Engine::~Engine() { leave("its runtime was destroyed", /*at_once=*/false); }

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

void Engine::wake() {
  const std::scoped_lock lock(end_mutex_);
  if (coordinator_ != nullptr) wake_driver();
}

bool Engine::cancel(const OperationPtr& operation) {
  throw_if_forked();
  if (!operation->done()) {
    table_.ask_to_withdraw(operation);
    wait(operation, std::nullopt);
  }
  return operation->failure() && operation->failure()->code == ErrorCode::cancelled;
}

Engine::ArenaMemory Engine::share_arena(std::uint32_t number, const std::vector<std::int64_t>& bytes_by_rank) {
  constexpr std::int64_t page = 4096;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  if (number >= SharedArenas::most) {
    throw InvalidArgumentError(fmt::format("there are {} arenas already", SharedArenas::most));
  }
  arena_count_.store(number + 1);
  std::int64_t total = 0;
  std::vector<std::size_t> begins{0};
  for (const int rank : topology_.ranks_on(topology_.host())) {
    const std::int64_t bytes = bytes_by_rank.at(static_cast<std::size_t>(rank));
    if (bytes < 0 || bytes > most - page || total > most - bytes - page) {
      throw InvalidArgumentError(fmt::format("the ranks of host {} ask for too much", topology_.host()));
    }
    total += (bytes + page - 1) / page * page;
    begins.push_back(static_cast<std::size_t>(total));
  }
  const std::string key = fmt::format("{}-arena-{}-{}", world_, number, topology_.host());
  const std::size_t size = static_cast<std::size_t>(std::max(total, page));
  const TimePoint last = after(Clock::now(), config_.start_timeout);
  for (;;) {
    {
      const std::scoped_lock lock(end_mutex_);
      if (coordinator_ == nullptr) throw ShutDownError("arena: the runtime has ended");
      auto memory = transport_->try_share(key, size, topology_.local_size());
      if (memory != nullptr) return {.memory = std::move(memory), .begins = std::move(begins)};
    }
    if (Clock::now() >= last) throw StallError("arena: the other ranks of the host have not come for their memory");
    std::this_thread::sleep_for(100us);
  }
}

std::span<std::byte> Engine::add_arena(std::uint32_t number, ArenaMemory arena) {
  const std::scoped_lock lock(end_mutex_);
  return arenas_.add(number, std::move(arena.memory), std::move(arena.begins));
}

Stats Engine::stats() {
  const std::scoped_lock lock(end_mutex_);
  return coordinator_ == nullptr ? last_stats_ : coordinator_->stats();
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

void Engine::leave(const std::string& reason, bool at_once) noexcept {
  std::unique_lock lock(end_mutex_);
  Leave leave{.reason = reason, .at_once = at_once};
  if (at_once) leave.process = fmt::format("host {}, pid {}", boost::asio::ip::host_name(), ::getpid());
  ask_to_leave(leave);
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
