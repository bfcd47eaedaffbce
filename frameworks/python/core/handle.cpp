#include "handle.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "process.h"

namespace hvd::python {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// How long Python's signal handlers may have to wait.
constexpr Seconds look_at_signals{0.1};

// Dropped while in flight; under the GIL. Never destroyed: the interpreter may be gone by then.
struct Dropped {
  std::vector<PendingHandle> handles;
  std::size_t look_at = 16;  // when there are so many
};
Dropped& dropped() {
  static auto* const instance = new Dropped;
  return *instance;
}

void wait_all(const std::vector<PendingHandle*>& handles) {
  std::exception_ptr first;
  for (PendingHandle* handle : handles) {
    try {
      handle->wait(std::nullopt);
    } catch (const py::error_already_set&) {
      throw;  // a signal: the caller wants to be elsewhere
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

bool all_ready(const std::vector<PendingHandle*>& handles) {
  throw_if_forked();
  return std::ranges::all_of(handles, [](const PendingHandle* handle) { return handle->ready(); });
}

}  // namespace

void release_dropped() {
  std::vector<PendingHandle>& handles = dropped().handles;
  if (handles.empty() || forked()) return;
  const auto done = std::stable_partition(handles.begin(), handles.end(),
                                          [](const PendingHandle& handle) { return !handle.ready(); });
  // Apart, as what they hold may run any code when it goes.
  const std::vector<PendingHandle> going(std::make_move_iterator(done), std::make_move_iterator(handles.end()));
  handles.erase(done, handles.end());
  dropped().look_at = std::max<std::size_t>(16, 2 * handles.size());
}

PendingHandle::~PendingHandle() {
  if (!handle_) return;
  if (forked()) {  // even the lock of the pool of operations may be one that the parent held
    new Handle(std::move(handle_));
    return;
  }
  if (handle_.ready()) return;
  dropped().handles.emplace_back(std::move(handle_), std::move(arrays_));
  if (dropped().handles.size() >= dropped().look_at) release_dropped();
}

bool PendingHandle::wait(std::optional<double> timeout) {
  throw_if_forked();
  const auto start = Clock::now();
  bool done = false;
  while (!done) {
    Seconds limit = look_at_signals;
    const bool bounded = timeout.has_value();
    if (bounded) limit = std::clamp<Seconds>(Seconds(*timeout) - (Clock::now() - start), Seconds(0), limit);
    try {
      const py::gil_scoped_release nogil;
      done = handle_.wait_for(limit);
    } catch (...) {
      arrays_.clear();
      throw;
    }
    if (done) break;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (bounded && Clock::now() - start >= Seconds(*timeout)) return false;
  }
  arrays_.clear();
  release_dropped();
  return true;
}

bool PendingHandle::cancel() {
  throw_if_forked();
  const py::gil_scoped_release nogil;
  return handle_.cancel();
}

std::vector<Array> PendingHandle::take_outputs() {
  wait(std::nullopt);
  std::vector<Array> arrays;
  for (Tensor& tensor : handle_.take_outputs()) arrays.push_back(array_of(std::move(tensor)));
  return arrays;
}

std::vector<std::int64_t> PendingHandle::received_splits() {
  wait(std::nullopt);
  return handle_.received_splits();
}

int PendingHandle::last_joined_rank() {
  wait(std::nullopt);
  return handle_.last_joined_rank();
}

void bind_handles(py::module_& module) {
  py::class_<PendingHandle>(module, "Handle", py::module_local())
      .def("wait", &PendingHandle::wait, py::arg("timeout") = py::none())
      .def("ready",
           [](const PendingHandle& handle) {
             throw_if_forked();
             return handle.ready();
           })
      .def("cancel", &PendingHandle::cancel)
      .def("take_outputs", &PendingHandle::take_outputs)
      .def("received_splits", &PendingHandle::received_splits)
      .def("last_joined_rank", &PendingHandle::last_joined_rank);
  module.def("wait_all", &wait_all, py::arg("handles"));
  module.def("all_ready", &all_ready, py::arg("handles"));
}

}  // namespace hvd::python
