#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <hvd/types.h>

namespace hvd::cpu {

// What one reduction does to each element, folded into a single pass over memory:
//   out = round( postscale * combine_k( prescale * in_k ) / divisor )
// combined in the order in which the sources are given, in the accumulator type, rounded once.
//
// Floats. Accumulators are f32 for f16, bf16 and f32, and f64 for f64. The result is divided by the divisor if the
// postscale is 1 (so that an average is exact where it can be), else multiplied once by postscale / divisor. Min
// and max give NaN if any source does, and of equal values (-0, +0) the first. Every NaN that is written is the
// positive quiet one without payload.
//
// Complex numbers. Accumulators are of the dtype itself. Sums, averages and scales, which are real, treat the real and
// the imaginary part as two floats. A product is (ac - bd) + (ad + bc)i, each operation rounded, without the recovery
// of infinities of C's Annex G. NaNs are canonical in each part.
//
// Bool. Sum and max are "or", min and product "and". Any byte but 0 is true; results are 0 or 1.
//
// Integers. Sum and product wrap. An average is summed in 64 bits for types of up to 32 bits and in 128 bits for 64-bit
// types, so that it cannot overflow, and divided with truncation toward zero. With a prescale or postscale other than 1
// everything is done in f64, truncated toward zero once at the end, and saturated to the type's range (NaN gives 0).
//
// The bits of the result do not depend on the instruction set, on alignment, or on how an array is cut into calls.
struct Reduction {
  DataType dtype = DataType::f32;
  ReduceOp op = ReduceOp::sum;  // as types/dtype_rules.h allows, but Adasum. Average is a sum with a divisor
  double prescale = 1.0;
  double postscale = 1.0;
  std::int64_t divisor = 1;  // number of ranks for average, else 1
};

// Bytes of an accumulator. Floats: as above. Integers: 8 with a scale; for an average 8, or 16 if the type has 64 bits.
// All others are their own accumulators.
std::size_t accumulator_size(const Reduction& reduction);

// dst[i] = whole reduction over sources[k][i], of one source or more. Pointers are arrays of `count` elements of the
// dtype, of any alignment. dst may be one of the sources; it may not overlap them otherwise.
void reduce(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst, std::size_t count);

// The same in two halves, for sums that cross hosts. dst may be one of the sources if an accumulator is as large as an
// element. First half: dst is an array of accumulators, prescale applied.
void reduce_to_accumulators(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst,
                            std::size_t count);
// Second half: the sources are arrays of accumulators; divisor and postscale applied, dst of the dtype.
void reduce_accumulators(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst,
                         std::size_t count);

// Instruction sets the kernels are compiled for, best last; the best that this CPU has is used.
enum class Isa { generic, avx2, avx512 };
std::vector<Isa> available_isas();
std::string_view to_string(Isa isa);
Isa active_isa();
void use_isa(Isa isa);  // for tests; must be one of available_isas()

}  // namespace hvd::cpu
