#include "engine/coordinator.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/operation_pool.h"

#include "negotiation/report_checks.h"

namespace hvd::detail {

namespace {

constexpr int root = 0;
constexpr Seconds flush_limit{5};

DataPlane::Options plane_options(const Config& config, const std::string& world) {
  return {.launch = {.join_average = config.join_average, .check = config.check, .test_hang_op = config.test_hang_op},
          .chunk_bytes = static_cast<std::size_t>(config.chunk_bytes),
          .world = world,
          .stall_warning = config.stall_warning,
          .stall_shutdown = config.stall_shutdown};
}

Arbiter::Options arbiter_options(const Config& config) {
  return {.fusion_threshold = config.fusion_threshold,
          .stall_warning = config.stall_warning,
          .stall_shutdown = config.stall_shutdown,
          .cache_capacity = static_cast<std::size_t>(config.cache_capacity)};
}

}  // namespace

Coordinator::Coordinator(const Surroundings& surroundings, const std::string& world,
                         std::unique_ptr<SharedMemory> world_memory)
    : around_(surroundings),
      links_(around_.transport, around_.segment, around_.bells),
      plane_(
          around_.transport, around_.bells, around_.arenas, around_.observers, plane_options(around_.config, world),
          ProcessSets(around_.transport.topology().size(), around_.config.process_sets), std::move(world_memory),
          [this](const OperationPtr& operation, const std::optional<Failure>& failure) { finish(operation, failure); },
          [this](const ExecutableBatch& batch, bool failed) { on_batch_done(batch, failed); }),
      reporter_(around_.transport.topology().rank(),
                ProcessSets(around_.transport.topology().size(), around_.config.process_sets)) {
  const Topology& topology = around_.transport.topology();
  if (topology.rank() == root) {
    arbiter_.emplace(topology.size(), arbiter_options(around_.config),
                     ProcessSets(topology.size(), around_.config.process_sets));
  }
}

bool Coordinator::step(TimePoint now) {
  if (stopped_) return false;
  if (over_) return flush(now);
  bool moved = take_news();
  moved = (arbiter_ ? negotiate_as_root(now) : negotiate_with_root(now)) || moved;
  moved = plane_.step(now) || moved;
  const bool warned = arbiter_ && arbiter_->has_warnings();
  if ((std::exchange(last_look_, now) != now || warned) && look_at_clocks(now)) return true;
  if (stopping_ && (plane_.idle() || stopping_->abandon)) {
    stop({stopping_->code, stopping_->reason});
    moved = true;
  }
  return moved;
}

bool Coordinator::take_news() {
  // Looked at first: what was submitted before a rank asked to leave is reported before its leave.
  const bool leaving = leave_asked_.exchange(false, std::memory_order_acq_rel);
  const bool moved = around_.table.take_news(news_);
  if (moved) {
    for (OperationPtr& operation : news_.submitted) {
      const std::uint32_t slot = operation->slot;
      if (slot >= by_slot_.size()) by_slot_.resize(slot + 1);
      urgent_ = urgent_ || !plane_.would_wait(operation->request);
      reporter_.submit(slot, operation->request, operation->fingerprint, operation->extents);
      by_slot_[slot] = std::move(operation);
    }
    in_flight_ += news_.submitted.size();
    const auto in_flight = [this](const OperationPtr& operation) {
      return operation->slot < by_slot_.size() && by_slot_[operation->slot] == operation;
    };
    for (const OperationPtr& operation : news_.withdrawn) {
      if (in_flight(operation)) reporter_.withdraw(operation->slot);
    }
    for (const OperationPtr& operation : news_.blocked) {
      if (in_flight(operation)) reporter_.block(operation->slot);
    }
    news_.clear();
  }
  if (leaving) {
    const std::scoped_lock lock(leave_mutex_);
    reporter_.leave(*leave_);
  }
  return moved || leaving;
}

// While batches are under way, what becomes ready in their process set gathers: this rank says what there is when one
// has been agreed, so that the next is agreed meanwhile, and then no more until that or until none is left.
bool Coordinator::has_to_speak() const { return reporter_.has_news() && (urgent_ || !reporter_.has_only_readiness()); }

Report Coordinator::take_report() {
  urgent_ = false;
  ++counts_.reports_sent;
  return reporter_.take_report();
}

bool Coordinator::negotiate_as_root(TimePoint now) {
  bool moved = false;
  if (has_to_speak()) arbiter_->accept(root, take_report(), now);
  while (const auto message = links_.receive()) {
    arbiter_->accept(message->sender, read_report(message->sender, message->bytes), now);
    moved = true;
  }
  Plan plan = arbiter_->take_plan();
  if (plan.empty()) return moved;
  send_plan(plan);
  apply(std::move(plan), now);
  return true;
}

void Coordinator::send_plan(const Plan& plan) {
  const int size = around_.transport.topology().size();
  if (size == 1) return;
  const Bytes message = encode(plan);
  for (int rank = 1; rank < size; ++rank) links_.send(rank, counted(message));
}

Bytes Coordinator::counted(Bytes message) {
  counts_.control_bytes += message.size();
  return message;
}

bool Coordinator::negotiate_with_root(TimePoint now) {
  bool moved = false;
  // Not before its last word has been taken in; what becomes ready meanwhile travels together.
  if (has_to_speak() && links_.idle(root)) {
    links_.send(root, counted(encode(take_report())));
    moved = true;
  }
  while (const auto message = links_.receive()) {
    apply(decode_plan(message->bytes), now);
    moved = true;
  }
  return moved;
}

void Coordinator::apply(Plan plan, TimePoint now) {
  ++counts_.plans_received;
  urgent_ = true;
  Reporter::Outcome outcome = reporter_.accept(std::move(plan));
  for (const std::uint32_t slot : outcome.forgotten) around_.table.forget(slot, by_slot_[slot] != nullptr);
  for (Reporter::Work& work : outcome.batches) {
    ExecutableBatch batch = take_on(work);
    count(batch);
    plane_.enqueue(std::move(batch), now);
  }
  counts_.operations_failed += outcome.failures.size();
  if (!outcome.failures.empty()) publish();
  for (const auto& [slot, failure] : outcome.failures) finish(by_slot_[slot], failure);
  if (outcome.stop) stopping_ = std::move(outcome.stop);
}

ExecutableBatch Coordinator::take_on(Reporter::Work& work) {
  ExecutableBatch batch{.number = work.number,
                        .process_set = work.process_set,
                        .absent = std::move(work.absent),
                        .change = std::move(work.change),
                        .operations = {},
                        .extents = {}};
  batch.operations.reserve(work.entries.size());
  batch.extents.reserve(work.entries.size());
  for (Reporter::Entry& entry : work.entries) {
    if (entry.absent != nullptr) {
      batch.operations.push_back(take_operation());
      batch.operations.back()->request = *entry.absent;
      batch.operations.back()->absent = true;
    } else {
      batch.operations.push_back(by_slot_[entry.slot]);
    }
    batch.extents.push_back(std::move(entry.extents));
  }
  if (batch.change) {
    const SetChange& change = *batch.change;
    if (change.ranks.empty()) {
      around_.sets.remove(change.id);
    } else {
      around_.sets.insert(change.id, {.ranks = change.ranks, .channel = change.channel});
    }
    batch.operations.front()->answer = change.id;
  }
  return batch;
}

void Coordinator::on_batch_done(const ExecutableBatch& batch, bool failed) {
  const auto own = static_cast<std::uint64_t>(
      std::ranges::count(batch.operations, false, [](const OperationPtr& operation) { return operation->absent; }));
  (failed ? counts_.operations_failed : counts_.operations_done) += own;
  publish();
  urgent_ = urgent_ || !plane_.would_wait(batch.request());
  if (arbiter_ && batch.request().operation != Operation::send_recv) arbiter_->on_batch_done(batch.process_set);
}

void Coordinator::finish(const OperationPtr& operation, const std::optional<Failure>& failure) {
  if (operation->absent) return;
  const OperationPtr finished = around_.table.release(operation->slot);
  by_slot_[finished->slot] = nullptr;
  --in_flight_;
  if (finished->request.changes_process_sets() && !failure) {  // by no batch
    ++counts_.operations_done;
    publish();
  }
  around_.observers.tell(failure ? Stage::failed : Stage::done, *finished,
                         failure ? failure->text : std::string_view{});
  const bool unseen = failure && failure->code == ErrorCode::stalled && finished->waiters.load() == 0;
  if (unseen && around_.config.stall_policy == StallPolicy::abort) {
    around_.logger.error("{}; nobody waits for it: aborting", failure->text);
    std::abort();
  }
  if (unseen) around_.table.raise_next(*failure);
  finished->finish(failure);
}

// Not at every step: who spins steps far more often than these can have changed. True when it
// has decided something.
bool Coordinator::look_at_clocks(TimePoint now) {
  bool ticked = false;
  if (arbiter_) {
    const auto due = arbiter_->deadline();
    ticked = due && now >= *due;
    if (ticked) arbiter_->tick(now);
    for (const std::string& warning : arbiter_->take_warnings()) report_stall(warning);
  }
  const auto due = plane_.deadline();
  if (!due || now < *due) return ticked;
  const auto stall = plane_.look_for_stall(now);
  if (!stall) return ticked;
  if (!stall->is_fatal) {
    report_stall(stall->report);
    return ticked;
  }
  break_off({ErrorCode::stalled, stall->report});
  return true;
}

void Coordinator::report_stall(const std::string& text) {
  around_.logger.warning("stall: {}", text);
  if (around_.config.on_stall) around_.config.on_stall(text);
}

// The others must still hear the last words; a rank that reads no more is not waited for without a bound.
bool Coordinator::flush(TimePoint now) {
  if (!flush_until_) flush_until_ = after(now, flush_limit);
  stopped_ = links_.flush() || now >= *flush_until_;
  return stopped_;
}

void Coordinator::stop(const Failure& cause) {
  if (over_) return;
  over_ = true;
  plane_.abandon();
  const auto open = around_.table.close(cause);
  std::ranges::fill(by_slot_, nullptr);
  in_flight_ = 0;
  counts_.operations_failed += open.size();
  publish();
  for (const OperationPtr& operation : open) {
    const Failure failure{cause.code, fmt::format("{} '{}': {}", to_string(operation->request.operation),
                                                  operation->request.name, cause.text)};
    around_.observers.tell(Stage::failed, *operation, failure.text);
    operation->finish(failure);
  }
}

void Coordinator::break_off(const Failure& cause) {
  if (over_) {
    stopped_ = true;  // not even the last words can be said
    return;
  }
  // One cause, and all ranks throw the same for it; what only this rank can call by its name ends it for the others.
  const ErrorCode code = cause.code == ErrorCode::stalled ? cause.code : ErrorCode::shut_down;
  try {
    if (arbiter_) {
      Plan plan;
      plan.stop = Stop{.reason = fmt::format("rank {} has left: {}", root, cause.text), .abandon = true, .code = code};
      send_plan(plan);
    } else {
      Report report;
      report.leave = Leave{.reason = cause.text, .at_once = true, .code = code};
      links_.send(root, encode(report));
    }
  } catch (const std::exception& error) {
    around_.logger.error("could not tell the other ranks: {}", error.what());
  }
  stop(cause);
}

bool Coordinator::busy() const { return in_flight_ > 0 || reporter_.has_news() || !plane_.idle(); }

std::optional<TimePoint> Coordinator::deadline() const {
  if (over_) return flush_until_;
  std::optional<TimePoint> next = plane_.deadline();
  if (const auto other = arbiter_ ? arbiter_->deadline() : std::nullopt) next = next ? std::min(*next, *other) : *other;
  return next;
}

bool Coordinator::must_poll() const { return around_.transport.topology().host_count() > 1 || plane_.must_poll(); }

void Coordinator::ask_to_leave(Leave leave) {
  const std::scoped_lock lock(leave_mutex_);
  leave_ = std::move(leave);
  leave_asked_.store(true, std::memory_order_release);
}

void Coordinator::count(const ExecutableBatch& batch) {
  ++counts_.batches;
  if (batch.operations.size() > 1) counts_.fused_tensors += batch.operations.size();
}

// Before waiters go on, so that they find their own operation counted.
void Coordinator::publish() {
  const DataStats data = plane_.stats();
  const Reporter::Counts& reported = reporter_.counts();
  counts_.requests_sent = reported.requests_sent;
  counts_.requests_cached = reported.requests_cached;
  counts_.evictions = reported.evictions;
  counts_.bytes_packed = data.bytes_packed;
  counts_.bytes_unpacked = data.bytes_unpacked;
  counts_.bytes_sent = data.bytes_sent;
  counts_.allocations = data.allocations;
  const std::scoped_lock lock(stats_mutex_);
  published_ = counts_;
  if (!arbiter_) return;
  published_.seconds_waited_for.clear();
  for (const Seconds waited : arbiter_->waited_for()) published_.seconds_waited_for.push_back(waited.count());
}

Stats Coordinator::stats() const {
  const std::scoped_lock lock(stats_mutex_);
  return published_;
}

}  // namespace hvd::detail
