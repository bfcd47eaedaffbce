#include <hvd/runtime.h>

#include <algorithm>
#include <iterator>

#include "running_step.h"

// The calls, one of each form.
namespace hvd::test {

namespace {

AllreduceOptions reduce_options(const Step& step, ProcessSet set) {
  return {.name = step.name,
          .op = step.rule.op,
          .prescale = step.rule.prescale,
          .postscale = step.rule.postscale,
          .process_set = set};
}

ReduceScatterOptions reduce_scatter_options(const Step& step, ProcessSet set) {
  return {.name = step.name,
          .op = step.rule.op,
          .prescale = step.rule.prescale,
          .postscale = step.rule.postscale,
          .process_set = set};
}

ReduceOptions rooted_options(const Step& step, ProcessSet set) {
  return {.name = step.name,
          .root_rank = step.ranks[static_cast<std::size_t>(step.root)],
          .op = step.rule.op,
          .prescale = step.rule.prescale,
          .postscale = step.rule.postscale,
          .process_set = set};
}

template <typename Options>
Options root_of(const Step& step, ProcessSet set) {
  return {.name = step.name, .root_rank = step.ranks[static_cast<std::size_t>(step.root)], .process_set = set};
}

using Splits = std::vector<std::int64_t>;

ScatterOptions scatter_options(const Step& step, ProcessSet set, const Splits& splits) {
  auto options = root_of<ScatterOptions>(step, set);
  options.splits = splits;
  return options;
}

AlltoallOptions alltoall_options(const Step& step, ProcessSet set, const Splits& splits) {
  return {.name = step.name, .splits = splits, .process_set = set};
}

int rank_at(const Step& step, int position) { return step.ranks[static_cast<std::size_t>(position)]; }

}  // namespace

std::vector<Array> data_of(const std::vector<Tensor>& tensors) {
  std::vector<Array> data;
  std::ranges::transform(tensors, std::back_inserter(data), [](const Tensor& tensor) { return Array(tensor); });
  return data;
}

// The others' counts for nothing; they may pass one or none.
ConstTensorView RunningStep::scatter_input() const {
  return position_ == mine_.root || mine_.seed % 2 == 0 ? input() : ConstTensorView();
}

std::vector<ConstTensorView> RunningStep::scatter_inputs() const {
  return position_ == mine_.root || mine_.seed % 2 == 0 ? inputs() : std::vector<ConstTensorView>();
}

void RunningStep::submit(Runtime& runtime, ProcessSet set) {
  switch (mine_.operation) {
    case Operation::allreduce: {
      const auto options = reduce_options(mine_, set);
      handle_ = mine_.in_place ? runtime.allreduce_async(output(), options)
                               : runtime.allreduce_async(input(), output(), options);
      return;
    }
    case Operation::reduce: {
      const auto options = rooted_options(mine_, set);
      handle_ =
          mine_.in_place ? runtime.reduce_async(output(), options) : runtime.reduce_async(input(), output(), options);
      return;
    }
    case Operation::broadcast: {
      const auto options = root_of<BroadcastOptions>(mine_, set);
      handle_ = mine_.in_place ? runtime.broadcast_async(output(), options)
                               : runtime.broadcast_async(input(), output(), options);
      return;
    }
    case Operation::reduce_scatter:
      handle_ = runtime.reduce_scatter_async(input(), reduce_scatter_options(mine_, set));
      return;
    case Operation::allgather:
      handle_ = runtime.allgather_async(input(), {.name = mine_.name, .process_set = set});
      return;
    case Operation::gather:
      handle_ = runtime.gather_async(input(), root_of<GatherOptions>(mine_, set));
      return;
    case Operation::scatter:
      handle_ = runtime.scatter_async(scatter_input(), scatter_options(mine_, set, given_splits(mine_, mine_.root)));
      return;
    case Operation::alltoall:
      handle_ = runtime.alltoall_async(input(), alltoall_options(mine_, set, given_splits(mine_, position_)));
      return;
    case Operation::send_recv:
      handle_ =
          position_ == mine_.root
              ? runtime.recv_async(
                    output(), {.name = mine_.name, .from_rank = rank_at(mine_, 1 - mine_.root), .process_set = set})
              : runtime.send_async(input(),
                                   {.name = mine_.name, .to_rank = rank_at(mine_, mine_.root), .process_set = set});
      return;
    default:
      handle_ = runtime.barrier_async({.name = mine_.name, .process_set = set});
  }
}

void RunningStep::run(Runtime& runtime, ProcessSet set) {
  switch (mine_.operation) {
    case Operation::allreduce: {
      const auto options = reduce_options(mine_, set);
      return mine_.in_place ? runtime.allreduce(output(), options) : runtime.allreduce(input(), output(), options);
    }
    case Operation::reduce: {
      const auto options = rooted_options(mine_, set);
      return mine_.in_place ? runtime.reduce(output(), options) : runtime.reduce(input(), output(), options);
    }
    case Operation::broadcast: {
      const auto options = root_of<BroadcastOptions>(mine_, set);
      return mine_.in_place ? runtime.broadcast(output(), options) : runtime.broadcast(input(), output(), options);
    }
    case Operation::reduce_scatter:
      outputs_ = {Array(runtime.reduce_scatter(input(), reduce_scatter_options(mine_, set)))};
      return;
    case Operation::allgather:
      outputs_ = {Array(runtime.allgather(input(), {.name = mine_.name, .process_set = set}))};
      return;
    case Operation::gather:
      outputs_ = {Array(runtime.gather(input(), root_of<GatherOptions>(mine_, set)))};
      return;
    case Operation::scatter:
      outputs_ = {
          Array(runtime.scatter(scatter_input(), scatter_options(mine_, set, given_splits(mine_, mine_.root))))};
      return;
    case Operation::alltoall:
      outputs_ = {Array(
          runtime.alltoall(input(), alltoall_options(mine_, set, given_splits(mine_, position_)), &received_splits_))};
      return;
    case Operation::send_recv:
      if (position_ == mine_.root)
        return runtime.recv(output(),
                            {.name = mine_.name, .from_rank = rank_at(mine_, 1 - mine_.root), .process_set = set});
      return runtime.send(input(), {.name = mine_.name, .to_rank = rank_at(mine_, mine_.root), .process_set = set});
    default:
      runtime.barrier({.name = mine_.name, .process_set = set});
  }
}

void RunningStep::submit_group(Runtime& runtime, ProcessSet set) {
  switch (mine_.operation) {
    case Operation::allreduce: {
      const auto options = reduce_options(mine_, set);
      handle_ = mine_.in_place ? runtime.grouped_allreduce_async(outputs(), options)
                               : runtime.grouped_allreduce_async(inputs(), outputs(), options);
      return;
    }
    case Operation::reduce_scatter:
      handle_ = runtime.grouped_reduce_scatter_async(inputs(), reduce_scatter_options(mine_, set));
      return;
    case Operation::allgather:
      handle_ = runtime.grouped_allgather_async(inputs(), {.name = mine_.name, .process_set = set});
      return;
    case Operation::reduce:
      handle_ = runtime.grouped_reduce_async(outputs(), rooted_options(mine_, set));
      return;
    case Operation::scatter:
      handle_ =
          runtime.grouped_scatter_async(scatter_inputs(), scatter_options(mine_, set, given_splits(mine_, mine_.root)));
      return;
    case Operation::alltoall:
      handle_ = runtime.grouped_alltoall_async(inputs(), alltoall_options(mine_, set, given_splits(mine_, position_)));
      return;
    case Operation::gather:
      handle_ = runtime.grouped_gather_async(inputs(), root_of<GatherOptions>(mine_, set));
      return;
    default:
      handle_ = runtime.grouped_broadcast_async(outputs(), root_of<BroadcastOptions>(mine_, set));
  }
}

void RunningStep::run_group(Runtime& runtime, ProcessSet set) {
  switch (mine_.operation) {
    case Operation::allreduce: {
      const auto options = reduce_options(mine_, set);
      return mine_.in_place ? runtime.grouped_allreduce(outputs(), options)
                            : runtime.grouped_allreduce(inputs(), outputs(), options);
    }
    case Operation::reduce_scatter:
      outputs_ = data_of(runtime.grouped_reduce_scatter(inputs(), reduce_scatter_options(mine_, set)));
      return;
    case Operation::allgather:
      outputs_ = data_of(runtime.grouped_allgather(inputs(), {.name = mine_.name, .process_set = set}));
      return;
    case Operation::reduce:
      return runtime.grouped_reduce(outputs(), rooted_options(mine_, set));
    case Operation::scatter:
      outputs_ = data_of(
          runtime.grouped_scatter(scatter_inputs(), scatter_options(mine_, set, given_splits(mine_, mine_.root))));
      return;
    case Operation::alltoall:
      outputs_ = data_of(runtime.grouped_alltoall(
          inputs(), alltoall_options(mine_, set, given_splits(mine_, position_)), &received_splits_));
      return;
    case Operation::gather:
      outputs_ = data_of(runtime.grouped_gather(inputs(), root_of<GatherOptions>(mine_, set)));
      return;
    default:
      runtime.grouped_broadcast(outputs(), root_of<BroadcastOptions>(mine_, set));
  }
}

}  // namespace hvd::test
