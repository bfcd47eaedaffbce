#pragma once

#include <cstddef>
#include <cstdint>

#include <hvd/types.h>

namespace hvd::cpu {

// The seam between the planner (reduce.cpp) and the kernels (kernels.cpp, one table per instruction set). All pointers
// are arrays of `count` elements or accumulators, of any alignment; `out` may be one of the sources if both have
// elements of the same size. The combine and store kernels write no NaN but the canonical one: positive, quiet, no
// payload.

// How a float accumulator becomes a result: multiplied by factor, or, if the divisor is not 1, divided by it.
// Wide integer accumulators are only divided.
struct Finish {
  double factor = 1.0;
  std::int64_t divisor = 1;
};

using CombineKernel = void (*)(const std::byte* const* sources, std::byte* out, std::size_t count);
using LoadKernel = void (*)(const std::byte* in, std::byte* out, std::size_t count, double prescale);
using StoreKernel = void (*)(const std::byte* accumulators, std::byte* out, std::size_t count, const Finish& finish);

using DotKernel = double (*)(const std::byte* a, const std::byte* b, std::size_t count);

constexpr std::size_t most_first = 4;
constexpr std::size_t most_next = 3;

// Left to right over a few arrays, the result in the accumulator type.
struct Combine {
  CombineKernel first[most_first];  // first[k - 1]: k arrays of elements
  CombineKernel next[most_next];    // next[k - 1]: an array of accumulators, then k arrays of elements
};

// Rows and cells that types/dtype_rules.h does not allow are null.
struct KernelTable {
  Combine combine[data_type_count][reduce_op_count];  // f16, bf16 accumulate in f32, all others in their own type
  Combine sum_128;                                    // elements and accumulators are 128-bit integers
  LoadKernel load_scaled[data_type_count];            // prescale * element: f16, bf16 to f32, integers to f64
  LoadKernel load_wide[data_type_count];              // integers up to 32 bits to 64 bits, of 64 bits to 128 bits
  StoreKernel store_scaled[data_type_count];          // the way back; integers truncate toward zero and saturate
  StoreKernel store_wide[data_type_count];            // from 64-bit or 128-bit integers, likewise
  DotKernel dot[data_type_count];                     // floats
};

namespace generic {
extern const KernelTable kernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kernels;
}
namespace avx512 {
extern const KernelTable kernels;
}
#endif

// The table of the active instruction set.
const KernelTable& active_kernels();

}  // namespace hvd::cpu
