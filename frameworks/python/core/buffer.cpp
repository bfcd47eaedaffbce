#include "buffer.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <string_view>

#include <hvd/error.h>

namespace hvd::python {

namespace {

std::optional<DataType> integer(bool is_signed, std::size_t size) {
  switch (size) {
    case 1:
      return is_signed ? DataType::i8 : DataType::u8;
    case 2:
      return is_signed ? DataType::i16 : DataType::u16;
    case 4:
      return is_signed ? DataType::i32 : DataType::u32;
    case 8:
      return is_signed ? DataType::i64 : DataType::u64;
    default:
      return std::nullopt;
  }
}

// Letters of Python's struct module, and Z for complex (PEP 3118). The size decides which integer it is.
std::optional<DataType> element_type(std::string_view format, std::size_t size) {
  constexpr bool little = std::endian::native == std::endian::little;
  if (!format.empty() && std::string_view("@=").find(format.front()) != std::string_view::npos) format.remove_prefix(1);
  if (!format.empty() && format.front() == (little ? '<' : '>')) format.remove_prefix(1);
  if (format == "?") return DataType::boolean;
  if (format == "e") return DataType::f16;
  if (format == "f") return DataType::f32;
  if (format == "d") return DataType::f64;
  if (format == "Zf") return DataType::c64;
  if (format == "Zd") return DataType::c128;
  if (format.size() != 1) return std::nullopt;
  if (std::string_view("bhilqn").find(format) != std::string_view::npos) return integer(true, size);
  if (std::string_view("BHILQN").find(format) != std::string_view::npos) return integer(false, size);
  return std::nullopt;
}

const char* format_of(DataType dtype) {
  switch (dtype) {
    case DataType::u8:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
      return "B";
    case DataType::i8:
      return "b";
    case DataType::u16:
    case DataType::bf16:
      return "H";
    case DataType::i16:
      return "h";
    case DataType::u32:
      return "I";
    case DataType::i32:
      return "i";
    case DataType::u64:
      return "L";
    case DataType::i64:
      return "l";
    case DataType::f16:
      return "e";
    case DataType::f32:
      return "f";
    case DataType::f64:
      return "d";
    case DataType::boolean:
      return "?";
    case DataType::c64:
      return "Zf";
    case DataType::c128:
      return "Zd";
  }
  return "B";
}

DataType type_of(const Py_buffer& buffer, int wanted) {
  const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const auto size = static_cast<std::size_t>(buffer.itemsize);
  if (wanted >= 0) {
    const DataType dtype = dtype_of(wanted);
    if (size_of(dtype) == size) return dtype;
    throw InvalidArgumentError(fmt::format("elements of {} bytes are no {}", size, to_string(dtype)));
  }
  const auto dtype = element_type(format, size);
  if (!dtype || size_of(*dtype) != size) {
    throw InvalidArgumentError(fmt::format("hvd has no element type for the buffer format '{}'", format));
  }
  return *dtype;
}

}  // namespace

Array dense_copy(Py_buffer& buffer, const Shape& shape, DataType dtype) {
  Array copy = empty_array(shape, dtype);
  if (PyBuffer_ToContiguous(copy.data, &buffer, buffer.len, 'C') != 0) throw py::error_already_set();
  return copy;
}

Array from_buffer(const py::object& object, bool writable, int dtype) {
  Py_buffer raw{};
  if (PyObject_GetBuffer(object.ptr(), &raw, writable ? PyBUF_FULL : PyBUF_FULL_RO) != 0) throw py::error_already_set();
  std::shared_ptr<Py_buffer> buffer(new Py_buffer(raw), [](Py_buffer* used) {
    PyBuffer_Release(used);
    delete used;
  });
  const DataType type = type_of(*buffer, dtype);
  const Shape shape(std::span<const std::int64_t>(buffer->shape, static_cast<std::size_t>(buffer->ndim)));
  if (PyBuffer_IsContiguous(buffer.get(), 'C') == 0) {
    if (!writable) return dense_copy(*buffer, shape, type);
    throw InvalidArgumentError(fmt::format("{}: the memory is not dense and row-major", describe(type, shape)));
  }
  return {.data = buffer->buf, .shape = shape, .dtype = type, .writable = buffer->readonly == 0, .memory = buffer};
}

py::buffer_info buffer_info_of(const Array& array) {
  std::vector<py::ssize_t> shape(array.shape.dims().begin(), array.shape.dims().end());
  const auto size = static_cast<py::ssize_t>(size_of(array.dtype));
  std::vector<py::ssize_t> strides = py::detail::c_strides(shape, size);
  // Without elements there may be no memory, and NumPy takes a null pointer for a mistake.
  static std::byte nothing{};
  void* data = array.data == nullptr ? &nothing : array.data;
  return {data, size, format_of(array.dtype), static_cast<py::ssize_t>(shape.size()), shape, strides, !array.writable};
}

}  // namespace hvd::python
