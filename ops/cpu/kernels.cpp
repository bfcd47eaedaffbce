// Compiled once per instruction set, with HVD_ISA naming the namespace of its table and -ffp-contract=off, so that all
// instruction sets give the same bits.

#include "cpu/combine.h"
#include "cpu/complex.h"
#include "cpu/convert.h"
#include "cpu/dot_kernels.h"
#include "cpu/kernel_table.h"
#include "types/dtype_kind.h"

namespace hvd::cpu {
namespace {

constexpr std::size_t index_of(ReduceOp op) { return static_cast<std::size_t>(op); }

template <typename T>
constexpr void add_combine(Combine (&kernels)[reduce_op_count]) {
  using Arithmetic = typename Wrapping<T>::Type;
  kernels[index_of(ReduceOp::average)] = combine_kernels<Arithmetic, Sum>();
  kernels[index_of(ReduceOp::sum)] = combine_kernels<Arithmetic, Sum>();
  kernels[index_of(ReduceOp::min)] = combine_kernels<T, Min>();
  kernels[index_of(ReduceOp::max)] = combine_kernels<T, Max>();
  kernels[index_of(ReduceOp::product)] = combine_kernels<Arithmetic, Product>();
}

constexpr void add_logical_combine(Combine (&kernels)[reduce_op_count]) {
  kernels[index_of(ReduceOp::sum)] = combine_kernels<bool, Or>();
  kernels[index_of(ReduceOp::min)] = combine_kernels<bool, And>();
  kernels[index_of(ReduceOp::max)] = combine_kernels<bool, Or>();
  kernels[index_of(ReduceOp::product)] = combine_kernels<bool, And>();
}

template <typename V>
constexpr void add_complex_combine(Combine (&kernels)[reduce_op_count]) {
  kernels[index_of(ReduceOp::average)] = combine_kernels_of_parts<V, Sum>();
  kernels[index_of(ReduceOp::sum)] = combine_kernels_of_parts<V, Sum>();
  kernels[index_of(ReduceOp::product)] = combine_kernels<std::complex<V>, ComplexProduct>();
}

template <typename T>
constexpr void add_kernels(KernelTable& table, DataType dtype) {
  constexpr DataKind kind = kind_of_element<T>;
  const auto row = static_cast<std::size_t>(dtype);
  if constexpr (kind == DataKind::logical) {
    add_logical_combine(table.combine[row]);
  } else if constexpr (kind == DataKind::complex) {
    using Part = typename T::value_type;
    add_complex_combine<Part>(table.combine[row]);
    table.load_scaled[row] = load_scaled_parts<Part>;
    table.store_scaled[row] = store_scaled_parts<Part>;
  } else if constexpr (kind != DataKind::transport) {
    add_combine<T>(table.combine[row]);
    table.load_scaled[row] = load_scaled<T>;
    table.store_scaled[row] = store_scaled<T>;
  }
  if constexpr (kind == DataKind::integer) {
    table.load_wide[row] = load_wide<T>;
    table.store_wide[row] = store_wide<T>;
  }
  if constexpr (kind == DataKind::floating) {
    table.dot[row] = dot_kernel<T>;
  }
}

consteval KernelTable make_table() {
  KernelTable table{};
#define HVD_ADD(id, type, text) add_kernels<type>(table, DataType::id);
  HVD_FOR_EACH_DATA_TYPE(HVD_ADD)
#undef HVD_ADD
  table.sum_128 = combine_kernels<UInt128, Sum>();
  return table;
}

}  // namespace

namespace HVD_ISA {
constinit const KernelTable kernels = make_table();
}

}  // namespace hvd::cpu
