#include "engine/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace hvd::detail {

namespace {

std::string title(const Request& request) {
  const std::string name = request.name.empty() ? "" : fmt::format(" '{}'", request.name);
  return fmt::format("{}{}", to_string(request.operation), name);
}

void move_to(std::vector<OperationPtr>& to, std::vector<OperationPtr>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

}  // namespace

void TensorTable::News::clear() {
  submitted.clear();
  withdrawn.clear();
  blocked.clear();
}

void TensorTable::admit(const OperationPtr& operation) {
  Request& request = operation->request;
  const bool unnamed = request.name.empty();
  static thread_local std::string key;  // its memory serves again
  if (!unnamed) write_key(request, key);
  const std::scoped_lock lock(mutex_);
  if (closed_) throw_failure({closed_->code, fmt::format("{}: {}", title(request), closed_->text)});
  if (unseen_) throw_failure(*std::exchange(unseen_, std::nullopt));
  refuse_if_joined(request);
  if (unnamed) {
    name(request);
    write_key(request, key);
  }
  const std::uint32_t number = slot_for(key);
  Slot& slot = slots_[number];
  if (slot.operation != nullptr) {
    const std::chrono::duration<double, std::milli> age = operation->submitted - slot.operation->submitted;
    throw DuplicateNameError(
        unnamed
            ? fmt::format("{}: {} operations without a name are in flight; wait for some, or name them",
                          to_string(request.operation), unnamed_names)
            : fmt::format("{}: the name is still in flight ({}, handle {}, submitted {:.3g} ms ago)", title(request),
                          to_string(slot.operation->request.operation), slot.operation->number, age.count()));
  }
  // Counted only now: a refused operation must not shift the pairing of the later ones.
  if (unnamed) ++unnamed_count(request);
  if (request.operation == Operation::join) joined_.push_back(request.process_set);
  operation->number = next_number_++;
  operation->slot = number;
  slot.operation = operation;
}

void TensorTable::refuse_if_joined(const Request& request) const {
  if (request.operation == Operation::join) return;  // a second one is a duplicate name
  for (const std::uint32_t set : joined_) {
    if (!sets_.contains(set, request.process_set)) continue;
    throw InvalidArgumentError(fmt::format("{}: this rank has joined{}; wait for that first", title(request),
                                           set == 0 ? "" : fmt::format(" process set {}", set)));
  }
}

std::uint32_t TensorTable::slot_for(const std::string& key) {
  const bool reuse = !free_.empty();
  const auto [entry, is_new] =
      slot_of_.try_emplace(key, reuse ? free_.back() : static_cast<std::uint32_t>(slots_.size()));
  if (is_new) {
    if (reuse) {
      free_.pop_back();
    } else {
      slots_.emplace_back();
    }
    slots_[entry->second].key = &entry->first;
  }
  return entry->second;
}

void TensorTable::hand_over(const OperationPtr& operation) { ask(submitted_, operation); }

void TensorTable::ask(std::vector<OperationPtr>& list, const OperationPtr& operation) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;  // close() has dealt with it
  list.push_back(operation);
  has_news_.store(true, std::memory_order_release);
}

void TensorTable::name(Request& request) {
  request.name = fmt::format("{}.noname.{}", to_string(request.operation), unnamed_count(request) % unnamed_names);
}

std::uint64_t& TensorTable::unnamed_count(const Request& request) {
  const bool pair = request.operation == Operation::send_recv;
  return unnamed_[fmt::format("{} {} {}>{}", to_string(request.operation), request.process_set, pair ? request.root : 0,
                              pair ? request.peer : 0)];
}

bool TensorTable::take_news(News& news) {
  if (!has_news_.load(std::memory_order_acquire)) return false;
  const std::scoped_lock lock(mutex_);
  move_to(news.submitted, submitted_);
  move_to(news.withdrawn, withdrawn_);
  move_to(news.blocked, blocked_);
  has_news_.store(false, std::memory_order_relaxed);
  return true;
}

OperationPtr TensorTable::release(std::uint32_t number) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[number];
  OperationPtr operation = std::exchange(slot.operation, nullptr);
  if (operation->request.operation == Operation::join) std::erase(joined_, operation->request.process_set);
  if (slot.forgotten) free(slot, number);
  return operation;
}

void TensorTable::forget(std::uint32_t number, bool executing) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[number];
  if (slot.key == nullptr) return;
  if (executing) {
    slot.forgotten = true;
  } else if (slot.operation == nullptr) {
    free(slot, number);
  }
}

void TensorTable::free(Slot& slot, std::uint32_t number) {
  slot_of_.erase(std::string(*slot.key));
  slot = {};
  free_.push_back(number);
}

void TensorTable::raise_next(Failure failure) {
  const std::scoped_lock lock(mutex_);
  if (!unseen_) unseen_ = std::move(failure);
}

std::vector<OperationPtr> TensorTable::close(const Failure& failure) {
  const std::scoped_lock lock(mutex_);
  closed_ = failure;
  std::vector<OperationPtr> open;
  for (Slot& slot : slots_) {
    if (slot.operation != nullptr) open.push_back(std::exchange(slot.operation, nullptr));
  }
  submitted_.clear();
  withdrawn_.clear();
  blocked_.clear();
  return open;
}

}  // namespace hvd::detail
