#include "config/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hvd/error.h>
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "config/values.h"
#include "negotiation/rank_groups.h"

namespace hvd {

namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t gib = 1024 * mib;

// Some 31 years; a time point of the clock plus this does not overflow.
constexpr double most_seconds = 1e9;

constexpr std::array<std::string_view, 3> check_levels{"off", "local", "comm"};
constexpr std::array<std::string_view, 2> join_averages{"all", "present"};
constexpr std::array<std::string_view, 2> stall_policies{"raise", "abort"};

template <auto member>
constexpr ChoiceSetting choice(std::span<const std::string_view> words) {
  return {words, [](const Config& config) { return static_cast<std::size_t>(config.*member); },
          [](Config& config, std::size_t value) {
            config.*member = static_cast<std::remove_cvref_t<decltype(config.*member)>>(value);
          }};
}

constexpr std::array<Setting, 18> table{{
    {"fusion_threshold", "HVD_FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD", true,
     BytesSetting{&Config::fusion_threshold, 0, 64 * gib}},
    {"chunk_bytes", "HVD_CHUNK_BYTES", "", true, BytesSetting{&Config::chunk_bytes, 256, 64 * mib, 64}},
    {"stall_warning", "HVD_STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_TIME_SECONDS", false,
     SecondsSetting{&Config::stall_warning}},
    {"", "", "HOROVOD_STALL_CHECK_DISABLE", false, SwitchedOffSetting{&Config::stall_warning}},
    {"stall_shutdown", "HVD_STALL_SHUTDOWN_TIME_SECONDS", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", true,
     SecondsSetting{&Config::stall_shutdown}},
    {"stall_policy", "HVD_STALL_POLICY", "", false, choice<&Config::stall_policy>(stall_policies)},
    {"start_timeout", "HVD_START_TIMEOUT", "HOROVOD_START_TIMEOUT", false, SecondsSetting{&Config::start_timeout}},
    {"shutdown_timeout", "HVD_SHUTDOWN_TIMEOUT", "", false, SecondsSetting{&Config::shutdown_timeout}},
    {"cache_capacity", "HVD_CACHE_CAPACITY", "HOROVOD_CACHE_CAPACITY", true,
     NumberSetting{&Config::cache_capacity, 0, std::int64_t{1} << 30}},
    {"check", "HVD_CHECK", "", true, choice<&Config::check>(check_levels)},
    {"join_average", "HVD_JOIN_AVERAGE", "", true, choice<&Config::join_average>(join_averages)},
    {"process_sets", "", "", true, SetsSetting{&Config::process_sets}},
    {"timeline", "HVD_TIMELINE", "HOROVOD_TIMELINE", false, TextSetting{&Config::timeline}},
    {"log_level", "HVD_LOG_LEVEL", "HOROVOD_LOG_LEVEL", false, LogLevelSetting{&Config::log_level}},
    {"log_hide_time", "HVD_LOG_HIDE_TIME", "HOROVOD_LOG_HIDE_TIME", false, FlagSetting{&Config::log_hide_time}},
    {"test_topology", "HVD_TEST_TOPOLOGY", "", true, CountsSetting{&Config::test_topology}},
    {"mpi_max_count", "HVD_MPI_MAX_COUNT", "", false,
     NumberSetting{&Config::mpi_max_count, 0, std::numeric_limits<int>::max()}},
    {"test_hang_op", "HVD_TEST_HANG_OP", "", false, OperationOnRankSetting{&Config::test_hang_op}},
}};

template <typename Value, typename Target>
std::string assign(const std::optional<Value>& value, Target& target, std::string_view wanted) {
  if (!value) return fmt::format("is not {}", wanted);
  target = Target(*value);
  return {};
}

struct SetFromText {
  std::string_view text;
  Config& config;

  std::string operator()(const BytesSetting& s) const {
    return assign(parse_bytes(text), config.*s.member, "a number of bytes");
  }
  std::string operator()(const SecondsSetting& s) const {
    return assign(parse_seconds(text), config.*s.member, "a number of seconds");
  }
  std::string operator()(const SwitchedOffSetting& s) const {
    bool off = false;
    std::string problem = assign(parse_flag(text), off, "0 or 1");
    if (off) config.*s.member = {};
    return problem;
  }
  std::string operator()(const TextSetting& s) const {
    config.*s.member = text;
    return {};
  }
  std::string operator()(const OperationOnRankSetting& s) const {
    config.*s.member = text;
    return {};
  }
  std::string operator()(const FlagSetting& s) const { return assign(parse_flag(text), config.*s.member, "0 or 1"); }
  std::string operator()(const LogLevelSetting& s) const {
    return assign(parse_log_level(text), config.*s.member, "one of trace, debug, info, warning, error, fatal");
  }
  std::string operator()(const CountsSetting& s) const {
    return assign(parse_counts(text), config.*s.member, "a list of ranks per host such as 2,1,1");
  }
  std::string operator()(const NumberSetting& s) const {
    return assign(parse_number(text), config.*s.member, "a whole number");
  }
  std::string operator()(const ChoiceSetting& s) const {
    const auto word = std::ranges::find(s.words, text);
    if (word == s.words.end()) return fmt::format("is not one of {}", fmt::join(s.words, ", "));
    s.set(config, static_cast<std::size_t>(word - s.words.begin()));
    return {};
  }
  std::string operator()(const SetsSetting& /*unused*/) const { return "cannot be set so"; }
};

struct RangeProblem {
  const Config& config;

