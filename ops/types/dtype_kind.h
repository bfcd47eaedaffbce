#pragma once

#include <type_traits>

#include <hvd/types.h>

namespace hvd {

// What arithmetic a dtype has.
enum class DataKind {
  integer,
  floating,
  logical,
  complex,
  transport,  // none
};

namespace detail {

template <typename T>
consteval DataKind kind_of_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return DataKind::logical;
  } else if constexpr (std::is_integral_v<T>) {
    return DataKind::integer;
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return DataKind::complex;
  } else if constexpr (std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>) {
    return DataKind::transport;
  } else {
    static_assert(std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>);
    return DataKind::floating;
  }
}

}  // namespace detail

template <Element T>
inline constexpr DataKind kind_of_element = detail::kind_of_type<T>();

constexpr DataKind kind_of(DataType dtype) {
  switch (dtype) {
#define HVD_CASE(id, type, text) \
  case DataType::id:             \
    return kind_of_element<type>;
    HVD_FOR_EACH_DATA_TYPE(HVD_CASE)
#undef HVD_CASE
  }
  return DataKind::transport;
}

}  // namespace hvd
