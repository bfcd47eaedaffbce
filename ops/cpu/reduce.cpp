#include "cpu/reduce.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "cpu/kernel_table.h"
#include "types/dtype_kind.h"
#include "types/dtype_rules.h"

namespace hvd::cpu {

namespace {

constexpr std::size_t block_bytes = 4096;  // of accumulators; five of them fit the L1 cache beside the streams

enum class Accumulator { f32, f64, own, wide };

constexpr bool is_integer(DataType dtype) { return kind_of(dtype) == DataKind::integer; }

Accumulator accumulator_of(const Reduction& reduction) {
  if (kind_of(reduction.dtype) == DataKind::floating) {
    return reduction.dtype == DataType::f64 ? Accumulator::f64 : Accumulator::f32;
  }
  if (!is_integer(reduction.dtype)) {
    return Accumulator::own;
  }
  if (reduction.prescale != 1.0 || reduction.postscale != 1.0) {
    return Accumulator::f64;
  }
  return reduction.op == ReduceOp::average ? Accumulator::wide : Accumulator::own;
}

const Combine& combine_of(const KernelTable& kernels, DataType elements, ReduceOp op) {
  return kernels.combine[static_cast<std::size_t>(elements)][static_cast<std::size_t>(op)];
}

// The kernels that combine accumulators with each other.
const Combine& combine_accumulators(const KernelTable& kernels, const Reduction& reduction) {
  switch (accumulator_of(reduction)) {
    case Accumulator::f32:
      return combine_of(kernels, DataType::f32, reduction.op);
    case Accumulator::f64:
      return combine_of(kernels, DataType::f64, reduction.op);
    case Accumulator::wide:
      return size_of(reduction.dtype) == 8 ? kernels.sum_128 : combine_of(kernels, DataType::u64, ReduceOp::sum);
    case Accumulator::own:
      break;
  }
  return combine_of(kernels, reduction.dtype, reduction.op);
}

// A division is exact where the result is; multiplying by the reciprocal of a power of two is the same, and faster.
Finish finish_of(const Reduction& reduction) {
  if (accumulator_of(reduction) == Accumulator::wide) {
    return {1.0, reduction.divisor};
  }
  if (reduction.postscale == 1.0 && !std::has_single_bit(static_cast<std::uint64_t>(reduction.divisor))) {
    return {1.0, reduction.divisor};
  }
  return {reduction.postscale / static_cast<double>(reduction.divisor), 1};
}

// load (if any) -> combine -> store (if any), a block at a time.
struct Plan {
  const Combine* combine = nullptr;
  LoadKernel load = nullptr;
  StoreKernel store = nullptr;
  double prescale = 1.0;
  Finish finish;
  std::size_t source_size = 0;
  std::size_t accumulator_size = 0;
  std::size_t result_size = 0;
};

Plan plan_of(const Reduction& reduction, bool from_elements, bool to_elements) {
  assert(reduces(reduction.dtype, reduction.op) && reduction.op != ReduceOp::adasum);
  assert(scales(reduction.dtype) || (reduction.prescale == 1.0 && reduction.postscale == 1.0));
  assert(reduction.divisor >= 1 && (reduction.divisor == 1 || reduction.op == ReduceOp::average));
  const KernelTable& kernels = active_kernels();
  const auto row = static_cast<std::size_t>(reduction.dtype);
  const Accumulator accumulator = accumulator_of(reduction);
  const bool converts = is_integer(reduction.dtype) && accumulator != Accumulator::own;
  Plan plan;
  plan.prescale = reduction.prescale;
  plan.finish = finish_of(reduction);
  plan.accumulator_size = accumulator_size(reduction);
  plan.source_size = from_elements ? size_of(reduction.dtype) : plan.accumulator_size;
  plan.result_size = to_elements ? size_of(reduction.dtype) : plan.accumulator_size;
  if (from_elements && (converts || reduction.prescale != 1.0)) {
    plan.load = (accumulator == Accumulator::wide ? kernels.load_wide : kernels.load_scaled)[row];
  }
  const bool combines_elements = from_elements && plan.load == nullptr;
  plan.combine = combines_elements ? &combine_of(kernels, reduction.dtype, reduction.op)
                                   : &combine_accumulators(kernels, reduction);
  const bool identity = plan.finish.factor == 1.0 && plan.finish.divisor == 1;
  if (to_elements && (converts || !identity || plan.result_size != plan.accumulator_size)) {
    plan.store = (accumulator == Accumulator::wide ? kernels.store_wide : kernels.store_scaled)[row];
  }
  return plan;
}

struct Blocks {
  alignas(64) std::byte accumulators[block_bytes];
  alignas(64) std::byte loaded[most_first][block_bytes];
};

// The block of `count` elements at `offset`. Every source of it is read before its result is written, so that the
// result may replace a source.
void reduce_block(const Plan& plan, std::span<const std::byte* const> sources, std::byte* dst, std::size_t offset,
                  std::size_t count, Blocks& blocks) {
  std::byte* const result = dst + offset * plan.result_size;
  const std::byte* operands[1 + most_first];
  operands[0] = blocks.accumulators;
  for (std::size_t done = 0; done < sources.size();) {
    const bool first = done == 0;
    const std::size_t k = std::min(sources.size() - done, first ? most_first : most_next);
    for (std::size_t i = 0; i < k; ++i) {
      const std::byte* source = sources[done + i] + offset * plan.source_size;
      if (plan.load != nullptr) {
        plan.load(source, blocks.loaded[i], count, plan.prescale);
        source = blocks.loaded[i];
      }
      operands[1 + i] = source;
    }
    done += k;
    const bool last = done == sources.size();
    std::byte* const out = last && plan.store == nullptr ? result : blocks.accumulators;
    if (first) {
      plan.combine->first[k - 1](operands + 1, out, count);
    } else {
      plan.combine->next[k - 1](operands, out, count);
    }
  }
  if (plan.store != nullptr) {
    plan.store(blocks.accumulators, result, count, plan.finish);
  }
}

void run(const Plan& plan, std::span<const std::byte* const> sources, std::byte* dst, std::size_t count) {
  assert(!sources.empty());
  if (count == 0) {
    return;
  }
  if (plan.load == nullptr && plan.store == nullptr && sources.size() <= most_first) {
    plan.combine->first[sources.size() - 1](sources.data(), dst, count);
    return;
  }
  Blocks blocks;
  const std::size_t block = block_bytes / plan.accumulator_size;
  for (std::size_t offset = 0; offset < count; offset += block) {
    reduce_block(plan, sources, dst, offset, std::min(block, count - offset), blocks);
  }
}

}  // namespace

std::size_t accumulator_size(const Reduction& reduction) {
  switch (accumulator_of(reduction)) {
    case Accumulator::f32:
      return sizeof(float);
    case Accumulator::f64:
      return sizeof(double);
    case Accumulator::wide:
      return size_of(reduction.dtype) == 8 ? 16 : 8;
    case Accumulator::own:
      break;
  }
  return size_of(reduction.dtype);
}

void reduce(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst, std::size_t count) {
  run(plan_of(reduction, true, true), sources, dst, count);
}

void reduce_to_accumulators(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst,
                            std::size_t count) {
  run(plan_of(reduction, true, false), sources, dst, count);
}

void reduce_accumulators(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* dst,
                         std::size_t count) {
  run(plan_of(reduction, false, true), sources, dst, count);
}

}  // namespace hvd::cpu
