#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hvd/types.h>

namespace hvd {

// Names identify an operation across ranks: all ranks use the same one, and it may not be in flight twice on one rank.
// They are opaque bytes without NUL, at most max_name_bytes long. Operations of one kind and process set without a name
// are paired by the order in which each rank submits them.
inline constexpr std::size_t max_name_bytes = 8192;

// The ranks that take part in an operation; made by Runtime::add_process_set() or Config::process_sets, numbered from 1
// in the order of their making. 0 is the set of all ranks. Ranks in options and results are those of the whole world,
// also within a set.
struct ProcessSet {
  std::uint32_t id = 0;
  friend bool operator==(ProcessSet, ProcessSet) = default;
};

// Common to all options: `name`; `process_set`; and `timeout`, the time after which the operation fails with StallError
// when a rank does not come. 0 is Config::stall_shutdown; whichever is smaller holds.
using Timeout = std::chrono::duration<double>;

struct AllreduceOptions {
  std::string_view name = {};
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;   // multiplies each input before the sum
  double postscale = 1.0;  // multiplies the result
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct ReduceOptions {
  std::string_view name = {};
  int root_rank = 0;
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;
  double postscale = 1.0;
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct ReduceScatterOptions {
  std::string_view name = {};
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;
  double postscale = 1.0;
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct BroadcastOptions {
  std::string_view name = {};
  int root_rank = 0;
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct AllgatherOptions {
  std::string_view name = {};
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct GatherOptions {
  std::string_view name = {};
  int root_rank = 0;
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct ScatterOptions {
  std::string_view name = {};
  int root_rank = 0;
  // Of the root: rows for each rank of the set, adding up to the input's rows; of a group, those of one tensor after
  // the other. Empty: equal shares, the first ranks getting one row more when there is a remainder.
  std::span<const std::int64_t> splits = {};
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct AlltoallOptions {
  std::string_view name = {};
  // Rows for each rank of the set, adding up to the input's rows; of a group, those of one tensor after the other.
  // Empty: equal shares; the rows must divide evenly.
  std::span<const std::int64_t> splits = {};
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct SendOptions {
  std::string_view name = {};
  int to_rank = 0;
  ProcessSet process_set = {};  // to which both ends belong
  Timeout timeout{0};
};

struct RecvOptions {
  std::string_view name = {};
  int from_rank = 0;
  ProcessSet process_set = {};  // to which both ends belong
  Timeout timeout{0};
};

struct BarrierOptions {
  std::string_view name = {};
  ProcessSet process_set = {};
  Timeout timeout{0};
};

struct JoinOptions {
  ProcessSet process_set = {};
  Timeout timeout{0};
};

}  // namespace hvd
