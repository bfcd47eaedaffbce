#pragma once

#include <pybind11/pybind11.h>

namespace hvd::python {

void bind_operations(pybind11::module_& module);

}  // namespace hvd::python
