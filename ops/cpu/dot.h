#pragma once

#include <cstddef>

#include <hvd/types.h>

namespace hvd::cpu {

// The sum of a[i] * b[i], of f16, bf16, f32 or f64, in f64, for Adasum. The arrays have `count` elements, of any
// alignment. Element i goes to partial sum i % 16, in the order of i; the 16 are added as a tree, each with the one 8,
// then 4, 2 and 1 further. So the bits do not depend on the instruction set. A NaN is the canonical one.
double dot(DataType dtype, const std::byte* a, const std::byte* b, std::size_t count);

}  // namespace hvd::cpu
