#include "engine/launch.h"

#include <fmt/format.h>
#include <hvd/error.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "collectives/adasum.h"
#include "collectives/allgather.h"
#include "collectives/allreduce.h"
#include "collectives/alltoall.h"
#include "collectives/broadcast.h"
#include "collectives/point_to_point.h"
#include "collectives/reduce_scatter.h"
#include "collectives/scatter.h"
#include "engine/checked.h"
#include "engine/fused_batch.h"
#include "engine/simple_collectives.h"

namespace hvd::detail {

namespace {

std::byte* bytes_of(Tensor& tensor) { return static_cast<std::byte*>(tensor.data()); }

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

cpu::Reduction reduction_of(const FusedBatch& batch, const LaunchOptions& options) {
  const Request& request = batch.request();
  std::int64_t divisor = 1;
  if (request.reduce_op == ReduceOp::average) {
    const bool all = options.join_average == JoinAverage::all;
    divisor = static_cast<std::int64_t>(all ? batch.ranks() : batch.participants().contributors().size());
  }
  return {.dtype = batch.dtype(),
          .op = request.reduce_op,
          .prescale = request.prescale,
          .postscale = request.postscale,
          .divisor = divisor};
}

std::unique_ptr<Collective> allreduce(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  return std::make_unique<Allreduce>(stream, batch.participants(), reduction_of(batch, options), batch.bytes(),
                                     batch.inputs(), batch.outputs());
}

std::unique_ptr<Collective> adasum(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  std::vector<std::size_t> elements;
  batch.for_each([&](std::size_t, const PendingOperation& operation, std::size_t k) {
    elements.push_back(size(operation.request.tensors[k].shape.elements()));
  });
  return std::make_unique<Adasum>(stream, batch.participants(), reduction_of(batch, options), std::move(elements),
                                  batch.inputs(), batch.outputs());
}

std::unique_ptr<Collective> reduce(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  return std::make_unique<Allreduce>(stream, batch.participants_with_taker(), reduction_of(batch, options),
                                     batch.bytes(), batch.inputs(),
                                     batch.rank() == batch.root() ? batch.outputs() : FusedOutput());
}

std::unique_ptr<Collective> reduce_scatter(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  const Participants participants = batch.participants();
  std::vector<std::size_t> parts(batch.ranks());
  std::vector<FusedInput> inputs(batch.ranks());
  FusedOutput output;
  batch.for_each([&](std::size_t, PendingOperation& operation, std::size_t k) {
    const TensorSpec& tensor = operation.request.tensors[k];
    const auto shares = equal_shares(tensor.rows(), batch.ranks());
    std::size_t at = 0;
    for (std::size_t to = 0; to < shares.size(); ++to) {
      const std::size_t bytes = size(shares[to] * tensor.row_bytes());
      if (participants.contributes(static_cast<int>(to))) {
        parts[to] += bytes;
        if (!batch.absent()) inputs[to].append(static_cast<const std::byte*>(operation.memory[k].input) + at, bytes);
      }
      at += bytes;
    }
    if (batch.absent()) return;
    const std::int64_t mine = shares[size(batch.rank())];
    Tensor& result = batch.allocate(operation, k, {.dtype = tensor.dtype, .shape = tensor.shape.with_rows(mine)});
    output.append(bytes_of(result), size(mine * tensor.row_bytes()));
  });
  return std::make_unique<ReduceScatter>(stream, participants, reduction_of(batch, options), std::move(parts),
                                         std::move(inputs), std::move(output));
}

std::unique_ptr<Collective> broadcast(const FusedBatch& batch, ChunkStream& stream) {
  const bool is_root = batch.rank() == batch.root();
  return std::make_unique<Broadcast>(stream, batch.participants(), batch.root(), batch.bytes(), batch.in_place(),
                                     is_root ? batch.inputs() : FusedInput(), batch.outputs());
}

// Of allgather, and of gather, where the root alone takes the result.
std::unique_ptr<Collective> gather(const FusedBatch& batch, ChunkStream& stream, const Participants& participants) {
  const bool takes = participants.takes(batch.rank());
  std::vector<std::size_t> blocks(batch.ranks());
  std::vector<FusedOutput> outputs(batch.ranks());
  batch.for_each([&](std::size_t i, PendingOperation& operation, std::size_t k) {
    const TensorSpec& tensor = operation.request.tensors[k];
    std::int64_t total = 0;
    for (std::size_t from = 0; from < batch.ranks(); ++from) {
      const std::int64_t rows = batch.extents(i).at(from).at(k);
      blocks[from] += size(rows * tensor.row_bytes());
      total += rows;
    }
    if (batch.absent()) return;
    Tensor& result =
        batch.allocate(operation, k, {.dtype = tensor.dtype, .shape = tensor.shape.with_rows(takes ? total : 0)});
    std::byte* at = bytes_of(result);
    for (std::size_t from = 0; takes && from < batch.ranks(); ++from) {
      const std::size_t bytes = size(batch.extents(i).at(from).at(k) * tensor.row_bytes());
      outputs[from].append(at, bytes);
      at += bytes;
    }
  });
  return std::make_unique<Allgather>(stream, participants, std::move(blocks), batch.inputs(), std::move(outputs));
}

std::unique_ptr<Collective> alltoall(const FusedBatch& batch, ChunkStream& stream) {
  const std::size_t ranks = batch.ranks();
  const auto me = size(batch.rank());
  std::vector<std::vector<std::size_t>> blocks(ranks, std::vector<std::size_t>(ranks));
  std::vector<FusedInput> inputs(ranks);
  std::vector<FusedOutput> outputs(ranks);
  batch.for_each([&](std::size_t i, PendingOperation& operation, std::size_t k) {
    const TensorSpec& tensor = operation.request.tensors[k];
    const auto rows = [&](std::size_t from, std::size_t to) { return batch.extents(i).at(from).at(k * ranks + to); };
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t to = 0; to < ranks; ++to) blocks[from][to] += size(rows(from, to) * tensor.row_bytes());
    }
    if (batch.absent()) return;
    operation.received_splits.resize(operation.request.tensors.size() * ranks);
    std::int64_t total = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      operation.received_splits[k * ranks + from] = rows(from, me);
      total += rows(from, me);
    }
    Tensor& result = batch.allocate(operation, k, {.dtype = tensor.dtype, .shape = tensor.shape.with_rows(total)});
    const auto* out = static_cast<const std::byte*>(operation.memory[k].input);
    std::byte* in = bytes_of(result);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      const std::size_t sent = size(rows(me, peer) * tensor.row_bytes());
      const std::size_t received = size(rows(peer, me) * tensor.row_bytes());
      inputs[peer].append(out, sent);
      outputs[peer].append(in, received);
      out += sent;
      in += received;
    }
  });
  return std::make_unique<Alltoall>(stream, std::move(blocks), std::move(inputs), std::move(outputs));
}

