#include "array.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include <hvd/error.h>

#include "buffer.h"
#include "dlpack.h"

namespace hvd::python {

TensorView Array::output() const {
  if (!writable) throw InvalidArgumentError(fmt::format("{}: the memory is read-only", describe(dtype, shape)));
  return {data, shape, dtype, device};
}

DataType dtype_of(int code) {
  if (code < 0 || code >= data_type_count) throw InvalidArgumentError(fmt::format("there is no dtype {}", code));
  return static_cast<DataType>(code);
}

Shape shape_of(const py::handle& sizes) {
  const auto list = py::reinterpret_steal<py::object>(PySequence_Fast(sizes.ptr(), "a shape is a sequence of sizes"));
  if (!list) throw py::error_already_set();
  const auto rank = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(list.ptr()));
  std::array<std::int64_t, Shape::max_rank> dims{};
  if (rank > dims.size()) {
    throw InvalidArgumentError(fmt::format("{} dimensions; at most {} are possible", rank, Shape::max_rank));
  }
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i)));
    if (dims[i] == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  }
  return Shape(std::span<const std::int64_t>(dims).first(rank));
}

py::tuple tuple_of(const Shape& shape) {
  py::tuple sizes(shape.rank());
  for (std::size_t i = 0; i < shape.rank(); ++i) sizes[i] = shape[i];
  return sizes;
}

Array array_at(std::uintptr_t address, const py::object& shape, int dtype, py::object owner, bool writable, int gpu) {
  return {.data = reinterpret_cast<void*>(address),
          .shape = shape_of(shape),
          .dtype = dtype_of(dtype),
          .writable = writable,
          .device = gpu < 0 ? Device{} : Device{Device::Kind::gpu, gpu},
          .owner = std::move(owner)};
}

Array array_of(Tensor tensor) {
  auto memory = std::make_shared<Tensor>(std::move(tensor));
  return {.data = memory->data(), .shape = memory->shape(), .dtype = memory->dtype(), .memory = memory};
}

Array empty_array(const Shape& shape, DataType dtype) { return array_of(Tensor(shape, dtype)); }

namespace {

void copy_from(const Array& to, const Array& from) {
  const TensorView output = to.output();
  if (from.dtype != to.dtype || from.shape != to.shape) {
    throw InvalidArgumentError(
        fmt::format("copy of {} to {}", describe(from.dtype, from.shape), describe(to.dtype, to.shape)));
  }
  if (output.data() == from.data) return;
  const py::gil_scoped_release nogil;
  if (output.bytes() > 0) std::memmove(output.data(), from.data, output.bytes());
}

}  // namespace

void bind_arrays(py::module_& module) {
  py::class_<Array>(module, "Array", py::module_local(), py::buffer_protocol())
      .def(py::init(&array_at), py::arg("pointer"), py::arg("shape"), py::arg("dtype"), py::arg("owner") = py::none(),
           py::arg("writable") = true, py::arg("gpu") = -1)
      .def_property_readonly("pointer", [](const Array& a) { return reinterpret_cast<std::uintptr_t>(a.data); })
      .def_property_readonly("shape", [](const Array& a) { return tuple_of(a.shape); })
      .def_property_readonly("dtype", [](const Array& a) { return static_cast<int>(a.dtype); })
      .def_property_readonly("dtype_name", [](const Array& a) { return std::string(to_string(a.dtype)); })
      .def_property_readonly("nbytes", [](const Array& a) { return a.input().bytes(); })
      .def_property_readonly("writable", [](const Array& a) { return a.writable; })
      .def_property_readonly("owner", [](const Array& a) { return a.owner ? a.owner : py::none(); })
      .def("copy_from", &copy_from, py::arg("other"))
      .def("__repr__", [](const Array& a) { return fmt::format("<hvd.Array {}>", describe(a.dtype, a.shape)); })
      .def("__dlpack__", &to_dlpack, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack_device__", [](const Array& a) { return dlpack_device(a.device); })
      .def_buffer(&buffer_info_of);
  module.def(
      "empty", [](const py::object& shape, int dtype) { return empty_array(shape_of(shape), dtype_of(dtype)); },
      py::arg("shape"), py::arg("dtype"));
  module.def("from_buffer", &from_buffer, py::arg("object"), py::arg("writable"), py::arg("dtype") = -1);
  module.def("from_dlpack", &from_dlpack, py::arg("capsule"), py::arg("writable"), py::arg("owner"));
  py::dict codes;
  for (int code = 0; code < data_type_count; ++code) {
    codes[py::str(std::string(to_string(static_cast<DataType>(code))))] = code;
  }
  module.attr("dtypes") = codes;
  module.def(
      "dtype_size", [](int code) { return size_of(dtype_of(code)); }, py::arg("dtype"));
}

}  // namespace hvd::python
