#include "weight_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <hvd/hvd.h>

namespace hvd::torch {

namespace {

constexpr std::size_t width = sizeof(std::uint64_t);

// Mixes eight bytes at a time with the multiplier of MurmurHash3's finaliser.
std::uint64_t hash_of(const ::torch::Tensor& tensor) {
  const ::torch::Tensor dense = tensor.detach().cpu().contiguous();
  const auto* bytes = static_cast<const std::uint8_t*>(dense.data_ptr());
  const std::size_t length = dense.nbytes();
  std::uint64_t hash = length;
  for (std::size_t at = 0; at < length; at += width) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(width, length - at));
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 33U;
  }
  return hash;
}

}  // namespace

// Each hash travels with its complement: the greatest byte and the greatest complement add up to 255 just where all
// ranks have the same byte.
std::vector<std::size_t> find_unlike(std::string_view operation, const std::vector<::torch::Tensor>& tensors) {
  std::vector<std::uint8_t> bytes(tensors.size() * 2 * width);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const std::uint64_t hash = hash_of(tensors[k]);
    const std::uint64_t complement = ~hash;
    std::memcpy(&bytes[k * 2 * width], &hash, width);
    std::memcpy(&bytes[(k * 2 + 1) * width], &complement, width);
  }
  allreduce(bytes, {.name = operation, .op = ReduceOp::max});

  std::vector<std::size_t> unlike;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const auto* hash = &bytes[k * 2 * width];
    const auto* complement = hash + width;
    if (!std::equal(hash, hash + width, complement, [](std::uint8_t a, std::uint8_t b) { return a + b == 0xff; })) {
      unlike.push_back(k);
    }
  }
  return unlike;
}

}  // namespace hvd::torch