  std::string operator()(const BytesSetting& s) const {
    const std::int64_t value = config.*s.member;
    if (value >= s.least && value <= s.most && value % s.multiple_of == 0) return {};
    const std::string multiple = s.multiple_of == 1 ? "" : fmt::format(" and a multiple of {}", s.multiple_of);
    return fmt::format("is out of range: from {} to {}{}", format_bytes(s.least), format_bytes(s.most), multiple);
  }
  std::string operator()(const SecondsSetting& s) const {
    const double value = (config.*s.member).count();
    if (value >= 0 && value <= most_seconds) return {};  // false for NaN
    return fmt::format("is out of range: from 0 to {:.0f} seconds", most_seconds);
  }
  std::string operator()(const CountsSetting& s) const {
    const std::vector<int>& counts = config.*s.member;
    if (std::all_of(counts.begin(), counts.end(), [](int count) { return count > 0; })) return {};
    return "is out of range: each host has 1 rank or more";
  }
  std::string operator()(const NumberSetting& s) const {
    const std::int64_t value = config.*s.member;
    return value >= s.least && value <= s.most ? "" : fmt::format("is out of range: from {} to {}", s.least, s.most);
  }
  std::string operator()(const ChoiceSetting& s) const {
    return s.get(config) < s.words.size() ? "" : "is not one of its values";
  }
  std::string operator()(const OperationOnRankSetting& s) const {
    const std::string_view text = config.*s.member;
    if (text.empty()) return {};
    const std::size_t colon = text.rfind(':');  // names may hold colons
    const auto rank = colon == std::string_view::npos ? std::nullopt : parse_number(text.substr(colon + 1));
    return colon != 0 && rank && *rank >= 0 ? "" : "is not an operation's name and a rank such as name:1";
  }
  std::string operator()(const SetsSetting& /*unused*/) const { return {}; }
  std::string operator()(const SwitchedOffSetting& /*unused*/) const { return {}; }
  std::string operator()(const TextSetting& /*unused*/) const { return {}; }
  std::string operator()(const FlagSetting& /*unused*/) const { return {}; }
  std::string operator()(const LogLevelSetting& /*unused*/) const { return {}; }
};

struct ValueText {
  const Config& config;

  std::string operator()(const BytesSetting& s) const { return format_bytes(config.*s.member); }
  std::string operator()(const SecondsSetting& s) const { return format_seconds((config.*s.member).count()); }
  std::string operator()(const SwitchedOffSetting& s) const { return (config.*s.member).count() == 0 ? "1" : "0"; }
  std::string operator()(const TextSetting& s) const { return config.*s.member; }
  std::string operator()(const OperationOnRankSetting& s) const { return config.*s.member; }
  std::string operator()(const FlagSetting& s) const { return config.*s.member ? "1" : "0"; }
  std::string operator()(const LogLevelSetting& s) const { return std::string(to_string(config.*s.member)); }
  std::string operator()(const CountsSetting& s) const {
    const std::vector<int>& counts = config.*s.member;
    return counts.empty() ? "none" : format_counts(counts);
  }
  std::string operator()(const NumberSetting& s) const { return std::to_string(config.*s.member); }
  std::string operator()(const ChoiceSetting& s) const {
    return s.get(config) < s.words.size() ? std::string(s.words[s.get(config)]) : "unknown";
  }
  std::string operator()(const SetsSetting& s) const {
    std::string text;
    for (const auto& ranks : config.*s.member) text += (text.empty() ? "" : " ") + format_ranks(ranks);
    return text.empty() ? "none" : text;
  }
};

}  // namespace

std::span<const Setting> settings() { return table; }

std::string set_from_text(const Setting& setting, std::string_view text, Config& config) {
  std::string problem = std::visit(SetFromText{text, config}, setting.kind);
  return problem.empty() ? range_problem(setting, config) : problem;
}

std::string range_problem(const Setting& setting, const Config& config) {
  return std::visit(RangeProblem{config}, setting.kind);
}

std::string value_text(const Setting& setting, const Config& config) {
  return std::visit(ValueText{config}, setting.kind);
}

void check_config(const Config& config) {
  for (const Setting& setting : table) {
    const std::string problem = range_problem(setting, config);
    if (problem.empty()) continue;
    throw InvalidArgumentError(fmt::format("Config::{}: {} {}", setting.field, value_text(setting, config), problem));
  }
}

}  // namespace hvd
