#pragma once

#include <pybind11/pybind11.h>

namespace hvd::python {

// hvd's exceptions become those of the Python package, which hands its classes over when it is imported, in the order
// of ErrorCode.
void bind_errors(pybind11::module_& module);

}  // namespace hvd::python
