#include "limit/combine.h"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd::bench::limit {

namespace {

using Sources = std::span<const float* const>;
using Destinations = std::span<float* const>;
using Kernel = void (*)(Sources, Destinations, std::size_t begin, std::size_t end, bool streamed);

void combine_plain(Sources sources, Destinations destinations, std::size_t begin, std::size_t end, bool /*streamed*/) {
  for (std::size_t i = begin; i < end; ++i) {
    float sum = sources[0][i];
    for (std::size_t s = 1; s < sources.size(); ++s) sum += sources[s][i];
    for (float* destination : destinations) destination[i] = sum;
  }
}

#if defined(__x86_64__)
// Four vectors at a time, so that the loops over sources and destinations cost little. Whole blocks only.
constexpr std::size_t avx512_block = 64;
constexpr std::size_t avx2_block = 32;

__attribute__((target("avx512f"))) void combine_avx512(Sources sources, Destinations destinations, std::size_t begin,
                                                       std::size_t end, bool streamed) {
  for (std::size_t i = begin; i < end; i += avx512_block) {
    __m512 a = _mm512_loadu_ps(sources[0] + i);
    __m512 b = _mm512_loadu_ps(sources[0] + i + 16);
    __m512 c = _mm512_loadu_ps(sources[0] + i + 32);
    __m512 d = _mm512_loadu_ps(sources[0] + i + 48);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      a = _mm512_add_ps(a, _mm512_loadu_ps(sources[s] + i));
      b = _mm512_add_ps(b, _mm512_loadu_ps(sources[s] + i + 16));
      c = _mm512_add_ps(c, _mm512_loadu_ps(sources[s] + i + 32));
      d = _mm512_add_ps(d, _mm512_loadu_ps(sources[s] + i + 48));
    }
    std::size_t first = 0;
    if (streamed) {
      first = 1;
      _mm512_stream_ps(destinations[0] + i, a);
      _mm512_stream_ps(destinations[0] + i + 16, b);
      _mm512_stream_ps(destinations[0] + i + 32, c);
      _mm512_stream_ps(destinations[0] + i + 48, d);
    }
    for (std::size_t t = first; t < destinations.size(); ++t) {
      _mm512_storeu_ps(destinations[t] + i, a);
      _mm512_storeu_ps(destinations[t] + i + 16, b);
      _mm512_storeu_ps(destinations[t] + i + 32, c);
      _mm512_storeu_ps(destinations[t] + i + 48, d);
    }
  }
  if (streamed) _mm_sfence();
}

__attribute__((target("avx2"))) void combine_avx2(Sources sources, Destinations destinations, std::size_t begin,
                                                  std::size_t end, bool streamed) {
  for (std::size_t i = begin; i < end; i += avx2_block) {
    __m256 a = _mm256_loadu_ps(sources[0] + i);
    __m256 b = _mm256_loadu_ps(sources[0] + i + 8);
    __m256 c = _mm256_loadu_ps(sources[0] + i + 16);
    __m256 d = _mm256_loadu_ps(sources[0] + i + 24);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      a = _mm256_add_ps(a, _mm256_loadu_ps(sources[s] + i));
      b = _mm256_add_ps(b, _mm256_loadu_ps(sources[s] + i + 8));
      c = _mm256_add_ps(c, _mm256_loadu_ps(sources[s] + i + 16));
      d = _mm256_add_ps(d, _mm256_loadu_ps(sources[s] + i + 24));
    }
    std::size_t first = 0;
    if (streamed) {
      first = 1;
      _mm256_stream_ps(destinations[0] + i, a);
      _mm256_stream_ps(destinations[0] + i + 8, b);
      _mm256_stream_ps(destinations[0] + i + 16, c);
      _mm256_stream_ps(destinations[0] + i + 24, d);
    }
    for (std::size_t t = first; t < destinations.size(); ++t) {
      _mm256_storeu_ps(destinations[t] + i, a);
      _mm256_storeu_ps(destinations[t] + i + 8, b);
      _mm256_storeu_ps(destinations[t] + i + 16, c);
      _mm256_storeu_ps(destinations[t] + i + 24, d);
    }
  }
  if (streamed) _mm_sfence();
}
#endif

struct Choice {
  const char* name;
  Kernel kernel;
  std::size_t block;
};

Choice choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"avx512", combine_avx512, avx512_block};
  if (__builtin_cpu_supports("avx2")) return {"avx2", combine_avx2, avx2_block};
#endif
  return {"plain", combine_plain, 1};
}

const Choice choice = choose();

// Streaming stores want whole cache lines.
std::size_t elements_to_line(const float* pointer) {
  constexpr std::uintptr_t line = 64;
  const std::uintptr_t over = reinterpret_cast<std::uintptr_t>(pointer) % line;
  return over == 0 ? 0 : (line - over) / sizeof(float);
}

}  // namespace

void combine(Sources sources, Destinations destinations, std::size_t count, bool streamed) {
  const std::size_t head = streamed ? std::min(count, elements_to_line(destinations[0])) : 0;
  const std::size_t body = head + (count - head) / choice.block * choice.block;
  if (head > 0) combine_plain(sources, destinations, 0, head, false);
  if (body > head) choice.kernel(sources, destinations, head, body, streamed);
  if (count > body) combine_plain(sources, destinations, body, count, false);
}

const char* instruction_set() { return choice.name; }

}  // namespace hvd::bench::limit
