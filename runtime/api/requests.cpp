#include "api/requests.h"

#include <algorithm>
#include <utility>

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

// Rows of each tensor for each rank, one tensor after the other: those given, or what `shares` makes of a tensor's
// rows.
template <typename Shares>
std::vector<std::int64_t> checked_splits(const RequestBuilder& builder, std::span<const std::int64_t> given,
                                         const Shares& shares) {
  const auto& tensors = builder.request().tensors;
  const std::size_t ranks = builder.rank_count();
  if (!given.empty() && given.size() != tensors.size() * ranks) {
    if (tensors.size() == 1) builder.fail("{} splits for {} ranks", given.size(), ranks);
    builder.fail("{} splits for {} tensors and {} ranks", given.size(), tensors.size(), ranks);
  }
  std::vector<std::int64_t> splits(given.begin(), given.end());
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const std::int64_t rows = tensors[k].rows();
    if (given.empty()) {
      const std::vector<std::int64_t> equal = shares(rows);
      splits.insert(splits.end(), equal.begin(), equal.end());
      continue;
    }
    const auto of_tensor = given.subspan(k * ranks, ranks);
    std::int64_t left = rows;
    for (const std::int64_t split : of_tensor) left = split < 0 || split > left ? -1 : left - split;
    if (left != 0) builder.fail("the splits {} do not add up to its {} rows", fmt::join(of_tensor, ", "), rows);
  }
  return splits;
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

// The root's tensors are known to the root alone: they travel as extents, and the requests agree.
OperationPtr make_scatter(const CallContext& context, Inputs inputs, const ScatterOptions& o) {
  RequestBuilder builder(context, Operation::scatter, o.name, o.process_set, o.timeout);
  builder.root(o.root_rank);
  if (context.topology.rank() == o.root_rank) {
    add_all(builder, inputs);
    builder.need_rows();
    const std::size_t ranks = builder.rank_count();
    const auto splits = checked_splits(builder, o.splits, [&](std::int64_t rows) { return equal_shares(rows, ranks); });
    std::vector<ScatterLayout> layouts;
    for (const TensorSpec& tensor : std::exchange(builder.request().tensors, {})) {
      const auto begin = splits.begin() + static_cast<std::ptrdiff_t>(layouts.size() * ranks);
      layouts.push_back({.tensor = tensor, .splits = {begin, begin + static_cast<std::ptrdiff_t>(ranks)}});
    }
    builder.operation().extents = encode_scatter(layouts);
  }
  return builder.build();
}

OperationPtr make_alltoall(const CallContext& context, Inputs inputs, const AlltoallOptions& o) {
  RequestBuilder builder(context, Operation::alltoall, o.name, o.process_set, o.timeout);
  add_all(builder, inputs);
  builder.need_rows();
  const auto ranks = static_cast<std::int64_t>(builder.rank_count());
  builder.operation().extents = checked_splits(builder, o.splits, [&](std::int64_t rows) {
    if (rows % ranks != 0) builder.fail("{} rows do not divide among {} ranks: give splits", rows, ranks);
    return equal_shares(rows, builder.rank_count());
  });
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
