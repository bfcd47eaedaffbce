#include "gradients.h"

#include <algorithm>

namespace hvd::bench {

namespace {

std::size_t padded(std::size_t elements, DataType dtype) {
  const std::size_t line = 64 / size_of(dtype);
  return (elements + line - 1) / line * line;
}

std::size_t padded_bytes(const Profile& profile, DataType dtype) {
  std::size_t elements = 0;
  for (const Profile::Tensor& tensor : profile.tensors) elements += padded(tensor.elements, dtype);
  return elements * size_of(dtype);
}

}  // namespace

Gradients::Gradients(const World& world, const Profile& profile, DataType dtype, double compute_ms)
    : dtype_(dtype),
      compute_ms_(compute_ms),
      pattern_(dtype, world.size(), world.rank()),
      bytes_(profile.elements() * size_of(dtype)),
      private_memory_(padded_bytes(profile, dtype)) {
  std::size_t offset = 0;
  for (auto tensor = profile.tensors.rbegin(); tensor != profile.tensors.rend(); ++tensor) {
    gradients_.push_back({tensor->name, Shape(tensor->shape), offset, tensor->elements});
    offset += padded(tensor->elements, dtype);
  }
}

void Gradients::backward(const std::function<void(const Gradient&)>& body) const {
  const auto start = std::chrono::steady_clock::now();
  double done = 0.0;
  for (const Gradient& gradient : gradients_) {
    done += 1.0;
    const double ready_us = compute_ms_ * 1e3 * done / static_cast<double>(gradients_.size());
    while (compute_ms_ > 0.0 && microseconds_since(start) < ready_us) {
    }
    body(gradient);
  }
}

void Gradients::fill(void* memory, unsigned repeat) const { pattern_.fill(memory, 0, padded_elements(), repeat); }

void Gradients::check(std::string_view what, const void* memory, unsigned repeat, bool all) const {
  constexpr std::size_t some = 16;
  const auto part = [&](std::size_t offset, std::size_t count) {
    pattern_.check_sum(what, static_cast<const std::byte*>(memory) + offset * size_of(dtype_), offset, count, repeat);
  };
  for (const Gradient& gradient : gradients_) {
    part(gradient.offset, all ? gradient.count : std::min(some, gradient.count));
    if (gradient.count > some) part(gradient.offset + gradient.count - some, some);
  }
}

}  // namespace hvd::bench
