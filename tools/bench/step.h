#pragma once

#include "profile.h"
#include "session.h"

namespace hvd::bench {

struct StepOptions {
  DataType dtype = DataType::f32;
  double compute_ms = 0.0;  // over which the gradients become ready; 0: all at once
  int rounds = 0;           // 0: enough
};

// One training step's gradients, summed in place: hvd (submitted one by one, then waited for), a blocking MPI_Allreduce
// for each, one for all of them, and, of float32 that is ready at once, the limits. Counts of hvd's record, for each
// step after warm-up, the greatest of the ranks: messages (reports and plans), requests sent in full, batches, calls of
// operator new, bytes packed and unpacked per gradient byte. Collective.
void run_step(Session& session, const Profile& profile, const StepOptions& options);

}  // namespace hvd::bench
