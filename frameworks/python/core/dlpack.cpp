#include "dlpack.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include <hvd/error.h>

#include "buffer.h"
#include "dlpack_abi.h"

namespace hvd::python {

namespace {

struct Row {
  DataType dtype;
  dlpack::TypeKind kind;
};
constexpr std::array<Row, data_type_count> rows{{
    {DataType::u8, dlpack::unsigned_integer},
    {DataType::i8, dlpack::signed_integer},
    {DataType::u16, dlpack::unsigned_integer},
    {DataType::i16, dlpack::signed_integer},
    {DataType::u32, dlpack::unsigned_integer},
    {DataType::i32, dlpack::signed_integer},
    {DataType::u64, dlpack::unsigned_integer},
    {DataType::i64, dlpack::signed_integer},
    {DataType::f16, dlpack::floating},
    {DataType::bf16, dlpack::bfloat},
    {DataType::f32, dlpack::floating},
    {DataType::f64, dlpack::floating},
    {DataType::boolean, dlpack::boolean},
    {DataType::c64, dlpack::complex},
    {DataType::c128, dlpack::complex},
    {DataType::f8e4m3, dlpack::float8_e4m3fn},
    {DataType::f8e5m2, dlpack::float8_e5m2},
}};

DataType element_type(dlpack::Type type) {
  for (const Row& row : rows) {
    if (type.lanes == 1 && row.kind == type.kind && size_of(row.dtype) * 8 == type.bits) return row.dtype;
  }
  throw InvalidArgumentError(fmt::format("hvd has no element type for DLPack's type {} of {} bits and {} lanes",
                                         type.kind, type.bits, type.lanes));
}

dlpack::Type type_of(DataType dtype) {
  for (const Row& row : rows) {
    if (row.dtype == dtype) return {row.kind, static_cast<std::uint8_t>(size_of(dtype) * 8), 1};
  }
  throw InternalError("a dtype without a DLPack type");
}

Device device_of(const dlpack::View& view) {
  switch (view.device_kind) {
    case dlpack::cpu:
    case dlpack::cuda_host:
    case dlpack::rocm_host:
      return {};
    case dlpack::cuda:
    case dlpack::cuda_managed:
    case dlpack::rocm:
      return {Device::Kind::gpu, view.device_index};
    default:
      throw InvalidArgumentError(fmt::format("hvd does not know DLPack's device kind {}", view.device_kind));
  }
}

bool is_dense(const dlpack::View& view, const Shape& shape) {
  if (view.strides == nullptr || shape.elements() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    if (shape[i] != 1 && view.strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Array copy_of(const dlpack::View& view, const Shape& shape, DataType dtype) {
  const auto size = static_cast<Py_ssize_t>(size_of(dtype));
  std::array<Py_ssize_t, Shape::max_rank> strides{};
  for (std::size_t i = 0; i < shape.rank(); ++i) strides[i] = view.strides[i] * size;
  Py_buffer buffer{};
  buffer.buf = static_cast<std::byte*>(view.data) + view.byte_offset;
  buffer.len = static_cast<Py_ssize_t>(shape.elements()) * size;
  buffer.itemsize = size;
  buffer.ndim = view.rank;
  buffer.shape = view.shape;
  buffer.strides = strides.data();
  return dense_copy(buffer, shape, dtype);
}

Array array_from(const dlpack::View& view, bool writable, bool read_only, std::shared_ptr<void> memory,
                 py::object owner) {
  const DataType dtype = element_type(view.type);
  const Shape shape(std::span<const std::int64_t>(view.shape, static_cast<std::size_t>(view.rank)));
  const Device device = device_of(view);
  if (!is_dense(view, shape)) {
    if (!writable && device == Device{}) return copy_of(view, shape, dtype);
    throw InvalidArgumentError(fmt::format("{}: the memory is not dense and row-major", describe(dtype, shape)));
  }
  return {.data = static_cast<std::byte*>(view.data) + view.byte_offset,
          .shape = shape,
          .dtype = dtype,
          .writable = !read_only,
          .device = device,
          .owner = std::move(owner),
          .memory = std::move(memory)};
}

// What is in the capsule, which belongs to us from here on.
template <typename Managed>
std::shared_ptr<Managed> take(const py::capsule& capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  return {managed, [](Managed* used) {
            if (used->release != nullptr) used->release(used);
          }};
}

// What a capsule that we give away holds: the structure, its sizes, and the array that keeps the memory.
template <typename Managed>
struct Export {
  Managed managed{};
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::array<std::int64_t, Shape::max_rank> strides{};
  py::object array;

  static void release(Managed* managed) {
    const py::gil_scoped_acquire gil;
    delete static_cast<Export*>(managed->context);
  }
};

template <typename Managed>
Export<Managed>* make_export(const py::object& self) {
  const auto& array = self.cast<const Array&>();
  auto made = std::make_unique<Export<Managed>>();
  std::int64_t stride = 1;
  for (std::size_t i = array.shape.rank(); i-- > 0;) {
    made->dims[i] = array.shape[i];
    made->strides[i] = stride;
    stride *= array.shape[i];
  }
  const auto [kind, index] = dlpack_device(array.device);
  made->managed.view = {.data = array.data,
                        .device_kind = kind,
                        .device_index = index,
                        .rank = static_cast<std::int32_t>(array.shape.rank()),
                        .type = type_of(array.dtype),
                        .shape = made->dims.data(),
                        .strides = made->strides.data(),
                        .byte_offset = 0};
  made->managed.context = made.get();
  made->managed.release = Export<Managed>::release;
  made->array = self;
  return made.release();
}

// A capsule that nobody has used gives its tensor back itself; who uses it gives it another name.
template <typename Managed>
py::capsule capsule_of(Managed* managed, const char* name) {
  return py::capsule(managed, name, [](PyObject* capsule) {
    const char* name_now = PyCapsule_GetName(capsule);
    if (name_now == nullptr || std::string_view(name_now).starts_with("used_")) return;
    auto* unused = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name_now));
    unused->release(unused);
  });
}

}  // namespace

std::pair<int, int> dlpack_device(Device device) {
  return device.kind == Device::Kind::cpu ? std::pair<int, int>{dlpack::cpu, 0}
                                          : std::pair<int, int>{dlpack::cuda, device.index};
}

Array from_dlpack(const py::capsule& capsule, bool writable, py::object owner) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    const auto managed = take<dlpack::Managed>(capsule, "dltensor", "used_dltensor");
    return array_from(managed->view, writable, false, managed, std::move(owner));
  }
  const auto managed = take<dlpack::ManagedVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
  if (managed->major != 1) {
    throw InvalidArgumentError(fmt::format("DLPack {}.{}; hvd knows version 1", managed->major, managed->minor));
  }
  const bool read_only = (managed->flags & dlpack::ManagedVersioned::read_only) != 0;
  return array_from(managed->view, writable, read_only, managed, std::move(owner));
}

py::capsule to_dlpack(const py::object& self, const py::object& /*stream*/, const py::object& max_version,
                      const py::object& dl_device, const py::object& copy) {
  const auto& array = self.cast<const Array&>();
  if (!dl_device.is_none() && dl_device.cast<std::pair<int, int>>() != dlpack_device(array.device)) {
    throw py::buffer_error("hvd does not move arrays to other devices");
  }
  if (!copy.is_none() && copy.cast<bool>()) throw py::buffer_error("hvd's arrays are not copied on export");
  if (!max_version.is_none() && max_version.cast<std::pair<int, int>>().first >= 1) {
    auto* made = make_export<dlpack::ManagedVersioned>(self);
    made->managed.major = 1;
    made->managed.flags = array.writable ? 0 : dlpack::ManagedVersioned::read_only;
    return capsule_of(&made->managed, "dltensor_versioned");
  }
  if (!array.writable) throw py::buffer_error("the array is read-only, which this version of DLPack cannot say");
  return capsule_of(&make_export<dlpack::Managed>(self)->managed, "dltensor");
}

}  // namespace hvd::python
