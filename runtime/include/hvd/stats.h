#pragma once

#include <cstdint>
#include <vector>

namespace hvd {

// What a rank has done since init, counted, not timed: equal runs give equal numbers but for how many tensors happened
// to be ready together.
struct Stats {
  // Negotiation.
  std::uint64_t reports_sent = 0;     // messages to rank 0 (on rank 0: taken from itself)
  std::uint64_t plans_received = 0;   // messages from rank 0
  std::uint64_t control_bytes = 0;    // of both kinds
  std::uint64_t requests_sent = 0;    // tensors whose full description travelled: new, or changed
  std::uint64_t requests_cached = 0;  // tensors that were announced by their number alone
  std::uint64_t evictions = 0;        // numbers given back, see Config::cache_capacity
  // Execution.
  std::uint64_t operations_done = 0;
  std::uint64_t operations_failed = 0;
  std::uint64_t batches = 0;
  std::uint64_t fused_tensors = 0;   // tensors that shared a batch with others
  std::uint64_t bytes_packed = 0;    // copied from tensors into exchange buffers
  std::uint64_t bytes_unpacked = 0;  // copied or reduced into tensors
  std::uint64_t bytes_sent = 0;      // data messages to other ranks, not through shared memory
  std::uint64_t allocations = 0;     // results and scratch memory
  // On rank 0, by rank: seconds for which operations that lacked this rank alone waited for it.
  std::vector<double> seconds_waited_for;
};

}  // namespace hvd
