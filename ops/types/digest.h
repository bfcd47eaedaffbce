#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hvd {

// FNV-1a over 64-bit words with a final avalanche (splitmix64): small, the same everywhere, and enough against
// accidents.
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ ^= word;
    state_ *= 0x100000001b3ULL;
    state_ ^= state_ >> 29U;
  }
  // Also tells apart zeros of unlike number.
  void add_bytes(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof(word));
      add(word);
    }
    std::uint64_t rest = 0;
    if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
    add(rest);
    add(bytes.size());
  }
  // Never 0.
  std::uint64_t value() const {
    std::uint64_t x = state_;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    x ^= x >> 31U;
    return x == 0 ? 1 : x;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace hvd
