#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <hvd/types.h>

namespace hvd::cpu {

// What one allreduce does to each element, folded into a single pass over memory:
//   out = round( postscale * combine_k( prescale * in_k ) / divisor )
// combined in the order in which the sources are given, in the accumulator type, rounded once.
struct Reduction {
  DataType dtype = DataType::f32;
  ReduceOp op = ReduceOp::sum;  // average combines like sum; the divisor makes the difference
  double prescale = 1.0;
  double postscale = 1.0;
  std::int64_t divisor = 1;  // number of ranks for average, else 1
};

// f16, bf16 -> f32; f32, f64 -> themselves. Integers -> themselves, but for average or with a scale: 64 bits for types up
// to 32 bits and 128 bits for 64-bit types, so that an average never overflows.
std::size_t accumulator_size(const Reduction& reduction);

// dst[i] = whole reduction over sources[k][i]. Pointers are arrays of `count` elements of the dtype, of any alignment. dst
// may be one of the sources; it may not overlap them otherwise.
void reduce(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst, std::size_t count);

// The same in two halves, for sums that cross hosts. First half: dst is an array of accumulators, prescale applied.
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
