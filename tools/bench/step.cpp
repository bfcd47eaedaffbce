#include "step.h"

#include <fmt/format.h>

#include <hvd/hvd.h>
#include <memory>

#include "allocations.h"
#include "gradients.h"
#include "samples.h"
#include "sizes.h"

namespace hvd::bench {

namespace {

// Sums where the gradients lie.
Contender in_place(const Gradients& gradients, void* memory, std::string peer, std::string variant,
                   std::function<void()> run) {
  return {std::move(peer), variant, [&gradients, memory](unsigned repeat) { gradients.fill(memory, repeat); },
          std::move(run),
          [&gradients, memory, variant](unsigned repeat, bool all) { gradients.check(variant, memory, repeat, all); }};
}

// Steps by hvd, and what it counts in them. The variant is named for where the gradients lie.
class HvdStep {
 public:
  HvdStep(const Gradients& gradients, void* memory, std::string variant, const std::string& title)
      : gradients_(gradients), memory_(memory), variant_(std::move(variant)) {
    for (const auto& gradient : gradients.ready_order()) {
      names_.push_back(fmt::format("{}.{}.{}.{}", title, short_name(gradients.dtype()), variant_, gradient.name));
    }
    handles_.reserve(names_.size());
  }

  Contender contender() {
    Contender contender = in_place(gradients_, memory_, "hvd", variant_, [this] { run(); });
    contender.prepare = [this, fill = std::move(contender.prepare)](unsigned repeat) {
      fill(repeat);
      before_ = stats();
    };
    contender.check = [this, check = std::move(contender.check)](unsigned repeat, bool all) {
      count();
      check(repeat, all);
    };
    return contender;
  }
  void start_counting() {
    sums_.clear();
    allocations_ = {};
    steps_ = 0;
  }

  // Per step, the greatest of the ranks: means, of allocations the median, for pools grow in some. Collective.
  std::map<std::string, double> counts(const World& world) {
    std::map<std::string, double> counts{{"allocations", world.greatest(allocations_.quantile(0.5))}};
    for (const auto& [name, sum] : sums_) counts[name] = world.greatest(sum / steps_);
    return counts;
  }

 private:
  void run() {
    const std::uint64_t before = allocations_everywhere();
    handles_.clear();
    gradients_.backward([this](const Gradients::Gradient& gradient) {
      handles_.push_back(
          allreduce_async(TensorView(gradients_.at(memory_, gradient), gradient.shape, gradients_.dtype()),
                          {.name = names_[handles_.size()], .op = ReduceOp::sum}));
    });
    for (const Handle& handle : handles_) handle.wait();
    allocations_.add(static_cast<double>(allocations_everywhere() - before));
  }

  void count() {
    const Stats now = stats();
    const auto since = [&](std::uint64_t Stats::*field) { return static_cast<double>(now.*field - before_.*field); };
    const auto bytes = static_cast<double>(gradients_.bytes());
    sums_["messages"] += since(&Stats::reports_sent) + since(&Stats::plans_received);
    sums_["full_requests"] += since(&Stats::requests_sent);
    sums_["batches"] += since(&Stats::batches);
    sums_["packed_per_byte"] += since(&Stats::bytes_packed) / bytes;
    sums_["unpacked_per_byte"] += since(&Stats::bytes_unpacked) / bytes;
    ++steps_;
  }

  const Gradients& gradients_;
  void* memory_;
  std::string variant_;
  std::vector<std::string> names_;
  std::vector<Handle> handles_;
  Stats before_;
  std::map<std::string, double> sums_;
  Samples allocations_;
  int steps_ = 0;
};

void mpi_sum_in_place(void* data, std::size_t count, DataType dtype) {
  const MpiSum sum = mpi_sum(dtype);
  MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), sum.type, sum.op, MPI_COMM_WORLD);
}

Contender mpi_per_tensor(const Gradients& gradients) {
  return in_place(gradients, gradients.private_memory(), "mpi", "per-tensor", [&gradients] {
    gradients.backward([&](const Gradients::Gradient& gradient) {
      mpi_sum_in_place(gradients.at(gradients.private_memory(), gradient), gradient.count, gradients.dtype());
    });
  });
}

Contender mpi_flat(const Gradients& gradients) {
  return in_place(gradients, gradients.private_memory(), "mpi", "flat", [&gradients] {
    gradients.backward([](const Gradients::Gradient&) {});
    mpi_sum_in_place(gradients.private_memory(), gradients.padded_elements(), gradients.dtype());
  });
}

Contender limit_packed(const Gradients& gradients, limit::PackedLimit& limit) {
  std::vector<limit::Segment> segments;
  for (const auto& gradient : gradients.ready_order()) {
    auto* values = reinterpret_cast<float*>(gradients.at(gradients.private_memory(), gradient));
    segments.push_back({values, values, gradient.count});
  }
  return in_place(gradients, gradients.private_memory(), "limit", "packed",
                  [&limit, segments = std::move(segments)] { limit.allreduce(segments); });
}

Contender limit_arena(const Gradients& gradients, limit::ArenaLimit& limit) {
  return in_place(gradients, limit.values(), "limit", "arena", [&] { limit.allreduce(gradients.padded_elements()); });
}

Rounds rounds_of(const Session& session, const StepOptions& options) {
  constexpr int enough = 9;
  const bool quick = session.quick();
  const int rounds = options.rounds > 0 ? options.rounds : (quick ? 3 : enough);
  return {rounds, 1, /*in_step=*/true, quick ? 3 * quick_seconds : 60.0};
}

}  // namespace

void run_step(Session& session, const Profile& profile, const StepOptions& options) {
  const World& world = session.world();
  const Gradients gradients(world, profile, options.dtype, options.compute_ms);
  const std::string title =
      options.compute_ms > 0.0 ? fmt::format("{}+{}ms", profile.name, options.compute_ms) : profile.name;
  const Arena arena = session.peers().hvd ? make_arena(gradients.padded_elements() * size_of(options.dtype)) : Arena();
  std::vector<std::unique_ptr<HvdStep>> hvd_steps;
  if (session.peers().hvd) {
    hvd_steps.push_back(std::make_unique<HvdStep>(gradients, gradients.private_memory(), "packed", title));
    hvd_steps.push_back(std::make_unique<HvdStep>(gradients, arena.memory().data(), "arena", title));
  }

  std::vector<Contender> contenders;
  for (const auto& hvd_step : hvd_steps) contenders.push_back(hvd_step->contender());
  if (session.peers().mpi) {
    contenders.push_back(mpi_per_tensor(gradients));
    contenders.push_back(mpi_flat(gradients));
  }
  if (options.dtype == DataType::f32 && options.compute_ms == 0.0) {
    if (auto* packed = session.packed_limit()) contenders.push_back(limit_packed(gradients, *packed));
    if (auto* arena = session.arena_limit(gradients.padded_elements())) {
      contenders.push_back(limit_arena(gradients, *arena));
    }
  }

  std::vector<Samples> samples = run_rounds(world, contenders, rounds_of(session, options), [&] {
    for (const auto& hvd_step : hvd_steps) hvd_step->start_counting();
  });
  std::vector<Record> group;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Record& record = group.emplace_back(session.record("step", gradients.bytes(), options.dtype));
    record.profile = title;
    record.peer = contenders[i].peer;
    record.variant = contenders[i].variant;
    set_times(record, samples[i], allreduce_factor(world.size()));
    if (i < hvd_steps.size()) record.counts = hvd_steps[i]->counts(world);
  }
  session.add(std::move(group));
}

}  // namespace hvd::bench
