#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "samples.h"

namespace hvd::bench {

// One line of the result: what was measured, and how long it took.
struct Record {
  std::string bench;    // the sub-command
  std::string variant;  // "packed", "in-place", ...
  std::string peer;     // "hvd", "mpi" or "limit"
  std::string profile;  // of a step
  int ranks = 0;
  std::size_t bytes = 0;  // on each rank
  std::string dtype;
  std::optional<double> median_us;
  std::optional<double> p10_us;
  std::optional<double> p90_us;
  std::optional<double> p99_us;
  std::optional<double> busbw_GBps;
  // How many times as fast as the fastest MPI form, and as the limit of the same variant, in the same run.
  std::optional<double> ratio_to_mpi;
  std::optional<double> ratio_to_limit;
  std::map<std::string, double> counts;  // what else was counted, by name
};

// Bytes that pass the busiest link for each byte of an operation's buffer, over which busbw is taken; the same as in
// nccl-tests (PERFORMANCE.md there).
double allreduce_factor(int ranks);
double allgather_factor(int ranks);  // also of reduce-scatter and alltoall

// Sets median, quantiles and busbw. No samples: none.
void set_times(Record& record, Samples& samples, double bus_factor);
// Sets the ratios of records that were measured together.
void set_ratios(std::vector<Record>& group);

nlohmann::json to_json(const Record& record);
// The table: its heading, and one line for each record.
std::string table_heading();
std::string table_line(const Record& record);

// "4 B", "64 KiB", "97.5 MiB"
std::string format_bytes(std::size_t bytes);

}  // namespace hvd::bench
