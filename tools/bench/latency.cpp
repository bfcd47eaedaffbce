#include "latency.h"

#include <fmt/format.h>
#include <mpi.h>

#include <hvd/hvd.h>
#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples.h"

namespace hvd::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct Kind {
  std::string name;
  std::function<double(std::vector<float>&)> time_one;  // microseconds
  Samples samples;
};

double blocking(std::vector<float>& values) {
  const auto start = Clock::now();
  allreduce(values, {.name = "latency", .op = ReduceOp::sum});
  return microseconds_since(start);
}

double async_then_wait(std::vector<float>& values) {
  const auto start = Clock::now();
  const Handle handle = allreduce_async(values, {.name = "latency", .op = ReduceOp::sum});
  handle.wait();
  return microseconds_since(start);
}

// The caller never enters hvd again: it watches the handle, as a program would that computes meanwhile.
double async_busy_caller(std::vector<float>& values) {
  const auto start = Clock::now();
  const Handle handle = allreduce_async(values, {.name = "latency", .op = ReduceOp::sum});
  while (!handle.ready()) {
  }
  return microseconds_since(start);
}

double raw_mpi(std::vector<float>& values) {
  const auto start = Clock::now();
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return microseconds_since(start);
}

bool has_mpi() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0;
}

void measure(Kind& kind, const LatencyOptions& options, bool keep) {
  barrier({.name = "latency.start"});
  for (int i = 0; i < options.repeats; ++i) {
    std::vector<float> values(static_cast<std::size_t>(options.elements), static_cast<float>(rank() + 1));
    const double time = kind.time_one(values);
    const auto expected = static_cast<float>(size() * (size() + 1) / 2);
    if (values.front() != expected || values.back() != expected) throw std::runtime_error(kind.name + ": wrong result");
    if (keep) kind.samples.add(time);
  }
}

}  // namespace

void run_latency(const LatencyOptions& options) {
  std::vector<Kind> kinds;
  kinds.push_back({"hvd, blocking", blocking, {}});
  kinds.push_back({"hvd, async then wait", async_then_wait, {}});
  kinds.push_back({"hvd, async, caller busy", async_busy_caller, {}});
  if (has_mpi()) kinds.push_back({"MPI_Allreduce", raw_mpi, {}});
  for (int round = 0; round <= options.rounds; ++round) {
    for (Kind& kind : kinds) measure(kind, options, /*keep=*/round > 0);
  }
  if (rank() != 0) return;
  fmt::print("allreduce of {} float32, {} ranks, {} x {} operations, microseconds from submission to result\n",
             options.elements, size(), options.rounds, options.repeats);
  fmt::print("{:<26}{:>10}{:>10}{:>10}{:>10}\n", "", "p10", "p50", "p90", "p99");
  for (Kind& kind : kinds) {
    fmt::print("{:<26}", kind.name);
    for (const double q : {0.1, 0.5, 0.9, 0.99}) fmt::print("{:>10.2f}", kind.samples.quantile(q));
    fmt::print("\n");
  }
}

}  // namespace hvd::bench
