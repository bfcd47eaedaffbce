#include "random_program.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hvd::test {

namespace {

constexpr std::uint64_t most_steps = 4096;  // of a program; the seeds of the steps' data keep apart by it

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : dice_(seed) { program_.seed = seed; }

  RandomProgram make() {
    program_.ranks = dice_.chance(10) ? dice_.pick(6, 8) : dice_.pick(2, 5);
    program_.hosts = hosts();
    program_.chunk_bytes = std::int64_t{1024} << dice_.pick(0, 4);
    program_.fusion_threshold = dice_.of<std::int64_t>({0, 100, 3000, 100'000, 128 << 20});
    program_.cache_capacity = dice_.of<std::int64_t>({2, 7, 16384, 16384});
    program_.join_average = dice_.chance(3) ? JoinAverage::present : JoinAverage::all;
    program_.pauses = dice_.chance(4);
    program_.shuffled = !dice_.chance(5);
    program_.cancels = dice_.chance(4);
    program_.sets.emplace_back(static_cast<std::size_t>(program_.ranks));
    std::iota(program_.sets[0].begin(), program_.sets[0].end(), 0);
    alive_ = {0};
    for (int count = dice_.pick(0, 2); count > 0; --count) add_set(program_.static_sets);
    for (int count = dice_.pick(1, 3); count > 0; --count) add_phase();
    return std::move(program_);
  }

 private:
  std::vector<int> hosts() {
    std::vector<int> counts;
    if (dice_.chance(2)) return counts;
    for (int left = program_.ranks; left > 0; left -= counts.back()) counts.push_back(dice_.pick(1, left));
    return counts;
  }

  // One that is not there yet; a set that was removed may come again.
  void add_set(std::vector<std::size_t>& to) {
    std::vector<int> ranks;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      if (dice_.chance(2)) ranks.push_back(rank);
    }
    if (ranks.empty() || std::ranges::any_of(alive_, [&](std::size_t set) { return program_.sets[set] == ranks; }))
      return;
    program_.sets.push_back(std::move(ranks));
    to.push_back(program_.sets.size() - 1);
    alive_.push_back(to.back());
  }

  void add_phase() {
    Phase phase;
    for (int count = dice_.pick(0, 2); count > 0; --count) add_set(phase.added);
    const int streams = dice_.of<int>({1, 1, 2, 3});
    for (int stream = 0; stream < streams; ++stream) phase.streams.push_back(make_stream(stream));
    if (!program_.shuffled && streams == 1) drop_names(phase.streams[0]);
    for (int count = dice_.pick(0, 2); count > 0; --count) phase.tails.push_back(make_tail());
    for (std::size_t i = 1; i < alive_.size(); ++i) {
      if (!dice_.chance(4)) continue;
      phase.removed.push_back(alive_[i]);
      alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    program_.phases.push_back(std::move(phase));
  }

  Stream make_stream(int number) {
    Stream stream;
    int step = 0;
    for (int parts = dice_.pick(1, 4); parts > 0; --parts) {
      Part& part = stream.emplace_back();
      for (int count = dice_.of<int>({1, 3, 8, 20}); count > 0; --count) {
        part.push_back(make_step(dice_.of(alive_)));
        Step& made = part.back();
        std::string name = "s" + std::to_string(number) + "n" + std::to_string(step++);
        // Between two ranks only, so that others may use the name meanwhile.
        if (made.operation == Operation::send_recv)
          name += ":" + std::to_string(made.ranks[0]) + "-" + std::to_string(made.ranks[1]);
        made.name = std::move(name);
        if (made.size() > 1 && dice_.chance(15)) add_mismatch(made);
      }
      part.back().blocking = part.size() == 1 && dice_.chance(2);
    }
    return stream;
  }

  // Paired by their order, which is the same on all ranks then.
  void drop_names(Stream& stream) {
    for (Part& part : stream) {
      for (Step& step : part) {
        if (step.mismatch == Mismatch::none && dice_.chance(3)) step.name.clear();
      }
    }
  }

  Tail make_tail() {
    Tail tail;
    tail.set = dice_.of(alive_);
    const std::vector<int>& ranks = program_.sets[tail.set];
    std::vector<std::size_t> within;
    std::ranges::copy_if(alive_, std::back_inserter(within),
                         [&](std::size_t set) { return std::ranges::includes(ranks, program_.sets[set]); });
    const std::size_t steps = static_cast<std::size_t>(dice_.pick(0, 12));
    for (std::size_t i = 0; i < ranks.size(); ++i)
      tail.join_at.push_back(static_cast<std::size_t>(dice_.pick(0, static_cast<int>(steps))));
    for (std::size_t k = 0; k < steps; ++k) {
      Step step = make_step(dice_.of(within));
      step.name = "s0n" + std::to_string(k);
      tail.steps.push_back(std::move(step));
    }
    return tail;
  }

  Step make_step(std::size_t set) {
    static const std::vector<Operation> operations{
        Operation::allreduce,      Operation::allreduce, Operation::allreduce, Operation::reduce,
        Operation::reduce_scatter, Operation::broadcast, Operation::allgather, Operation::gather,
        Operation::scatter,        Operation::alltoall,  Operation::send_recv, Operation::barrier};
    Step step;
    step.operation = dice_.of(operations);
    step.set = set;
    step.ranks = program_.sets[set];
    step.seed = program_.seed * most_steps + steps_++;
    if (step.operation == Operation::send_recv && !as_send(step)) step.operation = Operation::broadcast;
    step.root = dice_.pick(0, static_cast<int>(step.size()) - 1);
    if (step.operation == Operation::barrier) return step;
    step.grouped = has_group_form(step.operation) && dice_.chance(4);
    step.in_place = has_in_place_form(step.operation) && (dice_.chance(2) || step.grouped);
    if (step.operation == Operation::allreduce && dice_.chance(12)) step.rule.op = ReduceOp::adasum;
    const std::vector<DataType> dtypes = dtypes_for(step);
    for (int count = step.grouped ? dice_.pick(1, 6) : 1; count > 0; --count)
      step.tensors.push_back({.dtype = dice_.of(dtypes), .shape = shape(needs_rows(step.operation))});
    // Few numbers may cancel in part, and what is left of them has no direction that rounding would not change.
    if (step.rule.op == ReduceOp::adasum) {
      for (TensorSpec& tensor : step.tensors) tensor.shape = {dice_.pick(10, 100)};
    }
    if (reduces(step.operation) && std::ranges::all_of(step.tensors, [](auto& t) { return may_be_scaled(t.dtype); })) {
      if (dice_.chance(6)) step.rule.prescale = dice_.of<double>({0.5, 2.0, -1.0});
      if (dice_.chance(6)) step.rule.postscale = dice_.of<double>({0.25, 4.0});
    }
    if (!step.grouped && needs_rows(step.operation) && step.operation != Operation::reduce_scatter) add_rows(step);
    return step;
  }

  // With an op for reductions, the dtypes that have it.
  std::vector<DataType> dtypes_for(Step& step) {
    std::vector<DataType> all(std::begin(all_dtypes), std::end(all_dtypes));
    if (!reduces(step.operation)) return all;
    if (step.rule.op != ReduceOp::adasum)
      step.rule.op = dice_.of<ReduceOp>(
          {ReduceOp::average, ReduceOp::sum, ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product});
    std::erase_if(all, [&](DataType dtype) {
      const auto ops = allowed_ops(dtype, step.operation);
      return std::ranges::find(ops, step.rule.op) == ops.end();
    });
    return all;
  }

  bool as_send(Step& step) {
    if (step.size() < 2) return false;
    const std::size_t skip = static_cast<std::size_t>(dice_.pick(0, static_cast<int>(step.size()) - 2));
    step.ranks = {step.ranks[skip], step.ranks[skip + 1]};
    if (dice_.chance(2)) step.set = 0;
    return true;
  }

  Shape shape(bool rows) {
    const int most = dice_.chance(10) ? 3000 : 20;
    switch (dice_.pick(rows ? 1 : 0, 4)) {
      case 0:
        return {};
      case 1:
        return {dice_.pick(0, 9), dice_.pick(0, 5), 2};
      case 2:
        return {dice_.pick(0, 5), dice_.pick(1, 7)};
      default:
        return {dice_.pick(0, most)};
    }
  }

  void add_rows(Step& step) {
    if (step.operation == Operation::scatter) {
      if (dice_.chance(2)) step.splits.assign(step.size(), random_splits(step.tensors[0].shape[0], step.size()));
      return;
    }
    for (std::size_t position = 0; position < step.size(); ++position) step.rows.push_back(dice_.pick(0, 6));
    if (step.operation != Operation::alltoall) return;
    for (const std::int64_t rows : step.rows) step.splits.push_back(random_splits(rows, step.size()));
  }

  std::vector<std::int64_t> random_splits(std::int64_t rows, std::size_t ranks) {
    std::vector<std::int64_t> splits(ranks, 0);
    for (; rows > 0; --rows) ++splits[static_cast<std::size_t>(dice_.pick(0, static_cast<int>(ranks) - 1))];
    return splits;
  }

  void add_mismatch(Step& step) {
    using enum Mismatch;
    std::vector<Mismatch> kinds;
    if (step.operation == Operation::allreduce) kinds = {shape, dtype, reduce_op, operation};
    if (step.operation == Operation::reduce) kinds = {shape, dtype, reduce_op, root};
    if (step.operation == Operation::broadcast || step.operation == Operation::gather) kinds = {shape, dtype, root};
    if (step.operation == Operation::allgather || step.operation == Operation::reduce_scatter) kinds = {shape, dtype};
    if (step.operation == Operation::scatter) kinds = {root};
    if (step.operation == Operation::send_recv) kinds = {shape, dtype};
    if (step.grouped && step.operation != Operation::scatter) kinds.push_back(group);
    if (step.rule.op == ReduceOp::adasum) std::erase(kinds, dtype);
    if (kinds.empty()) return;
    step.mismatch = dice_.of(kinds);
    step.odd = dice_.pick(0, static_cast<int>(step.size()) - 1);
    step.rows.clear();
    if (step.mismatch == operation) step.grouped = false, step.in_place = true, step.tensors.resize(1);
  }

  Dice dice_;
  RandomProgram program_;
  std::vector<std::size_t> alive_;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::uint64_t number_of(const Step& step) { return step.seed % most_steps; }

RandomProgram random_program(std::uint64_t seed) { return edited(Generator(seed).make(), {}); }

Config RandomProgram::config() const {
  Config config;
  config.chunk_bytes = chunk_bytes;
  config.fusion_threshold = fusion_threshold;
  config.cache_capacity = cache_capacity;
  config.join_average = join_average;
  config.test_topology = hosts;
  for (const std::size_t set : static_sets) config.process_sets.push_back(sets[set]);
  config.stall_shutdown = std::chrono::seconds(15);
  return config;
}

}  // namespace hvd::test
