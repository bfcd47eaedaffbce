#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <hvd/observer.h>

#include "engine/pending_operation.h"

namespace hvd::detail {

// The listeners of a runtime. Telling nobody costs one load.
class Observers {
 public:
  void add(std::shared_ptr<Observer> observer) {
    const std::scoped_lock lock(mutex_);
    auto more = std::make_shared<List>(*list_);
    more->push_back(std::move(observer));
    list_ = std::move(more);
    any_.store(true, std::memory_order_release);
  }

  void tell(Stage stage, const PendingOperation& operation, std::string_view error = {}) {
    if (!any_.load(std::memory_order_acquire) || operation.absent) return;
    std::unique_lock lock(mutex_);
    const auto list = list_;
    lock.unlock();
    const TensorEvent event{.stage = stage,
                            .operation = operation.request.operation,
                            .name = operation.request.name,
                            .bytes = operation.request.bytes(),
                            .batch = operation.batch,
                            .time = std::chrono::steady_clock::now(),
                            .error = error};
    for (const auto& observer : *list) observer->on_event(event);
  }

 private:
  using List = std::vector<std::shared_ptr<Observer>>;
  std::mutex mutex_;
  std::shared_ptr<const List> list_ = std::make_shared<List>();
  std::atomic<bool> any_{false};
};

}  // namespace hvd::detail
