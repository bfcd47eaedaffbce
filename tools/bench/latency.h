#pragma once

#include "session.h"

namespace hvd::bench {

struct LatencyOptions {
  int elements = 1;
  int repeats = 2000;
  int rounds = 10;
};

// One float32 allreduce after the other, each awaited before the next: blocking, submitted with allreduce_async and
// waited for at once, submitted and left to the coordinator thread while the caller computes, MPI_Allreduce itself, and
// the limit. Collective.
void run_latency(Session& session, const LatencyOptions& options);

}  // namespace hvd::bench
