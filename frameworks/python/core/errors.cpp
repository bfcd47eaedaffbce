#include "errors.h"

#include <array>
#include <cstring>
#include <exception>

#include <hvd/error.h>

namespace hvd::python {

namespace py = pybind11;

namespace {

// By code. Never destroyed: the interpreter may be gone by then.
using Classes = std::array<py::object, error_code_count>;
Classes& classes() {
  static auto* const instance = new Classes;
  return *instance;
}

void set_error_classes(const py::sequence& given) {
  if (given.size() != error_code_count) throw py::value_error("one class for each error code");
  for (std::size_t i = 0; i < given.size(); ++i) classes()[i] = given[i];
}

PyObject* class_of(ErrorCode code) {
  const py::object& known = classes()[static_cast<std::size_t>(code)];
  return known ? known.ptr() : PyExc_RuntimeError;
}

void translate(std::exception_ptr error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& e) {
    // Names are any bytes.
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(e.what(), static_cast<Py_ssize_t>(std::strlen(e.what())), "backslashreplace"));
    if (text) PyErr_SetObject(class_of(e.code()), text.ptr());
  }
}

}  // namespace

void bind_errors(py::module_& module) {
  py::register_local_exception_translator(&translate);
  module.def("set_error_classes", &set_error_classes, py::arg("classes"));
}

}  // namespace hvd::python
