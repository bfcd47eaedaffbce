#include "config/settings.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include <hvd/error.h>

#include "config/suggest.h"
#include "init_settings.h"

namespace hvd::python {

namespace py = pybind11;

namespace {

const Setting& setting_called(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Setting& setting : settings()) {
    if (setting.field == name) return setting;
    if (!setting.field.empty()) known.push_back(setting.field);
  }
  const std::string_view nearest = nearest_name(name, known, "");
  throw InvalidArgumentError(nearest.empty()
                                 ? fmt::format("init: there is no setting {}", name)
                                 : fmt::format("init: there is no setting {}; did you mean {}?", name, nearest));
}

std::string text_of(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "1" : "0";
  if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value)) return py::str(value);
  std::vector<std::string> items;
  for (const py::handle item : py::reinterpret_borrow<py::sequence>(value)) items.push_back(py::str(item));
  return fmt::format("{}", fmt::join(items, ","));
}

// Runs on the thread that drives progress. What the callable raises is printed; it has nowhere to go.
std::function<void(const std::string&)> callback_of(const py::object& callable) {
  // Goes when the interpreter may be gone already: then it stays.
  const std::shared_ptr<py::object> kept(new py::object(callable), [](py::object* object) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    delete object;
  });
  return [kept](const std::string& report) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    try {
      (*kept)(report);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("hvd's on_stall");
    }
  };
}

}  // namespace

Config config_of(const py::dict& given) {
  Config config = Config::from_environment();
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    if (value.is_none()) continue;
    if (name == "on_stall") {
      config.on_stall = callback_of(py::reinterpret_borrow<py::object>(value));
    } else if (name == "process_sets") {
      config.process_sets = value.cast<std::vector<std::vector<int>>>();
    } else {
      const std::string text = text_of(value);
      const std::string problem = set_from_text(setting_called(name), text, config);
      if (!problem.empty()) throw InvalidArgumentError(fmt::format("init: {}: '{}' {}", name, text, problem));
    }
  }
  return config;
}

py::dict settings_of(const Config& config) {
  py::dict all;
  for (const Setting& setting : settings()) {
    if (!setting.field.empty()) all[py::str(std::string(setting.field))] = value_text(setting, config);
  }
  return all;
}

}  // namespace hvd::python
