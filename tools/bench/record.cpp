#include "record.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace hvd::bench {

namespace {

// The fastest of those that `wanted` holds for.
template <typename Wanted>
std::optional<double> fastest(const std::vector<Record>& group, Wanted wanted) {
  std::optional<double> best;
  for (const Record& record : group) {
    if (record.median_us && wanted(record) && (!best || *record.median_us < *best)) best = record.median_us;
  }
  return best;
}

std::string cell(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

}  // namespace

double allreduce_factor(int ranks) { return 2.0 * allgather_factor(ranks); }

double allgather_factor(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

void set_times(Record& record, Samples& samples, double bus_factor) {
  if (samples.empty()) return;
  record.median_us = samples.quantile(0.5);
  record.p10_us = samples.quantile(0.1);
  record.p90_us = samples.quantile(0.9);
  record.p99_us = samples.quantile(0.99);
  record.busbw_GBps = bus_factor * static_cast<double>(record.bytes) / *record.median_us / 1e3;
}

void set_ratios(std::vector<Record>& group) {
  const auto mpi = fastest(group, [](const Record& r) { return r.peer == "mpi"; });
  const auto packed = fastest(group, [](const Record& r) { return r.peer == "limit" && r.variant == "packed"; });
  const auto arena = fastest(group, [](const Record& r) { return r.peer == "limit" && r.variant == "arena"; });
  for (Record& record : group) {
    const auto& limit = record.variant == "arena" ? arena : packed;
    if (record.median_us && mpi) record.ratio_to_mpi = *mpi / *record.median_us;
    if (record.median_us && limit) record.ratio_to_limit = *limit / *record.median_us;
  }
}

nlohmann::json to_json(const Record& record) {
  const auto number = [](std::optional<double> value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  nlohmann::json json = {
      {"bench", record.bench},
      {"variant", record.variant},
      {"peer", record.peer},
      {"ranks", record.ranks},
      {"bytes", record.bytes},
      {"dtype", record.dtype},
      {"median_us", number(record.median_us)},
      {"p10_us", number(record.p10_us)},
      {"p90_us", number(record.p90_us)},
      {"p99_us", number(record.p99_us)},
      {"busbw_GBps", number(record.busbw_GBps)},
      {"ratio_to_mpi", number(record.ratio_to_mpi)},
      {"ratio_to_limit", number(record.ratio_to_limit)},
  };
  if (!record.profile.empty()) json["profile"] = record.profile;
  if (!record.counts.empty()) json["counts"] = record.counts;
  return json;
}

std::string table_heading() {
  return fmt::format("{:<11}{:>10} {:<9}{:<6}{:<18}{:>11}{:>11}{:>11}{:>11}{:>8}{:>8}{:>9}  {}", "", "bytes", "dtype",
                     "", "", "median us", "p10", "p90", "p99", "GB/s", "x MPI", "of limit", "counts");
}

std::string table_line(const Record& record) {
  std::string counts;
  for (const auto& [name, value] : record.counts)
    counts += fmt::format("{}{}={:g}", counts.empty() ? "" : " ", name, value);
  const std::string& what = record.profile.empty() ? record.bench : record.profile;
  return fmt::format("{:<11}{:>10} {:<9}{:<6}{:<18}{:>11}{:>11}{:>11}{:>11}{:>8}{:>8}{:>9}  {}", what,
                     format_bytes(record.bytes), record.dtype, record.peer, record.variant, cell(record.median_us, 2),
                     cell(record.p10_us, 2), cell(record.p90_us, 2), cell(record.p99_us, 2), cell(record.busbw_GBps, 2),
                     cell(record.ratio_to_mpi, 2), cell(record.ratio_to_limit, 2), counts);
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < units.size(); ++unit) value /= 1024.0;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace hvd::bench
