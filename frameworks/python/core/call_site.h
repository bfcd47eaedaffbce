#pragma once

namespace hvd::python {

// Where in the program's Python code hvd was called from, as an address that no code has: the same for one line of one
// file on all ranks. hvd compares it for operations without a name when the setting `check` is `comm`; null otherwise.
const void* python_call_site();

// To be told at init.
void want_call_sites(bool wanted);

}  // namespace hvd::python
