#include "engine/coordinator.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

namespace hvd::detail {

namespace {
constexpr int root = 0;
constexpr Seconds flush_limit{5};
}  // namespace

Coordinator::Coordinator(Transport& transport, Segment& segment, HostBells& bells, TensorTable& table,
                         Observers& observers, const Logger& logger, const Arbiter::Options& options)
    : transport_(transport),
      links_(transport, segment, bells),
      table_(table),
      observers_(observers),
      logger_(logger),
      stream_(transport, segment, bells),
      executor_(
          stream_, observers, [this](const OperationPtr& operation) { finish(operation, std::nullopt); },
          [this] {
            if (arbiter_) arbiter_->on_batch_done();
          }),
      reporter_(transport.topology().rank()) {
  if (transport.topology().rank() == root) arbiter_.emplace(transport.topology().size(), options);
}

bool Coordinator::step(TimePoint now) {
  if (stopped_) return false;
  if (over_) return flush(now);
  bool moved = take_submissions();
  moved = (arbiter_ ? negotiate_as_root(now) : negotiate_with_root()) || moved;
  moved = executor_.step() || moved;
  if (stopping_ && (executor_.idle() || stopping_->abandon)) {
    stop({ErrorCode::shut_down, stopping_->reason});
    moved = true;
  }
  return moved;
}

bool Coordinator::take_submissions() {
  // Looked at first: what was submitted before a rank asked to leave is reported before its leave.
  const bool leaving = leave_asked_.exchange(false, std::memory_order_acq_rel);
  bool moved = table_.take_submitted(submitted_);
  for (OperationPtr& operation : submitted_) {
    const std::uint32_t slot = operation->slot;
    if (slot >= by_slot_.size()) by_slot_.resize(slot + 1);
    reporter_.submit(slot, operation->request, operation->fingerprint);
    by_slot_[slot] = std::move(operation);
  }
  in_flight_ += submitted_.size();
  submitted_.clear();
  if (leaving) {
    const std::scoped_lock lock(leave_mutex_);
    reporter_.leave(*leave_);
  }
  return moved || leaving;
}

bool Coordinator::negotiate_as_root(TimePoint now) {
  bool moved = false;
  if (reporter_.has_news()) arbiter_->accept(root, reporter_.take_report(), now);
  while (const auto message = links_.receive()) {
    arbiter_->accept(message->sender, decode_report(message->bytes), now);
    moved = true;
  }
  if (const auto due = arbiter_->deadline(); due && now >= *due) arbiter_->tick(now);
  for (const std::string& warning : arbiter_->take_warnings()) logger_.warning("stall: {}", warning);
  Plan plan = arbiter_->take_plan();
  if (plan.empty()) return moved;
  const int size = transport_.topology().size();
  if (size > 1) {
    const Bytes message = encode(plan);
    for (int rank = 1; rank < size; ++rank) links_.send(rank, message);
  }
  apply(std::move(plan));
  return true;
}

bool Coordinator::negotiate_with_root() {
  bool moved = false;
  // Speaks when it has news and its last word has been taken in; what becomes ready meanwhile travels together.
  if (reporter_.has_news() && links_.idle(root)) {
    links_.send(root, encode(reporter_.take_report()));
    moved = true;
  }
  while (const auto message = links_.receive()) {
    apply(decode_plan(message->bytes));
    moved = true;
  }
  return moved;
}

void Coordinator::apply(Plan plan) {
  Reporter::Outcome outcome = reporter_.accept(std::move(plan));
  for (const auto& [slot, failure] : outcome.failures) finish(by_slot_[slot], failure);
  for (Reporter::Work& work : outcome.batches) {
    ExecutableBatch batch{.number = work.number, .operations = {}, .rows = {}};
    for (Reporter::Entry& entry : work.entries) {
      batch.operations.push_back(by_slot_[entry.slot]);
      batch.rows.push_back(std::move(entry.rows));
    }
    executor_.enqueue(std::move(batch));
  }
  if (outcome.stop) stopping_ = std::move(outcome.stop);
}

void Coordinator::finish(const OperationPtr& operation, const std::optional<Failure>& failure) {
  const OperationPtr finished = table_.release(operation->slot);
  by_slot_[finished->slot] = nullptr;
  --in_flight_;
  observers_.tell(failure ? Stage::failed : Stage::done, *finished, failure ? failure->text : std::string_view{});
  finished->finish(failure);
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
  executor_.abandon();
  const auto open = table_.close(cause);
  std::ranges::fill(by_slot_, nullptr);
  in_flight_ = 0;
  for (const OperationPtr& operation : open) {
    const Failure failure{cause.code, fmt::format("{} '{}': {}", to_string(operation->request.operation),
                                                  operation->request.name, cause.text)};
    observers_.tell(Stage::failed, *operation, failure.text);
    operation->finish(failure);
  }
}

void Coordinator::break_off(const Failure& cause) {
  if (over_) {
    stopped_ = true;  // not even the last words can be said
    return;
  }
  try {
    if (arbiter_) {
      Plan plan;
      plan.stop = Stop{.reason = fmt::format("rank {} has left: {}", root, cause.text), .abandon = true};
      for (int rank = 1; rank < transport_.topology().size(); ++rank) links_.send(rank, encode(plan));
    } else {
      links_.send(root, encode(Report{.ready = {}, .leave = Leave{.reason = cause.text, .at_once = true}}));
    }
  } catch (const std::exception& error) {
    logger_.error("could not tell the other ranks: {}", error.what());
  }
  stop(cause);
}

bool Coordinator::busy() const { return in_flight_ > 0 || reporter_.has_news(); }

std::optional<TimePoint> Coordinator::deadline() const {
  if (over_) return flush_until_;
  return arbiter_ ? arbiter_->deadline() : std::nullopt;
}

bool Coordinator::must_poll() const { return transport_.topology().host_count() > 1; }

void Coordinator::ask_to_leave(Leave leave) {
  const std::scoped_lock lock(leave_mutex_);
  leave_ = std::move(leave);
  leave_asked_.store(true, std::memory_order_release);
}

}  // namespace hvd::detail
