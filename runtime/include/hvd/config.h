#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hvd/export.h>

namespace hvd {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, fatal };

// What is checked beyond what the negotiation compares anyway, by what it costs.
enum class CheckLevel : std::uint8_t {
  off,    // not whether tensors have memory
  local,  // arguments, on this rank alone
  comm,   // also by messages: that unnamed operations come from one place of the program, and that results agree
};

// Whom an average divides by while some ranks have joined.
enum class JoinAverage : std::uint8_t { all, present };

// What happens when an operation stalls and nobody waits for it: the next call of this rank throws, or the process
// aborts.
enum class StallPolicy : std::uint8_t { raise, abort };

// Everything that can be set. Filled from the environment (`HVD_<NAME>`, or Horovod's `HOROVOD_<NAME>` where it means
// the same), then overridden by code. At init the ranks compare what must agree and report differences by rank.
struct HVD_API Config {
  // Most bytes that are fused into one batch; 0 switches fusion off. [HVD_FUSION_THRESHOLD] must agree
  std::int64_t fusion_threshold = std::int64_t{128} << 20;
  // Bytes of one piece of the shared-memory pipeline, per rank. [HVD_CHUNK_BYTES] must agree
  std::int64_t chunk_bytes = std::int64_t{512} << 10;
  // Time after which an operation that lacks ranks is reported; again at each doubling. 0: never.
  // [HVD_STALL_CHECK_TIME_SECONDS]
  std::chrono::duration<double> stall_warning{60.0};
  // Time after which it fails with StallError on every rank that waits for it. 0: never.
  // [HVD_STALL_SHUTDOWN_TIME_SECONDS] must agree
  std::chrono::duration<double> stall_shutdown{1800.0};
  // [HVD_STALL_POLICY]
  StallPolicy stall_policy = StallPolicy::raise;
  // Told every stall report on rank 0, from the thread that drives progress; must not call hvd. Code only.
  std::function<void(const std::string& report)> on_stall;
  // How long init() waits for the other ranks. [HVD_START_TIMEOUT]
  std::chrono::duration<double> start_timeout{300.0};
  // How long shutdown() waits for operations in flight before it fails them. [HVD_SHUTDOWN_TIMEOUT]
  std::chrono::duration<double> shutdown_timeout{30.0};
  // How many names are remembered by number, so that they need not travel again; the least recently used ones make
  // room. [HVD_CACHE_CAPACITY] must agree
  std::int64_t cache_capacity = 16384;
  CheckLevel check = CheckLevel::local;         // [HVD_CHECK] must agree
  JoinAverage join_average = JoinAverage::all;  // [HVD_JOIN_AVERAGE] must agree
  // Sets to make at init, besides that of all ranks; numbered from 1 in this order. Code only, must agree.
  std::vector<std::vector<int>> process_sets;
  // Where to write a Chrome trace; each rank its own file (see README). Empty: no trace. [HVD_TIMELINE]
  std::string timeline;
  LogLevel log_level = LogLevel::warning;  // [HVD_LOG_LEVEL]
  bool log_hide_time = false;              // [HVD_LOG_HIDE_TIME]
  // Pretends that the ranks are on several hosts, by ranks per host: "2,1,1". For tests. [HVD_TEST_TOPOLOGY] must agree
  std::vector<int> test_topology;
  // Most elements that one MPI call is given; 0: what MPI can take. For tests. [HVD_MPI_MAX_COUNT]
  std::int64_t mpi_max_count = 0;
  // Never lets this rank's part of an operation go on: "name:rank". For tests. [HVD_TEST_HANG_OP]
  std::string test_hang_op;

  // Reads the process's environment. Throws InvalidArgumentError that names the variable and its value when one does
  // not parse or is out of range; warns about HVD_* names that do not exist.
  static Config from_environment();
  // The same from a given set of variables; warnings are appended to `warnings`.
  static Config from_variables(const std::map<std::string, std::string>& variables, std::vector<std::string>& warnings);
};

}  // namespace hvd
