#pragma once

#include <cstdint>

namespace hvd::bench {

// How often the program and its libraries have called operator new so far: this thread, and all of them.
std::uint64_t allocations_here();
std::uint64_t allocations_everywhere();

}  // namespace hvd::bench
