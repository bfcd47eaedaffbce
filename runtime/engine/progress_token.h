#pragma once

#include <atomic>

namespace hvd::detail {

// Who holds it drives progress. Nobody waits for it: a thread that does not get it leaves a mark, and the holder finds
// the mark after it has let go, so that what the other came for is not forgotten. (Both sides write, then read the
// other's word; sequential consistency makes it impossible that both miss.)
class ProgressToken {
 public:
  bool try_take() {
    if (!held_.exchange(true)) return true;
    wanted_.store(true);
    return !held_.exchange(true);
  }
  // True when somebody was turned away meanwhile: see to it that there is a new driver.
  [[nodiscard]] bool give_back() {
    held_.store(false);
    return wanted_.exchange(false);
  }

 private:
  std::atomic<bool> held_{false};
  std::atomic<bool> wanted_{false};
};

}  // namespace hvd::detail
