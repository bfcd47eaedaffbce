#include "dtype_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include <hvd/types.h>

#include "types/dtype_kind.h"
#include "types/dtype_rules.h"

namespace hvd::docs {

namespace {

constexpr std::string_view intro = R"(# Dtypes

What can be done with each dtype. A call that the tables do not allow fails with an error that says what is allowed
instead. This page is generated from the rules in `ops/types/dtype_rules.h`; a test fails when it is out of date:

    build/dev/tools/docs/dtype_table > docs/dtypes.md

Whatever the dtype, ranks get the same bits whether their processors have AVX2, AVX-512 or neither, and every NaN that a
reduction writes is the same positive quiet one.
)";

using Row = std::vector<std::string>;

std::string markdown(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (&row == &rows.front()) text += fmt::format("|{}\n", fmt::join(Row(row.size(), " --- |"), ""));
  }
  return text;
}

template <typename Enum, typename Visit>
void for_each(std::uint8_t count, Visit visit) {
  for (std::uint8_t i = 0; i < count; ++i) visit(static_cast<Enum>(i));
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

std::string reduce_cell(DataType dtype, ReduceOp op) {
  if (!reduces(dtype, op)) return "no";
  if (kind_of(dtype) != DataKind::logical) return "yes";
  return op == ReduceOp::sum || op == ReduceOp::max ? "yes, logical or" : "yes, logical and";
}

std::string integer_arithmetic(DataType dtype) {
  const std::size_t bits = 8 * size_of(dtype);
  return fmt::format(
      "Sum and Product in {} bits, wrapping around; Average summed in {} bits, truncated toward zero; with a scale all "
      "in "
      "float64, then truncated toward zero and saturated",
      bits, bits == 64 ? 128 : 64);
}

std::string floating_arithmetic(DataType dtype) {
  const std::string adasum = "; the dot products of Adasum in float64";
  if (size_of(dtype) == 2) return "in float32, rounded once at the end to nearest, ties to even" + adasum;
  return fmt::format("in {}, each step rounded to nearest, ties to even{}", to_string(dtype), adasum);
}

std::string complex_arithmetic(DataType dtype) {
  return fmt::format(
      "real and imaginary part in {} each, each step rounded to nearest, ties to even; Product is (ac - bd) + (ad + "
      "bc)i; "
      "scales are real",
      dtype == DataType::c64 ? to_string(DataType::f32) : to_string(DataType::f64));
}

std::string arithmetic(DataType dtype) {
  switch (kind_of(dtype)) {
    case DataKind::integer:
      return integer_arithmetic(dtype);
    case DataKind::floating:
      return floating_arithmetic(dtype);
    case DataKind::logical:
      return "any byte but 0 counts as true, results are 0 or 1";
    case DataKind::complex:
      return complex_arithmetic(dtype);
    case DataKind::transport:
      break;
  }
  return "not reduced, the bits are carried as they are";
}

std::string reduction_table() {
  Row head{"dtype"};
  for_each<ReduceOp>(reduce_op_count, [&](ReduceOp op) { head.emplace_back(to_string(op)); });
  head.insert(head.end(), {"prescale, postscale", "how it accumulates and rounds"});
  std::vector<Row> rows{head};
  for_each<DataType>(data_type_count, [&](DataType dtype) {
    Row row{std::string(to_string(dtype))};
    for_each<ReduceOp>(reduce_op_count, [&](ReduceOp op) { row.push_back(reduce_cell(dtype, op)); });
    row.insert(row.end(), {yes_or_no(scales(dtype)), arithmetic(dtype)});
    rows.push_back(std::move(row));
  });
  return markdown(rows);
}

std::string operation_table() {
  std::vector<Operation> operations;
  for_each<Operation>(operation_count, [&](Operation operation) {
    if (takes_tensor(operation)) operations.push_back(operation);
  });
  Row head{"dtype", "bytes"};
  for (const Operation operation : operations) head.emplace_back(to_string(operation));
  std::vector<Row> rows{head};
  for_each<DataType>(data_type_count, [&](DataType dtype) {
    Row row{std::string(to_string(dtype)), fmt::to_string(size_of(dtype))};
    for (const Operation operation : operations) row.push_back(yes_or_no(takes(operation, dtype)));
    rows.push_back(std::move(row));
  });
  return markdown(rows);
}

}  // namespace

std::string dtypes_page() {
  return fmt::format(
      "{}\n## Reductions\n\nOf allreduce, reduce and reduce_scatter; Adasum is for allreduce only.\n\n{}\n## "
      "Operations\n\n{}",
      intro, reduction_table(), operation_table());
}

}  // namespace hvd::docs
