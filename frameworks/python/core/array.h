#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include <hvd/tensor.h>

namespace hvd::python {

namespace py = pybind11;

// Memory that Python holds or hvd has allocated, as a dense row-major tensor, together with whatever keeps the memory
// valid.
struct Array {
  void* data = nullptr;
  Shape shape;
  DataType dtype = DataType::f32;
  bool writable = true;
  Device device = {};
  py::object owner = {};
  std::shared_ptr<void> memory = {};  // what is not Python's, or is given back in its own way

  ConstTensorView input() const { return {data, shape, dtype, device}; }
  // Throws InvalidArgumentError when the memory may not be written.
  TensorView output() const;
};

// Of an address that somebody else keeps valid, or `owner` does.
Array array_at(std::uintptr_t address, const py::object& shape, int dtype, py::object owner, bool writable, int gpu);
// New memory, uninitialised.
Array empty_array(const Shape& shape, DataType dtype);
Array array_of(Tensor tensor);

// The element type of a code from Python; throws InvalidArgumentError for one that does not exist.
DataType dtype_of(int code);
Shape shape_of(const py::handle& sizes);
py::tuple tuple_of(const Shape& shape);

void bind_arrays(py::module_& module);

}  // namespace hvd::python
