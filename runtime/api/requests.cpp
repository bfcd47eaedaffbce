#include "api/requests.h"

#include <algorithm>
#include <numeric>

#include <hvd/error.h>

#include "api/request_builder.h"
#include "negotiation/rank_groups.h"

namespace hvd::detail {

namespace {

void add_all(RequestBuilder& builder, Inputs inputs) {
  if (inputs.empty()) builder.fail("the group has no tensors");
  for (const ConstTensorView& input : inputs) builder.add(input);
}

void add_all(RequestBuilder& builder, Inputs inputs, Outputs outputs) {
  if (inputs.empty()) builder.fail("the group has no tensors");
  if (inputs.size() != outputs.size()) builder.fail("{} inputs and {} outputs", inputs.size(), outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) builder.add(inputs[i], outputs[i]);
}

// Every rank says how many rows it has.
void tell_rows(RequestBuilder& builder) {
  builder.need_rows();
  for (const TensorSpec& tensor : builder.request().tensors) builder.operation().extents.push_back(tensor.rows());
}

std::vector<std::int64_t> checked_splits(const RequestBuilder& builder, std::span<const std::int64_t> splits,
                                         std::int64_t rows) {
  if (splits.size() != builder.rank_count()) {
    builder.fail("{} splits for {} ranks", splits.size(), builder.rank_count());
  }
  std::int64_t total = 0;
  for (const std::int64_t split : splits) {
    if (split < 0 || split > rows - total) {
      builder.fail("the splits {} do not add up to its {} rows", fmt::join(splits, ", "), rows);
    }
    total += split;
  }
  if (total != rows) builder.fail("the splits {} do not add up to its {} rows", fmt::join(splits, ", "), rows);
  return {splits.begin(), splits.end()};
}

}  // namespace

OperationPtr make_allreduce(const CallContext& context, Inputs inputs, Outputs outputs, const AllreduceOptions& o) {
  RequestBuilder builder(context, Operation::allreduce, o.name, o.process_set, o.timeout);
  add_all(builder, inputs, outputs);
  builder.reduction(o.op, o.prescale, o.postscale);
  return builder.build();
}

OperationPtr make_reduce(const CallContext& context, Inputs inputs, Outputs outputs, const ReduceOptions& o) {
  RequestBuilder builder(context, Operation::reduce, o.name, o.process_set, o.timeout);
  builder.root(o.root_rank);
  add_all(builder, inputs, outputs);
  builder.reduction(o.op, o.prescale, o.postscale);
  return builder.build();
}

OperationPtr make_reduce_scatter(const CallContext& context, Inputs inputs, const ReduceScatterOptions& o) {
  RequestBuilder builder(context, Operation::reduce_scatter, o.name, o.process_set, o.timeout);
  add_all(builder, inputs);
  builder.need_rows();
  builder.reduction(o.op, o.prescale, o.postscale);
  return builder.build();
}

OperationPtr make_broadcast(const CallContext& context, Inputs inputs, Outputs outputs, const BroadcastOptions& o) {
  RequestBuilder builder(context, Operation::broadcast, o.name, o.process_set, o.timeout);
  builder.root(o.root_rank);
  if (context.topology.rank() == o.root_rank) {
    add_all(builder, inputs, outputs);
  } else {  // whose input is not read
    add_all(builder, std::vector<ConstTensorView>(outputs.begin(), outputs.end()), outputs);
  }
  return builder.build();
}

OperationPtr make_allgather(const CallContext& context, Inputs inputs, const AllgatherOptions& o) {
  RequestBuilder builder(context, Operation::allgather, o.name, o.process_set, o.timeout);
  add_all(builder, inputs);
  tell_rows(builder);
  return builder.build();
}

OperationPtr make_gather(const CallContext& context, Inputs inputs, const GatherOptions& o) {
  RequestBuilder builder(context, Operation::gather, o.name, o.process_set, o.timeout);
  builder.root(o.root_rank);
  add_all(builder, inputs);
  tell_rows(builder);
  return builder.build();
}

// The root's tensor is known to the root alone: it travels as an extent, and the requests agree.
OperationPtr make_scatter(const CallContext& context, const ConstTensorView& input, const ScatterOptions& o) {
  RequestBuilder builder(context, Operation::scatter, o.name, o.process_set, o.timeout);
  builder.root(o.root_rank);
  if (context.topology.rank() == o.root_rank) {
    builder.add(input);
    builder.need_rows();
    const TensorSpec tensor = builder.request().tensors.front();
    builder.request().tensors.clear();
    auto splits = o.splits.empty() ? equal_shares(tensor.rows(), builder.rank_count())
                                   : checked_splits(builder, o.splits, tensor.rows());
    builder.operation().extents = encode_scatter({.tensor = tensor, .splits = std::move(splits)});
  }
  return builder.build();
}

OperationPtr make_alltoall(const CallContext& context, const ConstTensorView& input, const AlltoallOptions& o) {
  RequestBuilder builder(context, Operation::alltoall, o.name, o.process_set, o.timeout);
  builder.add(input);
  builder.need_rows();
  const auto ranks = static_cast<std::int64_t>(builder.rank_count());
  const std::int64_t rows = builder.request().tensors.front().rows();
  if (o.splits.empty()) {
    if (rows % ranks != 0) {
      builder.fail("{} rows do not divide among {} ranks: give splits", rows, ranks);
    }
    builder.operation().extents.assign(static_cast<std::size_t>(ranks), rows / ranks);
  } else {
    builder.operation().extents = checked_splits(builder, o.splits, rows);
  }
  return builder.build();
}

OperationPtr make_send(const CallContext& context, const ConstTensorView& tensor, const SendOptions& o) {
  RequestBuilder builder(context, Operation::send_recv, o.name, o.process_set, o.timeout);
  builder.pair(context.topology.rank(), o.to_rank);
  builder.add(tensor);
  return builder.build();
}

OperationPtr make_recv(const CallContext& context, const TensorView& tensor, const RecvOptions& o) {
  RequestBuilder builder(context, Operation::send_recv, o.name, o.process_set, o.timeout);
  builder.pair(o.from_rank, context.topology.rank());
  builder.add(tensor, tensor);
  return builder.build();
}

OperationPtr make_barrier(const CallContext& context, const BarrierOptions& o) {
  return RequestBuilder(context, Operation::barrier, o.name, o.process_set, o.timeout).build();
}

OperationPtr make_join(const CallContext& context, const JoinOptions& o) {
  return RequestBuilder(context, Operation::join, "join", o.process_set, o.timeout).build();
}

OperationPtr make_add_process_set(const CallContext& context, std::vector<int> ranks) {
  std::ranges::sort(ranks);
  RequestBuilder builder(context, Operation::add_process_set, format_ranks(ranks), {}, {});
  if (const std::string problem = context.sets.problem_with(ranks); !problem.empty()) builder.fail("{}", problem);
  builder.operation().extents.assign(ranks.begin(), ranks.end());
  return builder.build();
}

OperationPtr make_remove_process_set(const CallContext& context, ProcessSet set) {
  RequestBuilder builder(context, Operation::remove_process_set, std::to_string(set.id), {}, {});
  if (set.id == 0) builder.fail("the set of all ranks stays");
  if (!context.sets.ranks(set.id)) builder.fail("process set {} does not exist", set.id);
  builder.request().root = static_cast<int>(set.id);
  return builder.build();
}

}  // namespace hvd::detail
