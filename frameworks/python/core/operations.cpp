#include "operations.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <array>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include <hvd/error.h>
#include <hvd/hvd.h>

#include "api/call_site.h"
#include "call_site.h"
#include "handle.h"
#include "process.h"

namespace hvd::python {

namespace {

using Arrays = py::sequence;
using Splits = std::vector<std::int64_t>;

// Horovod's numbers.
constexpr std::array ops{ReduceOp::average, ReduceOp::sum, ReduceOp::adasum,
                         ReduceOp::min,     ReduceOp::max, ReduceOp::product};

ReduceOp op_of(int code) {
  if (code < 0 || code >= static_cast<int>(ops.size())) {
    throw InvalidArgumentError(fmt::format("there is no reduce op {}", code));
  }
  return ops[static_cast<std::size_t>(code)];
}

// The views of a list of arrays, and the arrays themselves for as long as the operation needs them.
struct Operands {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  std::vector<py::object> kept;

  explicit Operands(const Arrays& arrays) {
    for (const py::handle array : arrays) inputs.push_back(keep(array).input());
  }
  Operands(const Arrays& arrays, const Arrays& results) : Operands(arrays) {
    for (const py::handle array : results) outputs.push_back(keep(array).output());
    if (inputs.size() != outputs.size()) {
      throw InvalidArgumentError(fmt::format("{} inputs and {} outputs", inputs.size(), outputs.size()));
    }
  }

  const Array& keep(py::handle array) {
    kept.push_back(py::reinterpret_borrow<py::object>(array));
    return array.cast<const Array&>();
  }
};

// Submits without the GIL: the engine's locks may be held by a thread that wants it.
template <typename Submit>
PendingHandle start(Operands& operands, const Submit& submit) {
  throw_if_forked();
  release_dropped();
  const detail::CallSite site(python_call_site());
  Handle handle;
  {
    const py::gil_scoped_release nogil;
    handle = submit();
  }
  return {std::move(handle), std::move(operands.kept)};
}

// These work on groups in place only.
void fill_outputs(const Operands& operands) {
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const ConstTensorView& input = operands.inputs[i];
    const TensorView& output = operands.outputs[i];
    if (input.shape() != output.shape() || input.dtype() != output.dtype()) {
      throw InvalidArgumentError(fmt::format("input is {}, output {}", describe(input.dtype(), input.shape()),
                                             describe(output.dtype(), output.shape())));
    }
    if (input.data() != output.data()) std::memmove(output.data(), input.data(), output.bytes());
  }
}

PendingHandle allreduce(const Arrays& inputs, const Arrays& outputs, std::string_view name, int op, double prescale,
                        double postscale, std::uint32_t set, double timeout) {
  Operands o(inputs, outputs);
  const AllreduceOptions options{name, op_of(op), prescale, postscale, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_allreduce_async(o.inputs, o.outputs, options); });
}

// One operation for each name. When one is refused, those before it are under way, and their arrays are kept.
std::vector<PendingHandle> allreduce_each(const Arrays& inputs, const Arrays& outputs,
                                          const std::vector<std::string>& names, int op, double prescale,
                                          double postscale, std::uint32_t set, double timeout) {
  throw_if_forked();
  release_dropped();
  Operands o(inputs, outputs);
  const AllreduceOptions options{{}, op_of(op), prescale, postscale, {set}, Timeout(timeout)};
  std::vector<Handle> submitted;
  submitted.reserve(names.size());
  std::exception_ptr refused;
  {
    const py::gil_scoped_release nogil;
    try {
      allreduce_each_async(o.inputs, o.outputs, names, options, submitted);
    } catch (...) {
      refused = std::current_exception();
    }
  }
  std::vector<PendingHandle> handles;
  handles.reserve(names.size());
  for (std::size_t i = 0; i < submitted.size(); ++i) {
    handles.emplace_back(std::move(submitted[i]), std::vector<py::object>{o.kept[i], o.kept[names.size() + i]});
  }
  if (refused) std::rethrow_exception(refused);
  return handles;
}

PendingHandle reduce(const Arrays& inputs, const Arrays& outputs, int root, std::string_view name, int op,
                     double prescale, double postscale, std::uint32_t set, double timeout) {
  Operands o(inputs, outputs);
  const ReduceOptions options{name, root, op_of(op), prescale, postscale, {set}, Timeout(timeout)};
  return start(o, [&] {
    if (o.inputs.size() == 1 && rank() == root) return reduce_async(o.inputs.front(), o.outputs.front(), options);
    fill_outputs(o);  // all ranks but the root keep these
    return grouped_reduce_async(o.outputs, options);
  });
}

