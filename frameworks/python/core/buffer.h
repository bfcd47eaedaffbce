#pragma once

#include "array.h"

namespace hvd::python {

// The memory of an object with Python's buffer protocol. What is not dense and row-major is copied when it is only
// read; when it is to be written, or when hvd has no such element type, InvalidArgumentError. A `dtype` of 0 or more
// reinterprets the elements, whose size it must have.
Array from_buffer(const py::object& object, bool writable, int dtype);

// Element types that the buffer protocol has no letter for are shown as unsigned integers of their size.
py::buffer_info buffer_info_of(const Array& array);

// A dense copy of what the filled-in structure describes.
Array dense_copy(Py_buffer& buffer, const Shape& shape, DataType dtype);

}  // namespace hvd::python
