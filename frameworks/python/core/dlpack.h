#pragma once

#include "array.h"

namespace hvd::python {

// The tensor in a DLPack capsule, of either version of that protocol, which is used up. `owner` is kept beside it.
// Dense copies and errors are as from_buffer()'s.
Array from_dlpack(const py::capsule& capsule, bool writable, py::object owner);

// A capsule of the version that `max_version` allows; the other arguments are the protocol's.
py::capsule to_dlpack(const py::object& self, const py::object& stream, const py::object& max_version,
                      const py::object& dl_device, const py::object& copy);

// The protocol's pair of device kind and index.
std::pair<int, int> dlpack_device(Device device);

}  // namespace hvd::python
