#pragma once

#include <atomic>

namespace hvd::detail {

// Counts a thread that is inside, so that nothing is freed under it: it counts itself, then looks whether there is
// something to wait for; end() finishes all operations, then looks at the count (sequentially consistent, both).
class Caller {
 public:
  explicit Caller(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() { count_.fetch_sub(1); }

 private:
  std::atomic<int>& count_;
};

}  // namespace hvd::detail
