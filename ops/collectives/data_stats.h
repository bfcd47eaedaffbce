#pragma once

#include <cstdint>

namespace hvd {

// What this rank's collectives of one process set have moved so far.
struct DataStats {
  std::uint64_t bytes_packed = 0;    // from tensors into shared memory
  std::uint64_t bytes_unpacked = 0;  // from shared memory into tensors
  std::uint64_t bytes_sent = 0;      // as messages to other ranks
  std::uint64_t allocations = 0;     // of scratch memory for data
};

}  // namespace hvd
