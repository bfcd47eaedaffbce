#include "engine/tensor_table.h"

#include <fmt/format.h>

#include "negotiation/reporter.h"

namespace hvd::detail {

void TensorTable::admit(const OperationPtr& operation) {
  const std::scoped_lock lock(mutex_);
  if (closed_) {
    const std::string name = operation->request.name.empty() ? "" : fmt::format(" '{}'", operation->request.name);
    throw_failure(
        {closed_->code, fmt::format("{}{}: {}", to_string(operation->request.operation), name, closed_->text)});
  }
  const bool unnamed = operation->request.name.empty();
  if (unnamed) name(operation->request);
  const auto next = static_cast<std::uint32_t>(slots_.size());
  const auto [entry, is_new] =
      slot_of_.try_emplace(tensor_key(operation->request.process_set, operation->request.name), next);
  if (is_new) slots_.emplace_back();
  OperationPtr& slot = slots_[entry->second];
  if (slot != nullptr) {
    const std::chrono::duration<double, std::milli> age = operation->submitted - slot->submitted;
    throw DuplicateNameError(
        unnamed ? fmt::format("{}: {} operations without a name are in flight; wait for some, or name them",
                              to_string(operation->request.operation), unnamed_names)
                : fmt::format("{} '{}': the name is still in flight ({}, handle {}, submitted {:.3g} ms ago)",
                              to_string(operation->request.operation), operation->request.name,
                              to_string(slot->request.operation), slot->number, age.count()));
  }
  // Counted only now: a refused operation must not shift the pairing of the later ones.
  if (unnamed) ++unnamed_[operation->request.operation];
  operation->number = next_number_++;
  operation->slot = entry->second;
  slot = operation;
}

void TensorTable::hand_over(const OperationPtr& operation) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;  // close() has dealt with it
  submitted_.push_back(operation);
  has_submitted_.store(true, std::memory_order_release);
}

void TensorTable::name(Request& request) {
  request.name = fmt::format("{}.noname.{}", to_string(request.operation), unnamed_[request.operation] % unnamed_names);
}

bool TensorTable::take_submitted(std::vector<OperationPtr>& taken) {
  if (!has_submitted_.load(std::memory_order_acquire)) return false;
  const std::scoped_lock lock(mutex_);
  taken.insert(taken.end(), std::make_move_iterator(submitted_.begin()), std::make_move_iterator(submitted_.end()));
  submitted_.clear();
  has_submitted_.store(false, std::memory_order_relaxed);
  return true;
}

OperationPtr TensorTable::release(std::uint32_t slot) {
  const std::scoped_lock lock(mutex_);
  return std::exchange(slots_[slot], nullptr);
}

std::vector<OperationPtr> TensorTable::close(const Failure& failure) {
  const std::scoped_lock lock(mutex_);
  closed_ = failure;
  std::vector<OperationPtr> open;
  for (OperationPtr& slot : slots_) {
    if (slot != nullptr) open.push_back(std::exchange(slot, nullptr));
  }
  submitted_.clear();
  return open;
}

}  // namespace hvd::detail
