#pragma once

namespace hvd::bench {

struct LatencyOptions {
  int elements = 1;
  int repeats = 2000;
  int rounds = 10;
};

// One float32 allreduce after the other, each awaited before the next: blocking, submitted with allreduce_async and
// waited for at once, submitted and left to the coordinator thread while the caller computes, and MPI_Allreduce itself.
// The kinds take turns, so that all see the same machine. Results are checked; rank 0 prints a table.
void run_latency(const LatencyOptions& options);

}  // namespace hvd::bench
