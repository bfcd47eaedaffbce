#include "types/dtype_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "../support/reference.h"
#include "types/dtype_kind.h"

namespace hvd {
namespace {

// The rules, written down once more: a letter for each reduce op in the order of the enumerators, a dash where there is
// none, and whether scales are allowed.
struct Row {
  DataType dtype;
  DataKind kind;
  std::string_view ops;
  bool scaled;
};
constexpr Row rows[] = {
    {DataType::u8, DataKind::integer, "asmxp-", true},        {DataType::i8, DataKind::integer, "asmxp-", true},
    {DataType::u16, DataKind::integer, "asmxp-", true},       {DataType::i16, DataKind::integer, "asmxp-", true},
    {DataType::u32, DataKind::integer, "asmxp-", true},       {DataType::i32, DataKind::integer, "asmxp-", true},
    {DataType::u64, DataKind::integer, "asmxp-", true},       {DataType::i64, DataKind::integer, "asmxp-", true},
    {DataType::f16, DataKind::floating, "asmxpd", true},      {DataType::bf16, DataKind::floating, "asmxpd", true},
    {DataType::f32, DataKind::floating, "asmxpd", true},      {DataType::f64, DataKind::floating, "asmxpd", true},
    {DataType::boolean, DataKind::logical, "-smxp-", false},  {DataType::c64, DataKind::complex, "as--p-", true},
    {DataType::c128, DataKind::complex, "as--p-", true},      {DataType::f8e4m3, DataKind::transport, "------", false},
    {DataType::f8e5m2, DataKind::transport, "------", false},
};

constexpr Operation reductions[] = {Operation::allreduce, Operation::reduce, Operation::reduce_scatter};
constexpr double scales_of_one[] = {1.0, 0.5};

std::string problem(Operation operation, DataType dtype, ReduceOp op, double prescale = 1, double postscale = 1) {
  return reduction_problem(operation, dtype, op, prescale, postscale);
}

TEST(DtypeRules, HaveARowForEachDtype) {
  ASSERT_EQ(std::size(rows), data_type_count);
  for (std::size_t i = 0; i < data_type_count; ++i) {
    EXPECT_EQ(rows[i].dtype, test::all_dtypes[i]);
    EXPECT_EQ(kind_of(rows[i].dtype), rows[i].kind) << to_string(rows[i].dtype);
  }
}

TEST(DtypeRules, AllowEachCellOrNotAsTheTableSays) {
  for (const Row& row : rows) {
    EXPECT_EQ(scales(row.dtype), row.scaled) << to_string(row.dtype);
    ASSERT_EQ(row.ops.size(), reduce_op_count);
    for (std::size_t i = 0; i < reduce_op_count; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      const bool allowed = row.ops[i] != '-';
      EXPECT_EQ(reduces(row.dtype, op), allowed) << to_string(row.dtype) << " " << to_string(op);
      for (const Operation operation : reductions) {
        const bool here = allowed && (op != ReduceOp::adasum || operation == Operation::allreduce);
        EXPECT_EQ(reduces(operation, row.dtype, op), here)
            << to_string(operation) << " " << to_string(row.dtype) << " " << to_string(op);
      }
    }
  }
}

TEST(DtypeRules, LetEveryDtypeTravelAndAllButFp8BeReduced) {
  for (const Row& row : rows) {
    for (const Operation operation : reductions) {
      EXPECT_EQ(takes(operation, row.dtype), row.kind != DataKind::transport) << to_string(row.dtype);
    }
    for (const Operation operation : {Operation::broadcast, Operation::allgather, Operation::gather, Operation::scatter,
                                      Operation::alltoall, Operation::send_recv}) {
      EXPECT_TRUE(takes(operation, row.dtype)) << to_string(operation) << " " << to_string(row.dtype);
    }
    for (const Operation operation :
         {Operation::barrier, Operation::join, Operation::add_process_set, Operation::remove_process_set}) {
      EXPECT_FALSE(takes(operation, row.dtype)) << to_string(operation);
    }
  }
}

TEST(DtypeRules, GiveAProblemExactlyWhereTheCellOrItsScaleIsNotAllowed) {
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < reduce_op_count; ++i) {
      for (const Operation operation : reductions) {
        for (const double prescale : scales_of_one) {
          for (const double postscale : scales_of_one) {
            const auto op = static_cast<ReduceOp>(i);
            const bool scaled = prescale != 1.0 || postscale != 1.0;
            const bool allowed = reduces(operation, row.dtype, op) && (row.scaled || !scaled);
            EXPECT_EQ(problem(operation, row.dtype, op, prescale, postscale).empty(), allowed)
                << to_string(operation) << " " << to_string(row.dtype) << " " << to_string(op) << prescale << postscale;
          }
        }
      }
    }
  }
}

TEST(DtypeRules, HaveNoProblemWithOperationsThatDoNotReduce) {
  for (std::uint8_t i = 0; i < operation_count; ++i) {
    const auto operation = static_cast<Operation>(i);
    if (is_reduction(operation)) continue;
    EXPECT_EQ(problem(operation, DataType::f8e4m3, ReduceOp::adasum, 2), "") << to_string(operation);
    EXPECT_FALSE(reduces(operation, DataType::f32, ReduceOp::sum)) << to_string(operation);
  }
}

TEST(DtypeRules, SayWhatIsAllowedInstead) {
  constexpr auto allreduce = Operation::allreduce;
  EXPECT_EQ(problem(allreduce, DataType::boolean, ReduceOp::average),
            "dtype bool with Average; allowed: Sum, Min, Max, Product");
  EXPECT_EQ(problem(allreduce, DataType::c64, ReduceOp::max),
            "dtype complex64 with Max; allowed: Average, Sum, Product");
  EXPECT_EQ(problem(allreduce, DataType::i32, ReduceOp::adasum),
            "dtype int32 with Adasum; allowed: Average, Sum, Min, Max, Product");
  EXPECT_EQ(problem(allreduce, DataType::f8e4m3, ReduceOp::sum),
            "dtype float8_e4m3 cannot be reduced; allowed for it: broadcast, allgather, gather, scatter, alltoall, "
            "send/recv");
  EXPECT_EQ(problem(allreduce, DataType::boolean, ReduceOp::sum, 0.5), "dtype bool cannot be scaled");
  EXPECT_EQ(problem(Operation::reduce, DataType::f32, ReduceOp::adasum),
            "Adasum is for allreduce only; allowed: Average, Sum, Min, Max, Product");
}

TEST(DtypeRules, ListTheReduceOpsOfADtype) {
  EXPECT_EQ(allowed_reduce_ops(DataType::boolean), "Sum, Min, Max, Product");
  EXPECT_EQ(allowed_reduce_ops(DataType::c128), "Average, Sum, Product");
  EXPECT_EQ(allowed_reduce_ops(DataType::bf16), "Average, Sum, Min, Max, Product, Adasum");
  EXPECT_EQ(allowed_reduce_ops(DataType::u64), "Average, Sum, Min, Max, Product");
  EXPECT_EQ(allowed_reduce_ops(DataType::f8e5m2), "none");
}

}  // namespace
}  // namespace hvd
