#include "cpu/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "reduce_cases.h"
#include "types/dtype_kind.h"
#include "types/dtype_rules.h"

namespace hvd::cpu {
namespace {

bool complete(const Combine& combine) {
  const auto there = [](CombineKernel kernel) { return kernel != nullptr; };
  return std::ranges::all_of(combine.first, there) && std::ranges::all_of(combine.next, there);
}

bool empty(const Combine& combine) {
  const auto missing = [](CombineKernel kernel) { return kernel == nullptr; };
  return std::ranges::all_of(combine.first, missing) && std::ranges::all_of(combine.next, missing);
}

using KernelTableTest = EachIsa;

TEST_F(KernelTableTest, HasKernelsForExactlyWhatTheRulesAllow) {
  run([] {
    const KernelTable& kernels = active_kernels();
    for (const DataType dtype : test::all_dtypes) {
      SCOPED_TRACE(to_string(dtype));
      const auto row = static_cast<std::size_t>(dtype);
      for (std::size_t i = 0; i < reduce_op_count; ++i) {
        const auto op = static_cast<ReduceOp>(i);
        // Adasum is no matter of one element after the other: it has the dot product.
        const bool wanted = reduces(dtype, op) && op != ReduceOp::adasum;
        EXPECT_TRUE(wanted ? complete(kernels.combine[row][i]) : empty(kernels.combine[row][i])) << to_string(op);
      }
      EXPECT_EQ(kernels.load_scaled[row] != nullptr, scales(dtype));
      EXPECT_EQ(kernels.store_scaled[row] != nullptr, scales(dtype));
      EXPECT_EQ(kernels.load_wide[row] != nullptr, kind_of(dtype) == DataKind::integer);
      EXPECT_EQ(kernels.store_wide[row] != nullptr, kind_of(dtype) == DataKind::integer);
      EXPECT_EQ(kernels.dot[row] != nullptr, reduces(dtype, ReduceOp::adasum));
    }
  });
}

}  // namespace
}  // namespace hvd::cpu
