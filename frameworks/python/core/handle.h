#pragma once

#include <optional>
#include <vector>

#include <hvd/handle.h>

#include "array.h"

namespace hvd::python {

// An operation and the Python objects whose memory it uses. They are kept until it is done, also when Python drops the
// handle before that.
class PendingHandle {
 public:
  PendingHandle(Handle handle, std::vector<py::object> arrays)
      : handle_(std::move(handle)), arrays_(std::move(arrays)) {}
  ~PendingHandle();
  PendingHandle(PendingHandle&&) = default;
  PendingHandle& operator=(PendingHandle&&) = default;
  PendingHandle(const PendingHandle&) = delete;
  PendingHandle& operator=(const PendingHandle&) = delete;

  // Without the GIL; lets Python's signal handlers run meanwhile. False when the time, in seconds, is over.
  bool wait(std::optional<double> timeout);
  bool ready() const { return handle_.ready(); }
  bool cancel();
  std::vector<Array> take_outputs();
  std::vector<std::int64_t> received_splits();
  int last_joined_rank();

 private:
  Handle handle_;
  std::vector<py::object> arrays_;
};

// Lets go of the arrays of dropped handles whose operations are done.
void release_dropped();

void bind_handles(py::module_& module);

}  // namespace hvd::python
