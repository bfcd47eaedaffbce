#pragma once

#include "session.h"

namespace hvd::bench {

// What a process costs that has used hvd and now waits for nothing: messages, and seconds of a core per second, the
// greatest of the ranks. Collective.
void run_idle(Session& session, double seconds);

}  // namespace hvd::bench
