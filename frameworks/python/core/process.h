#pragma once

namespace hvd::python {

// Throws NotInitializedError in a child of the process that called init(): threads, links and shared memory are the
// parent's. Looks at no lock, which the fork may have left taken.
void throw_if_forked();
bool forked() noexcept;
// This process has called init(), or is about to.
void remember_process();

}  // namespace hvd::python
