#pragma once

#include "session.h"

namespace hvd::bench {

// What it costs the caller to submit a known name with allreduce_async: time, and calls of operator new in its thread.
// `tensors` small ones are submitted one after the other, then waited for. Collective.
void run_submit(Session& session, int tensors);

}  // namespace hvd::bench
