#include <hvd/handle.h>

#include <hvd/error.h>

#include "engine/engine.h"
#include "engine/pending_operation.h"

namespace hvd {

namespace {

detail::PendingOperation& checked(const std::shared_ptr<detail::PendingOperation>& operation) {
  if (operation == nullptr) throw InvalidArgumentError("the handle is empty");
  return *operation;
}

void throw_if_failed(const detail::PendingOperation& operation) {
  if (operation.failure()) throw_failure(*operation.failure());
}

}  // namespace

void Handle::wait() const {
  detail::PendingOperation& operation = checked(operation_);
  if (!operation.done()) operation.engine->wait(operation_, std::nullopt);
  throw_if_failed(operation);
}

bool Handle::wait_for(std::chrono::duration<double> timeout) const {
  detail::PendingOperation& operation = checked(operation_);
  std::optional<TimePoint> until;
  if (timeout < countable) until = after(std::chrono::steady_clock::now(), timeout);
  if (!operation.done() && !operation.engine->wait(operation_, until)) return false;
  throw_if_failed(operation);
  return true;
}

bool Handle::ready() const { return operation_ == nullptr || operation_->done(); }

bool Handle::cancel() const { return checked(operation_).engine->cancel(operation_); }

Tensor Handle::take_output() const {
  std::vector<Tensor> outputs = take_outputs();
  return outputs.empty() ? Tensor() : std::move(outputs.front());
}

std::vector<Tensor> Handle::take_outputs() const {
  wait();
  return std::exchange(operation_->results, {});
}

const std::vector<std::int64_t>& Handle::received_splits() const {
  wait();
  return operation_->received_splits;
}

int Handle::last_joined_rank() const {
  wait();
  if (operation_->request.operation != Operation::join) {
    throw InvalidArgumentError("last_joined_rank: the handle is not of a join");
  }
  return static_cast<int>(operation_->answer);
}

}  // namespace hvd
