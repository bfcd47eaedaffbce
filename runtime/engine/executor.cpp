#include "engine/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hvd::detail {

Executor::Executor(Order order, Observers& observers, Launch launch, OnFinished on_finished, OnBatchDone on_batch_done)
    : order_(order),
      observers_(observers),
      launch_(std::move(launch)),
      on_finished_(std::move(on_finished)),
      on_batch_done_(std::move(on_batch_done)) {}

void Executor::enqueue(ExecutableBatch batch, TimePoint now) {
  for (const auto& operation : batch.operations) {
    operation->batch = batch.number;
    observers_.tell(Stage::negotiated, *operation);
  }
  queue_.push_back({.batch = std::move(batch), .collective = nullptr, .told = Phase::started, .moved = now});
}

bool Executor::step(TimePoint now) {
  bool moved = false;
  for (std::size_t i = 0; i < width();) {
    const Progress progress = step(queue_[i], now);
    moved = moved || progress != Progress::waiting;
    if (progress != Progress::done) {
      ++i;
      continue;
    }
    Running done = std::move(queue_[i]);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(std::move(done));
    if (order_ == Order::all_at_once) continue;
    if (!queue_.empty()) queue_.front().moved = now;
    break;
  }
  return moved;
}

Progress Executor::step(Running& running, TimePoint now) {
  if (running.collective == nullptr) running.collective = launch_(running.batch);
  const Progress progress = running.collective->step();
  if (progress != Progress::waiting) running.moved = now;
  tell_phases(running, running.collective->phase());
  return progress;
}

void Executor::finish(Running running) {
  const std::optional<Failure> failure = running.collective->failure();
  running.collective.reset();
  // Before the waiters go on: what they submit next is planned with this batch out of the way.
  on_batch_done_(running.batch, failure.has_value());
  for (const auto& operation : running.batch.operations) {
    if (!failure) {
      on_finished_(operation, std::nullopt);
      continue;
    }
    const Request& request = operation->request;
    on_finished_(operation, Failure{failure->code, fmt::format("{} '{}': {}", to_string(request.operation),
                                                               request.name, failure->text)});
  }
}

void Executor::tell_phases(Running& running, Phase reached) {
  constexpr auto stage_of = [](Phase phase) {
    return phase == Phase::packed ? Stage::packed : phase == Phase::reduced ? Stage::reduced : Stage::unpacked;
  };
  while (running.told < reached) {
    running.told = static_cast<Phase>(static_cast<std::uint8_t>(running.told) + 1);
    for (const auto& operation : running.batch.operations) observers_.tell(stage_of(running.told), *operation);
  }
}

std::optional<Executor::Stuck> Executor::oldest() const {
  std::optional<Stuck> oldest;
  for (std::size_t i = 0; i < width(); ++i) {
    const Running& running = queue_[i];
    if (!oldest || running.moved < oldest->since) oldest = Stuck{.batch = &running.batch, .since = running.moved};
  }
  return oldest;
}

bool Executor::needs_polling() const {
  for (std::size_t i = 0; i < width(); ++i) {
    if (queue_[i].collective != nullptr && queue_[i].collective->needs_polling()) return true;
  }
  return false;
}

}  // namespace hvd::detail
