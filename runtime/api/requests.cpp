#include "api/requests.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <cstdint>

namespace hvd::detail {

namespace {

// Collects what is common to all operations and words their errors.
class Builder {
 public:
  Builder(Operation kind, std::string_view name, ProcessSet set) : operation_(std::make_shared<PendingOperation>()) {
    Request& request = operation_->request;
    request.operation = kind;
    request.process_set = set.id;
    if (name.size() > max_name_bytes) {
      fail(fmt::format("the name has {} bytes, at most {} are allowed", name.size(), max_name_bytes));
    }
    if (name.find('\0') != std::string_view::npos) fail("the name holds a NUL byte");
    request.name = name;
    if (set.id != 0) fail(fmt::format("process set {} does not exist", set.id));
  }

  Request& request() { return operation_->request; }

  void input(const ConstTensorView& view) {
    request().dtype = view.dtype();
    request().shape = view.shape();
    request().device = view.device().kind;
    check(view, "input");
    operation_->input = view.data();
  }

  void output(const ConstTensorView& input, const TensorView& output) {
    check(output, "output");
    if (input.dtype() != output.dtype() || input.shape() != output.shape()) {
      fail(fmt::format("input is {}, output {}", describe(input.dtype(), input.shape()),
                       describe(output.dtype(), output.shape())));
    }
    const auto in = reinterpret_cast<std::uintptr_t>(input.data());
    const auto out = reinterpret_cast<std::uintptr_t>(output.data());
    if (in != out && in < out + output.bytes() && out < in + input.bytes()) fail("input and output overlap in part");
    operation_->output = output.data();
  }

  [[noreturn]] void fail(const std::string& what) const {
    const Request& r = operation_->request;
    const std::string name = r.name.empty() ? "" : fmt::format(" '{}'", r.name);
    throw InvalidArgumentError(fmt::format("{}{}: {}", to_string(r.operation), name, what));
  }

  OperationPtr build() {
    operation_->fingerprint = fingerprint(operation_->request);
    operation_->submitted = std::chrono::steady_clock::now();
    return std::move(operation_);
  }

 private:
  void check(const ConstTensorView& view, const char* what) const {
    if (view.device().kind != Device::Kind::cpu) {
      fail(fmt::format("{} is on gpu {}; this build has a data plane for cpu tensors only", what, view.device().index));
    }
    if (view.data() == nullptr && view.shape().elements() > 0) {
      fail(fmt::format("{} {} has no memory", what, describe(view.dtype(), view.shape())));
    }
  }

  OperationPtr operation_;
};

}  // namespace

OperationPtr make_allreduce(const ConstTensorView& input, const TensorView& output, const AllreduceOptions& options) {
  Builder builder(Operation::allreduce, options.name, options.process_set);
  builder.input(input);
  builder.output(input, output);
  builder.request().reduce_op = options.op;
  builder.request().prescale = options.prescale;
  builder.request().postscale = options.postscale;
  return builder.build();
}

OperationPtr make_broadcast(const ConstTensorView& input, const TensorView& output, const BroadcastOptions& options,
                            const Topology& topology) {
  Builder builder(Operation::broadcast, options.name, options.process_set);
  if (options.root_rank < 0 || options.root_rank >= topology.size()) {
    builder.fail(fmt::format("root rank {} is not in 0..{}", options.root_rank, topology.size() - 1));
  }
  builder.request().root = options.root_rank;
  builder.input(topology.rank() == options.root_rank ? input : output);
  builder.output(topology.rank() == options.root_rank ? input : output, output);
  return builder.build();
}

OperationPtr make_allgather(const ConstTensorView& input, const AllgatherOptions& options) {
  Builder builder(Operation::allgather, options.name, options.process_set);
  builder.input(input);
  if (input.shape().rank() == 0) builder.fail("needs 1 or more dimensions, got a scalar");
  return builder.build();
}

OperationPtr make_barrier(const BarrierOptions& options) {
  Builder builder(Operation::barrier, options.name, options.process_set);
  builder.request().shape = Shape{0};
  return builder.build();
}

}  // namespace hvd::detail
