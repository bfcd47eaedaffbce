#pragma once

#include <cstddef>
#include <span>

namespace hvd::bench::limit {

// Stores the sum of the sources into every destination. `streamed` says whether the first destination is written past
// the caches (nobody reads it soon). Sources and destinations may be the same memory, element for element.
void combine(std::span<const float* const> sources, std::span<float* const> destinations, std::size_t count,
             bool streamed);

// The best instruction set that combine() has found: "avx512", "avx2" or "plain".
const char* instruction_set();

}  // namespace hvd::bench::limit
