#include "api/request_builder.h"

#include <hvd/error.h>
#include <algorithm>
#include <cmath>

#include "api/call_site.h"
#include "engine/operation_pool.h"
#include "negotiation/rank_groups.h"
#include "types/dtype_rules.h"

namespace hvd::detail {

RequestBuilder::RequestBuilder(const CallContext& context, Operation kind, std::string_view name, ProcessSet set,
                               Timeout timeout)
    : context_(context), operation_(take_operation()) {
  Request& request = operation_->request;
  request.operation = kind;
  if (name.size() > max_name_bytes) fail("the name has {} bytes, at most {} are allowed", name.size(), max_name_bytes);
  if (name.find('\0') != std::string_view::npos) fail("the name holds a NUL byte");
  request.name = name;
  request.timeout = timeout.count();
  if (!(request.timeout >= 0) || std::isinf(request.timeout)) fail("a timeout of {} s", request.timeout);
  if (set.id == 0) return;
  const auto ranks = context.sets.ranks(set.id);
  if (!ranks) fail("process set {} does not exist", set.id);
  if (!position_in(*ranks, context.topology.rank())) {
    fail("rank {} is not in process set {}, whose ranks are {}", context.topology.rank(), set.id, format_ranks(*ranks));
  }
  request.process_set = set.id;
  ranks_ = *ranks;
}

std::size_t RequestBuilder::rank_count() const {
  return ranks_.empty() ? static_cast<std::size_t>(context_.topology.size()) : ranks_.size();
}

void RequestBuilder::add(const ConstTensorView& input) {
  Request& r = request();
  check(input, "input");
  if (!r.tensors.empty() && r.device != input.device().kind) fail("its tensors are on unlike devices");
  r.device = input.device().kind;
  r.tensors.push_back({.dtype = input.dtype(), .shape = input.shape()});
  operation_->memory.push_back({.input = input.data(), .output = nullptr});
}

void RequestBuilder::add(const ConstTensorView& input, const TensorView& output) {
  add(input);
  check(output, "output");
  if (input.dtype() != output.dtype() || input.shape() != output.shape()) {
    fail("input is {}, output {}", describe(input.dtype(), input.shape()), describe(output.dtype(), output.shape()));
  }
  const auto in = reinterpret_cast<std::uintptr_t>(input.data());
  const auto out = reinterpret_cast<std::uintptr_t>(output.data());
  if (in != out && in < out + output.bytes() && out < in + input.bytes()) fail("input and output overlap in part");
  operation_->memory.back().output = output.data();
}

void RequestBuilder::check(const ConstTensorView& view, const char* what) const {
  if (view.device().kind != Device::Kind::cpu) {
    fail("{} is on gpu {}; this build has a data plane for cpu tensors only", what, view.device().index);
  }
  if (context_.check == CheckLevel::off) return;
  if (view.data() == nullptr && view.shape().elements() > 0) {
    fail("{} {} has no memory", what, describe(view.dtype(), view.shape()));
  }
}

void RequestBuilder::reduction(ReduceOp op, double prescale, double postscale) {
  Request& r = request();
  r.reduce_op = op;
  r.prescale = prescale;
  r.postscale = postscale;
  for (const TensorSpec& tensor : r.tensors) {
    const std::string problem = reduction_problem(r.operation, tensor.dtype, op, prescale, postscale);
    if (!problem.empty()) fail("{}", problem);
  }
}

void RequestBuilder::root(int rank) {
  check_rank("root", rank);
  request().root = rank;
}

void RequestBuilder::pair(int sender, int receiver) {
  const int me = context_.topology.rank();
  if (sender == receiver) fail("rank {} is both ends of it", me);
  check_rank(sender == me ? "receiving" : "sending", sender == me ? receiver : sender);
  request().root = sender;
  request().peer = receiver;
}

void RequestBuilder::check_rank(const char* what, int rank) const {
  if (rank < 0 || rank >= context_.topology.size()) {
    fail("{} rank {} is not in 0..{}", what, rank, context_.topology.size() - 1);
  }
  if (!ranks_.empty() && !position_in(ranks_, rank)) fail("{} rank {} is not in {}", what, rank, format_ranks(ranks_));
}

void RequestBuilder::need_rows() const {
  for (const TensorSpec& tensor : operation_->request.tensors) {
    if (tensor.shape.rank() == 0) fail("needs 1 or more dimensions, got a scalar");
  }
}

void RequestBuilder::fail_with(const std::string& what) const {
  const Request& r = operation_->request;
  const std::string name = r.name.empty() ? "" : fmt::format(" '{}'", r.name);
  const std::string set = r.process_set == 0 ? "" : fmt::format(" process set {}", r.process_set);
  throw InvalidArgumentError(fmt::format("{}{}{}: {}", to_string(r.operation), name, set, what));
}

OperationPtr RequestBuilder::build() {
  // The two ends of a message are two places in the program.
  if (context_.check == CheckLevel::comm && request().name.empty() && request().operation != Operation::send_recv) {
    request().call_site = call_site_digest(context_.call_site);
  }
  operation_->fingerprint = fingerprint(operation_->request);
  operation_->submitted = std::chrono::steady_clock::now();
  return std::move(operation_);
}

}  // namespace hvd::detail
