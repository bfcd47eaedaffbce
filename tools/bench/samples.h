#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace hvd::bench {

inline double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// Durations in microseconds, as quantiles.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  std::size_t count() const { return values_.size(); }
  // The value that the fraction q of the samples does not exceed.
  double quantile(double q) {
    const auto at = values_.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values_.size() - 1));
    std::nth_element(values_.begin(), at, values_.end());
    return *at;
  }

 private:
  std::vector<double> values_;
};

}  // namespace hvd::bench
