// Compiled once per instruction set, with HVD_ISA naming the namespace of its table and -ffp-contract=off, so that all
// instruction sets give the same bits.

#include "cpu/combine.h"
#include "cpu/convert.h"
#include "cpu/kernel_table.h"

namespace hvd::cpu {
namespace {

template <typename T>
constexpr void add_combine(Combine (&kernels)[reduce_op_count]) {
  using Arithmetic = typename Wrapping<T>::Type;
  kernels[static_cast<std::size_t>(ReduceOp::average)] = combine_kernels<Arithmetic, Sum>();
  kernels[static_cast<std::size_t>(ReduceOp::sum)] = combine_kernels<Arithmetic, Sum>();
  kernels[static_cast<std::size_t>(ReduceOp::min)] = combine_kernels<T, Min>();
  kernels[static_cast<std::size_t>(ReduceOp::max)] = combine_kernels<T, Max>();
  kernels[static_cast<std::size_t>(ReduceOp::product)] = combine_kernels<Arithmetic, Product>();
}

template <typename T>
constexpr void add_kernels(KernelTable& table, DataType dtype) {
  const auto row = static_cast<std::size_t>(dtype);
  add_combine<T>(table.combine[row]);
  table.load_scaled[row] = load_scaled<T>;
  table.store_scaled[row] = store_scaled<T>;
  if constexpr (std::is_integral_v<T>) {
    table.load_wide[row] = load_wide<T>;
    table.store_wide[row] = store_wide<T>;
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
