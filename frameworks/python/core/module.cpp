#include <pybind11/pybind11.h>

#include "array.h"
#include "errors.h"
#include "handle.h"
#include "operations.h"
#include "world.h"

// What the Python package needs of hvd. Knows no framework: tensors are addresses, shapes and dtype codes.
PYBIND11_MODULE(_core, module) {
  hvd::python::bind_errors(module);
  hvd::python::bind_arrays(module);
  hvd::python::bind_handles(module);
  hvd::python::bind_operations(module);
  hvd::python::bind_world(module);
}
