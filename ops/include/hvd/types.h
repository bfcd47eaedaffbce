#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <hvd/half.h>

namespace hvd {

// One row per element type: enumerator, C++ type, name in messages.
#define HVD_FOR_EACH_DATA_TYPE(X)      \
  X(u8, std::uint8_t, "uint8")         \
  X(i8, std::int8_t, "int8")           \
  X(u16, std::uint16_t, "uint16")      \
  X(i16, std::int16_t, "int16")        \
  X(u32, std::uint32_t, "uint32")      \
  X(i32, std::int32_t, "int32")        \
  X(u64, std::uint64_t, "uint64")      \
  X(i64, std::int64_t, "int64")        \
  X(f16, ::hvd::float16, "float16")    \
  X(bf16, ::hvd::bfloat16, "bfloat16") \
  X(f32, float, "float32")             \
  X(f64, double, "float64")

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
// integers truncate toward zero. Sums of f16 and bf16 are kept in f32 and rounded once.
enum class ReduceOp : std::uint8_t { average, sum, min, max, product };
constexpr std::uint8_t reduce_op_count = 5;

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
  }
  return "unknown reduce op";
}

}  // namespace hvd