std::unique_ptr<Collective> scatter(ExecutableBatch& batch, ChunkStream& stream) {
  const FusedBatch fused(batch, stream, DataType::u8);
  PendingOperation& operation = *batch.operations.front();
  const auto me = size(fused.rank());
  const bool is_root = fused.rank() == fused.root();
  std::vector<Scatter::Window> windows;
  FusedInput input;
  FusedOutput output;
  std::size_t total = 0;
  const auto layouts = decode_scatter(batch.extents.front().front(), fused.ranks());
  for (std::size_t k = 0; k < layouts.size(); ++k) {
    const auto& [tensor, splits] = layouts[k];
    const std::int64_t row_bytes = tensor.row_bytes();
    if (!operation.absent) {
      const std::int64_t before = std::accumulate(splits.begin(), splits.begin() + fused.rank(), std::int64_t{0});
      const std::size_t bytes = size(splits[me] * row_bytes);
      Tensor& result =
          fused.allocate(operation, k, {.dtype = tensor.dtype, .shape = tensor.shape.with_rows(splits[me])});
      windows.push_back({.begin = total + size(before * row_bytes), .size = bytes});
      output.append(bytes_of(result), bytes);
    }
    const std::size_t bytes = size(tensor.bytes());
    if (is_root) input.append(static_cast<const std::byte*>(operation.memory[k].input), bytes);
    total += bytes;
  }
  return std::make_unique<Scatter>(stream, fused.participants(), fused.root(), total, std::move(input), windows,
                                   std::move(output));
}

