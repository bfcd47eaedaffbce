#pragma once

#include <pybind11/pybind11.h>

#include <hvd/config.h>

namespace hvd::python {

// The environment's settings, overridden by those given: names of Config's fields, values as in the environment
// variables (numbers and truth values also as such), process_sets a list of lists of ranks, on_stall a callable or
// None. Throws InvalidArgumentError that names the setting.
Config config_of(const pybind11::dict& settings);

// All of them as texts.
pybind11::dict settings_of(const Config& config);

}  // namespace hvd::python
