#include "step.h"

#include <fmt/format.h>

#include <hvd/hvd.h>
#include <memory>

#include "allocations.h"
#include "gradients.h"
#include "sizes.h"

namespace hvd::bench {

namespace {

// What hvd has counted since it was warm.
struct Counters {
  Stats stats;
  std::uint64_t allocations = 0;
};

class HvdStep {
 public:
  HvdStep(const Gradients& gradients, const std::string& prefix) : gradients_(gradients) {
    for (const auto& gradient : gradients.ready_order()) names_.push_back(prefix + gradient.name);
    handles_.reserve(names_.size());
  }

  void run() {
    const std::uint64_t before = allocations_everywhere();
    handles_.clear();
    gradients_.backward([this](const Gradients::Gradient& gradient) {
      handles_.push_back(allreduce_async(TensorView(gradient.data, gradient.shape, gradients_.dtype()),
                                         {.name = names_[handles_.size()], .op = ReduceOp::sum}));
    });
    for (const Handle& handle : handles_) handle.wait();
    counted_.allocations += allocations_everywhere() - before;
    ++steps_;
  }

  void start_counting() {
    counted_ = {stats(), 0};
    steps_ = 0;
  }

  // Collective.
  std::map<std::string, double> counts(const World& world) const {
    const Stats now = stats();
    const Stats& then = counted_.stats;
    const auto per_step = [&](double count) { return world.greatest(count / steps_); };
    const auto difference = [&](std::uint64_t Stats::*field) { return static_cast<double>(now.*field - then.*field); };
    const auto bytes = static_cast<double>(gradients_.bytes());
    return {
        {"messages", per_step(difference(&Stats::reports_sent) + difference(&Stats::plans_received))},
        {"full_requests", per_step(difference(&Stats::requests_sent))},
        {"batches", per_step(difference(&Stats::batches))},
        {"allocations", per_step(static_cast<double>(counted_.allocations))},
        {"packed_per_byte", per_step(difference(&Stats::bytes_packed) / bytes)},
        {"unpacked_per_byte", per_step(difference(&Stats::bytes_unpacked) / bytes)},
    };
  }

 private:
  const Gradients& gradients_;
  std::vector<std::string> names_;
  std::vector<Handle> handles_;
  Counters counted_;
  int steps_ = 0;
};

Contender in_place(const Gradients& gradients, std::string peer, std::string variant, std::function<void()> run) {
  return {std::move(peer), variant, [&](unsigned repeat) { gradients.fill(gradients.data(), repeat); }, std::move(run),
          [&, variant](unsigned repeat, bool all) { gradients.check(variant, gradients.data(), repeat, all); }};
}

void mpi_sum_in_place(std::byte* data, std::size_t count, DataType dtype) {
  const MpiSum sum = mpi_sum(dtype);
  MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), sum.type, sum.op, MPI_COMM_WORLD);
}

Contender mpi_per_tensor(const Gradients& gradients) {
  return in_place(gradients, "mpi", "per-tensor", [&] {
    gradients.backward([&](const Gradients::Gradient& gradient) {
      mpi_sum_in_place(gradient.data, gradient.count, gradients.dtype());
    });
  });
}

Contender mpi_flat(const Gradients& gradients) {
  return in_place(gradients, "mpi", "flat", [&] {
    gradients.backward([](const Gradients::Gradient&) {});
    mpi_sum_in_place(gradients.data(), gradients.padded_elements(), gradients.dtype());
  });
}

Contender limit_packed(const Gradients& gradients, limit::PackedLimit& limit) {
  std::vector<limit::Segment> segments;
  for (const auto& gradient : gradients.ready_order()) {
    auto* values = reinterpret_cast<float*>(gradient.data);
    segments.push_back({values, values, gradient.count});
  }
  return in_place(gradients, "limit", "packed",
                  [&limit, segments = std::move(segments)] { limit.allreduce(segments); });
}

Contender limit_arena(const Gradients& gradients, limit::ArenaLimit& limit) {
  return {"limit", "arena", [&](unsigned repeat) { gradients.fill(limit.values(), repeat); },
          [&] { limit.allreduce(gradients.padded_elements()); },
          [&](unsigned repeat, bool all) { gradients.check("arena", limit.values(), repeat, all); }};
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
  HvdStep hvd_step(gradients, fmt::format("{}.{}.", title, short_name(options.dtype)));

  std::vector<Contender> contenders;
  if (session.peers().hvd) contenders.push_back(in_place(gradients, "hvd", "packed", [&] { hvd_step.run(); }));
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
    if (session.peers().hvd) hvd_step.start_counting();
  });
  std::vector<Record> group;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Record& record = group.emplace_back(session.record("step", gradients.bytes(), options.dtype));
    record.profile = title;
    record.peer = contenders[i].peer;
    record.variant = contenders[i].variant;
    set_times(record, samples[i], allreduce_factor(world.size()));
    if (record.peer == "hvd") record.counts = hvd_step.counts(world);
  }
  session.add(std::move(group));
}

}  // namespace hvd::bench