std::unique_ptr<Collective> point_to_point(ExecutableBatch& batch, ChunkStream& stream) {
  const PendingOperation& operation = *batch.operations.front();
  const std::size_t bytes = size(operation.request.bytes());
  if (stream.topology().rank() == operation.request.root) {  // in the world ranks are positions
    return PointToPoint::send(stream, operation.request.peer,
                              {static_cast<const std::byte*>(operation.memory.front().input), bytes});
  }
  return PointToPoint::receive(stream, operation.request.root,
                               {static_cast<std::byte*>(operation.memory.front().output), bytes});
}

std::unique_ptr<Collective> start(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  switch (batch.request().operation) {
    case Operation::allreduce:
      return batch.request().reduce_op == ReduceOp::adasum ? adasum(batch, stream, options)
                                                           : allreduce(batch, stream, options);
    case Operation::reduce:
      return reduce(batch, stream, options);
    case Operation::reduce_scatter:
      return reduce_scatter(batch, stream, options);
    case Operation::broadcast:
      return broadcast(batch, stream);
    case Operation::allgather:
      return gather(batch, stream, batch.participants());
    case Operation::gather:
      return gather(batch, stream, batch.participants_with_taker());
    case Operation::alltoall:
      return alltoall(batch, stream);
    default:
      throw InternalError("batch of an unknown operation");
  }
}

std::unique_ptr<Collective> launch_fused(const FusedBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  auto collective = start(batch, stream, options);
  const Operation operation = batch.request().operation;
  const bool same_everywhere =
      operation == Operation::allreduce || operation == Operation::broadcast || operation == Operation::allgather;
  if (options.check != CheckLevel::comm || !same_everywhere) return collective;
  return std::make_unique<Checked>(stream, batch.participants(), std::move(collective), [batch, operation] {
    return operation == Operation::allgather ? batch.results() : batch.outputs();
  });
}

// The dtypes of a batch's tensors, in order of appearance: one, but for a group of several.
List<DataType> dtypes_of(const ExecutableBatch& batch) {
  List<DataType> dtypes;
  for (const auto& operation : batch.operations) {
    for (const TensorSpec& tensor : operation->request.tensors) {
      if (std::ranges::count(dtypes, tensor.dtype) == 0) dtypes.push_back(tensor.dtype);
    }
  }
  return dtypes;
}

bool hangs(const ExecutableBatch& batch, const ChunkStream& stream, const LaunchOptions& options) {
  return !options.test_hang_op.empty() && std::ranges::any_of(batch.operations, [&](const OperationPtr& operation) {
    return options.test_hang_op ==
           fmt::format("{}:{}", operation->request.name, stream.members().ranks[size(stream.topology().rank())]);
  });
}

}  // namespace

std::unique_ptr<Collective> launch(ExecutableBatch& batch, ChunkStream& stream, const LaunchOptions& options) {
  if (hangs(batch, stream, options)) return std::make_unique<Hanging>();
  switch (batch.request().operation) {
    case Operation::barrier:
      return std::make_unique<Nothing>();
    case Operation::join:
      batch.operations.front()->answer = batch.extents.front().front().front();
      return std::make_unique<Nothing>();
    case Operation::scatter:
      return scatter(batch, stream);
    case Operation::send_recv:
      return point_to_point(batch, stream);
    default:
      break;
  }
  const List<DataType> dtypes = dtypes_of(batch);
  if (dtypes.size() == 1) return launch_fused(FusedBatch(batch, stream, dtypes.front()), stream, options);
  std::vector<Sequence::Start> parts;
  for (const DataType dtype : dtypes) {
    parts.push_back(
        [&batch, &stream, dtype, options] { return launch_fused(FusedBatch(batch, stream, dtype), stream, options); });
  }
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace hvd::detail