PendingHandle broadcast(const Arrays& inputs, const Arrays& outputs, int root, std::string_view name, std::uint32_t set,
                        double timeout) {
  Operands o(inputs, outputs);
  const BroadcastOptions options{name, root, {set}, Timeout(timeout)};
  return start(o, [&] {
    if (o.inputs.size() == 1) return broadcast_async(o.inputs.front(), o.outputs.front(), options);
    fill_outputs(o);
    return grouped_broadcast_async(o.outputs, options);
  });
}

PendingHandle reduce_scatter(const Arrays& inputs, std::string_view name, int op, double prescale, double postscale,
                             std::uint32_t set, double timeout) {
  Operands o(inputs);
  const ReduceScatterOptions options{name, op_of(op), prescale, postscale, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_reduce_scatter_async(o.inputs, options); });
}

PendingHandle allgather(const Arrays& inputs, std::string_view name, std::uint32_t set, double timeout) {
  Operands o(inputs);
  const AllgatherOptions options{name, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_allgather_async(o.inputs, options); });
}

PendingHandle gather(const Arrays& inputs, int root, std::string_view name, std::uint32_t set, double timeout) {
  Operands o(inputs);
  const GatherOptions options{name, root, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_gather_async(o.inputs, options); });
}

PendingHandle scatter(const Arrays& inputs, int root, const Splits& splits, std::string_view name, std::uint32_t set,
                      double timeout) {
  Operands o(inputs);
  const ScatterOptions options{name, root, splits, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_scatter_async(o.inputs, options); });
}

PendingHandle alltoall(const Arrays& inputs, const Splits& splits, std::string_view name, std::uint32_t set,
                       double timeout) {
  Operands o(inputs);
  const AlltoallOptions options{name, splits, {set}, Timeout(timeout)};
  return start(o, [&] { return grouped_alltoall_async(o.inputs, options); });
}

PendingHandle send(const py::object& array, int to, std::string_view name, std::uint32_t set, double timeout) {
  Operands o(py::make_tuple(array));
  return start(o, [&] { return send_async(o.inputs.front(), {name, to, {set}, Timeout(timeout)}); });
}

PendingHandle recv(const py::object& array, int from, std::string_view name, std::uint32_t set, double timeout) {
  Operands o(py::make_tuple(array), py::make_tuple(array));
  return start(o, [&] { return recv_async(o.outputs.front(), {name, from, {set}, Timeout(timeout)}); });
}

PendingHandle barrier(std::string_view name, std::uint32_t set, double timeout) {
  Operands none{py::tuple()};
  return start(none, [&] { return barrier_async({name, {set}, Timeout(timeout)}); });
}

PendingHandle join(std::uint32_t set, double timeout) {
  Operands none{py::tuple()};
  return start(none, [&] { return join_async({{set}, Timeout(timeout)}); });
}

void check_consistency_of(const Arrays& arrays, const std::vector<std::string>& names, std::uint32_t set) {
  throw_if_forked();
  const Operands o(arrays);
  const py::gil_scoped_release nogil;
  check_consistency(o.inputs, names, {set});
}

}  // namespace

void bind_operations(py::module_& module) {
  const py::arg_v name("name", "");
  const py::arg_v op("op", 0);
  const py::arg_v prescale("prescale", 1.0);
  const py::arg_v postscale("postscale", 1.0);
  const py::arg_v set("process_set", 0U);
  const py::arg_v timeout("timeout", 0.0);
  const py::arg inputs("inputs");
  const py::arg outputs("outputs");
  const py::arg root("root_rank");
  const py::arg_v splits("splits", Splits{});
  module.def("allreduce_async", &allreduce, inputs, outputs, name, op, prescale, postscale, set, timeout);
  module.def("allreduce_each_async", &allreduce_each, inputs, outputs, py::arg("names"), op, prescale, postscale, set,
             timeout);
  module.def("reduce_async", &reduce, inputs, outputs, root, name, op, prescale, postscale, set, timeout);
  module.def("broadcast_async", &broadcast, inputs, outputs, root, name, set, timeout);
  module.def("reduce_scatter_async", &reduce_scatter, inputs, name, op, prescale, postscale, set, timeout);
  module.def("allgather_async", &allgather, inputs, name, set, timeout);
  module.def("gather_async", &gather, inputs, root, name, set, timeout);
  module.def("scatter_async", &scatter, inputs, root, splits, name, set, timeout);
  module.def("alltoall_async", &alltoall, inputs, splits, name, set, timeout);
  module.def("send_async", &send, py::arg("array"), py::arg("to_rank"), name, set, timeout);
  module.def("recv_async", &recv, py::arg("array"), py::arg("from_rank"), name, set, timeout);
  module.def("barrier_async", &barrier, name, set, timeout);
  module.def("join_async", &join, set, timeout);
  module.def("check_consistency", &check_consistency_of, py::arg("arrays"), py::arg("names") = py::list(), set);
}

}  // namespace hvd::python
