#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <hvd/tensor.h>

#include "buffer.h"
#include "pattern.h"
#include "profile.h"
#include "rounds.h"

namespace hvd::bench {

// The gradients of one model on this rank, and the pace at which its backward pass makes them: the last declared first,
// the i-th of n after (i + 1) / n of the compute time.
class Gradients {
 public:
  struct Gradient {
    std::string name;
    Shape shape;
    std::size_t offset;  // of its first element, in memory that holds all gradients
    std::size_t count;
  };

  Gradients(const World& world, const Profile& profile, DataType dtype, double compute_ms);

  DataType dtype() const { return dtype_; }
  double compute_ms() const { return compute_ms_; }
  std::size_t bytes() const { return bytes_; }
  // In the order in which they become ready.
  const std::vector<Gradient>& ready_order() const { return gradients_; }
  // All of them lie in one piece, each begins on a cache line of its own.
  std::size_t padded_elements() const { return private_memory_.bytes() / size_of(dtype_); }
  // Memory for them that belongs to this rank alone; other memory is laid out like it.
  void* private_memory() const { return private_memory_.data(); }
  std::byte* at(void* memory, const Gradient& gradient) const {
    return static_cast<std::byte*>(memory) + gradient.offset * size_of(dtype_);
  }

  // Computes (burns time), and calls body for each gradient when it is ready.
  void backward(const std::function<void(const Gradient&)>& body) const;

  // Writes this rank's values of that repeat.
  void fill(void* memory, unsigned repeat) const;
  // Throws unless the memory holds the sums: of every element, or of the ends of each gradient.
  void check(std::string_view what, const void* memory, unsigned repeat, bool all) const;

 private:
  DataType dtype_;
  double compute_ms_;
  Pattern pattern_;
  std::size_t bytes_;
  std::vector<Gradient> gradients_;
  Buffer private_memory_;
};

}  // namespace hvd::bench
