#pragma once

#include <cstdint>
#include <string_view>

#include <hvd/types.h>

namespace hvd {

// Names identify an operation across ranks: all ranks use the same one, and it may not be in flight twice on one rank.
// They are opaque bytes without NUL, at most max_name_bytes long. Operations without a name are paired by the order in
// which each rank submits them. A name is remembered until shutdown(): use the same ones again and again.
inline constexpr std::size_t max_name_bytes = 8192;

// The ranks that take part in an operation; 0 is the set of all ranks.
struct ProcessSet {
  std::uint32_t id = 0;
  friend bool operator==(ProcessSet, ProcessSet) = default;
};

struct AllreduceOptions {
  std::string_view name = {};
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;   // multiplies each input before the sum
  double postscale = 1.0;  // multiplies the result
  ProcessSet process_set = {};
};

struct BroadcastOptions {
  std::string_view name = {};
  int root_rank = 0;
  ProcessSet process_set = {};
};

struct AllgatherOptions {
  std::string_view name = {};
  ProcessSet process_set = {};
};

struct BarrierOptions {
  std::string_view name = {};
  ProcessSet process_set = {};
};

}  // namespace hvd
