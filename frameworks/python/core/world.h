#pragma once

#include <pybind11/pybind11.h>

namespace hvd::python {

// Lifetime, topology, process sets, arenas and counters.
void bind_world(pybind11::module_& module);

}  // namespace hvd::python
