#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <hvd/float8.h>
#include <hvd/half.h>

namespace hvd {

// One row per element type: enumerator, C++ type, name in messages. New ones go last: the numbers are on the wire.
#define HVD_FOR_EACH_DATA_TYPE(X)               \
  X(u8, std::uint8_t, "uint8")                  \
  X(i8, std::int8_t, "int8")                    \
  X(u16, std::uint16_t, "uint16")               \
  X(i16, std::int16_t, "int16")                 \
  X(u32, std::uint32_t, "uint32")               \
  X(i32, std::int32_t, "int32")                 \
  X(u64, std::uint64_t, "uint64")               \
  X(i64, std::int64_t, "int64")                 \
  X(f16, ::hvd::float16, "float16")             \
  X(bf16, ::hvd::bfloat16, "bfloat16")          \
  X(f32, float, "float32")                      \
  X(f64, double, "float64")                     \
  X(boolean, bool, "bool")                      \
  X(c64, ::std::complex<float>, "complex64")    \
  X(c128, ::std::complex<double>, "complex128") \
  X(f8e4m3, ::hvd::float8_e4m3, "float8_e4m3")  \
  X(f8e5m2, ::hvd::float8_e5m2, "float8_e5m2")

enum class DataType : std::uint8_t {
#define HVD_ENUMERATOR(id, type, text) id,
  HVD_FOR_EACH_DATA_TYPE(HVD_ENUMERATOR)
#undef HVD_ENUMERATOR
};

constexpr std::uint8_t data_type_count = 0
#define HVD_COUNT(id, type, text) +1
    HVD_FOR_EACH_DATA_TYPE(HVD_COUNT)
#undef HVD_COUNT
    ;

// What travels between ranks that were built apart.
static_assert(sizeof(bool) == 1 && sizeof(float16) == 2 && sizeof(bfloat16) == 2);
static_assert(sizeof(std::complex<float>) == 8 && sizeof(std::complex<double>) == 16);
static_assert(sizeof(float8_e4m3) == 1 && sizeof(float8_e5m2) == 1);

// Bytes of one element.
constexpr std::size_t size_of(DataType dtype) {
  switch (dtype) {
#define HVD_CASE(id, type, text) \
  case DataType::id:             \
    return sizeof(type);
    HVD_FOR_EACH_DATA_TYPE(HVD_CASE)
#undef HVD_CASE
  }
  return 0;
}

constexpr std::string_view to_string(DataType dtype) {
  switch (dtype) {
#define HVD_CASE(id, type, text) \
  case DataType::id:             \
    return text;
    HVD_FOR_EACH_DATA_TYPE(HVD_CASE)
#undef HVD_CASE
  }
  return "unknown dtype";
}

// data_type_of<float> == DataType::f32; ill-formed for a type hvd does not carry.
template <typename T>
struct DataTypeOf;
#define HVD_TRAIT(id, type, text)                   \
  template <>                                       \
  struct DataTypeOf<type> {                         \
    static constexpr DataType value = DataType::id; \
  };
HVD_FOR_EACH_DATA_TYPE(HVD_TRAIT)
#undef HVD_TRAIT
template <typename T>
inline constexpr DataType data_type_of = DataTypeOf<T>::value;

template <typename T>
concept Element = requires {
  DataTypeOf<T>::value;
};

// How the values of the ranks are combined. `average` is the sum divided by the number of ranks, once, after the sum;
// integers truncate toward zero. Sums of f16 and bf16 are kept in f32 and rounded once. Of bool, sum and max are "or",
// min and product "and". docs/dtypes.md says which dtype has which. Adasum (Maleki et al., "Scaling Distributed
// Training with Adaptive Summation", MLSys 2021) combines pairs of gradients a, b as (1 - a.b / 2|a|^2) a + (1 - a.b /
// 2|b|^2) b, pairs of results likewise, in rank order, for each tensor: the sum of orthogonal gradients, the average of
// parallel ones.
enum class ReduceOp : std::uint8_t { average, sum, min, max, product, adasum };
constexpr std::uint8_t reduce_op_count = 6;

constexpr std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::average:
      return "Average";
    case ReduceOp::sum:
      return "Sum";
    case ReduceOp::min:
      return "Min";
    case ReduceOp::max:
      return "Max";
    case ReduceOp::product:
      return "Product";
    case ReduceOp::adasum:
      return "Adasum";
  }
  return "unknown reduce op";
}

enum class Operation : std::uint8_t {
  allreduce,
  reduce,
  reduce_scatter,
  broadcast,
  allgather,
  gather,
  scatter,
  alltoall,
  send_recv,  // both ends of a point-to-point message
  barrier,
  join,
  add_process_set,
  remove_process_set,
};
constexpr std::uint8_t operation_count = 13;

constexpr std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::allreduce:
      return "allreduce";
    case Operation::reduce:
      return "reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::broadcast:
      return "broadcast";
    case Operation::allgather:
      return "allgather";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::alltoall:
      return "alltoall";
    case Operation::send_recv:
      return "send/recv";
    case Operation::barrier:
      return "barrier";
    case Operation::join:
      return "join";
    case Operation::add_process_set:
      return "add_process_set";
    case Operation::remove_process_set:
      return "remove_process_set";
  }
  return "unknown operation";
}

}  // namespace hvd
