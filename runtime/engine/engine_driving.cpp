#include <utility>  // Boost 1.74's coroutine headers use std::exchange without it

#include "engine/engine.h"

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

#include "engine/caller.h"
#include "types/pooled.h"

// The part of the engine that drives the coordinator; see the table in engine.h.
namespace hvd::detail {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How often a driver looks again before it sleeps, and after how many looks it wakes those who sleep in a socket. With
// more ranks than cores it does not spin at all: every turn of a spinning rank is taken from one that has work. A
// thread that waits then gives its turn to others for a while, which costs far less than to sleep and to be woken; the
// coordinator thread does not, as the program may compute meanwhile.
constexpr int waiter_looks = 100;
constexpr int thread_looks = 100;
constexpr int looks_before_ringing = 100;
constexpr int waiter_yields = 20;
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

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Does nothing; many submissions post one.
struct WakeUp {
  using allocator_type = Pooled<std::byte>;
  allocator_type get_allocator() const noexcept { return {}; }
  void operator()() const {}
};

// Ranks that wait so long for one operation have nothing else to do: the root hears of it, for it may be a deadlock.
constexpr auto blocked_after = 250ms;

}  // namespace

int Engine::choose_look_limit(const Topology& topology) {
  return topology.local_size() <= static_cast<int>(std::thread::hardware_concurrency()) ? waiter_looks : 0;
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
    if (look_again(looks, look_limit_, waiter_yields)) continue;
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
    if (coordinator_->busy() && look_again(looks, std::min(look_limit_, thread_looks), 0)) continue;
    ring_sleepers();
    bells_->mine().announce(sleeper());
    if (!step()) break;
    bells_->mine().awake();
    looks = 0;
  }
  return next_look(Clock::now());
}

// From here on news must wake the coordinator thread. What came while the bell said otherwise is looked at here, for
// what other ranks say before this one has anything in flight is soon taken in, and a wake-up takes long.
void Engine::give_up_token() {
  constexpr int most_steps = 16;
  bells_->mine().announce(sleeper());
  bool more = step();
  for (int steps = 1; more && steps < most_steps && !coordinator_->busy(); ++steps) more = step();
  more = more || coordinator_->stopped() || coordinator_->must_poll();
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

bool Engine::look_again(int& looks, int pauses, int yields) {
  ++looks;
  if (looks == 1 && coordinator_->must_poll() && Clock::now() - last_news_ > long_wait) return false;
  if (looks == looks_before_ringing || looks == pauses + 1) ring_sleepers();
  if (looks <= pauses) {
    pause();
    return true;
  }
  // Messages between hosts ring no bell: look a while longer.
  if (looks <= pauses + (coordinator_->must_poll() ? yields_for_remote_news : yields)) {
    std::this_thread::yield();
    steps_to_clock_ = 0;  // that may have taken long
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

void Engine::wake_thread() { boost::asio::post(io_, WakeUp{}); }

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

}  // namespace hvd::detail
