#pragma once

#include <cstdint>

// The structures of the DLPack protocol 1.0 (https://dmlc.github.io/dlpack), whose layout is fixed.
namespace hvd::python::dlpack {

enum DeviceKind : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, rocm = 10, rocm_host = 11, cuda_managed = 13 };

enum TypeKind : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  complex = 5,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12,
};

struct Type {
  std::uint8_t kind;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct View {
  void* data;
  std::int32_t device_kind;
  std::int32_t device_index;
  std::int32_t rank;
  Type type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: dense and row-major
  std::uint64_t byte_offset;
};

// In a capsule named "dltensor".
struct Managed {
  View view;
  void* context;
  void (*release)(Managed* self);
};

// In a capsule named "dltensor_versioned".
struct ManagedVersioned {
  static constexpr std::uint64_t read_only = 1;

  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*release)(ManagedVersioned* self);
  std::uint64_t flags;
  View view;
};

}  // namespace hvd::python::dlpack
