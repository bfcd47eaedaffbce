#include "cpu/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hvd::cpu {

void copy_past_caches(std::byte* dst, const std::byte* src, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t line = 64;
  const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(dst) % line) % line);
  std::memcpy(dst, src, head);
  std::size_t at = head;
  for (; at + line <= bytes; at += line) {
    for (std::size_t part = 0; part < line; part += sizeof(__m128i)) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + at + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + at + part), value);
    }
  }
  std::memcpy(dst + at, src + at, bytes - at);
  _mm_sfence();  // streamed stores are not ordered with the ones that say that they are done
#else
  std::memcpy(dst, src, bytes);
#endif
}

}  // namespace hvd::cpu
