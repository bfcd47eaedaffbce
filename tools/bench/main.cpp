#include <CLI/CLI.hpp>

#include <hvd/hvd.h>
#include <cstdio>
#include <exception>

#include "latency.h"

// Benchmarks of hvd beside its peers, in one run: mpirun -np 2 hvd-bench latency
int main(int argc, char** argv) {
  CLI::App app("Measures hvd and its peers in one run; start it with mpirun.", "hvd-bench");
  app.require_subcommand(1);
  hvd::bench::LatencyOptions latency;
  CLI::App* command = app.add_subcommand("latency", "time from submission to result of one small allreduce");
  command->add_option("--elements", latency.elements, "float32 elements")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--repeats", latency.repeats, "operations per round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--rounds", latency.rounds, "interleaved rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    hvd::init();
    run_latency(latency);
    hvd::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvd-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
