#include "engine/operation_pool.h"

#include <memory>
#include <mutex>
#include <vector>

#include "types/pooled.h"

namespace hvd::detail {

namespace {

class OperationPool {
 public:
  std::unique_ptr<PendingOperation> take() {
    const std::scoped_lock lock(mutex_);
    if (spare_.empty()) return nullptr;
    auto operation = std::move(spare_.back());
    spare_.pop_back();
    return operation;
  }
  void give_back(std::unique_ptr<PendingOperation> operation) {
    const std::shared_ptr<Engine> last = std::move(operation->engine);  // ends outside the lock, if here
    operation->clear();
    const std::scoped_lock lock(mutex_);
    if (spare_.size() < most) spare_.push_back(std::move(operation));
  }

 private:
  static constexpr std::size_t most = 8192;

  std::mutex mutex_;
  std::vector<std::unique_ptr<PendingOperation>> spare_;
};

// Never destroyed: handles may be dropped when the process ends.
OperationPool& pool() {
  static auto* const the_pool = new OperationPool;
  return *the_pool;
}

}  // namespace

OperationPtr take_operation() {
  auto operation = pool().take();
  if (operation == nullptr) operation = std::make_unique<PendingOperation>();
  const auto give_back = [](PendingOperation* used) { pool().give_back(std::unique_ptr<PendingOperation>(used)); };
  return {operation.release(), give_back, Pooled<PendingOperation>()};
}

}  // namespace hvd::detail
