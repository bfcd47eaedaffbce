#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hvd/config.h>
#include <hvd/error.h>

#include "config/settings.h"
#include "config/values.h"

namespace hvd {
namespace {

using Variables = std::map<std::string, std::string>;

Config config_from(const Variables& variables) {
  std::vector<std::string> warnings;
  Config config = Config::from_variables(variables, warnings);
  EXPECT_EQ(warnings, std::vector<std::string>{});
  return config;
}

std::vector<std::string> warnings_from(const Variables& variables) {
  std::vector<std::string> warnings;
  Config::from_variables(variables, warnings);
  return warnings;
}

std::string error_from(const Variables& variables) {
  std::vector<std::string> warnings;
  try {
    Config::from_variables(variables, warnings);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, has_its_defaults_without_variables) {
  const Config config = config_from({});
  EXPECT_EQ(config.fusion_threshold, std::int64_t{128} << 20);
  EXPECT_EQ(config.stall_warning.count(), 60.0);
  EXPECT_EQ(config.log_level, LogLevel::warning);
  EXPECT_TRUE(config.test_topology.empty());
}

TEST(Config, reads_every_variable) {
  const Config config = config_from({{"HVD_FUSION_THRESHOLD", "1GiB"},
                                     {"HVD_CHUNK_BYTES", "4096"},
                                     {"HVD_STALL_CHECK_TIME_SECONDS", "0.5"},
                                     {"HVD_STALL_SHUTDOWN_TIME_SECONDS", "1e3"},
                                     {"HVD_START_TIMEOUT", "7"},
                                     {"HVD_SHUTDOWN_TIMEOUT", "0"},
                                     {"HVD_TIMELINE", "/tmp/trace \".json"},
                                     {"HVD_LOG_LEVEL", "Debug"},
                                     {"HVD_LOG_HIDE_TIME", "1"},
                                     {"HVD_STALL_POLICY", "abort"},
                                     {"HVD_CACHE_CAPACITY", "0"},
                                     {"HVD_CHECK", "comm"},
                                     {"HVD_JOIN_AVERAGE", "present"},
                                     {"HVD_TEST_TOPOLOGY", "2,1,1"},
                                     {"HVD_MPI_MAX_COUNT", "2147483647"},
                                     {"HVD_TEST_HANG_OP", "group:1:0"}});
  EXPECT_EQ(config.fusion_threshold, std::int64_t{1} << 30);
  EXPECT_EQ(config.chunk_bytes, 4096);
  EXPECT_EQ(config.stall_warning.count(), 0.5);
  EXPECT_EQ(config.stall_shutdown.count(), 1000.0);
  EXPECT_EQ(config.start_timeout.count(), 7.0);
  EXPECT_EQ(config.shutdown_timeout.count(), 0.0);
  EXPECT_EQ(config.timeline, "/tmp/trace \".json");
  EXPECT_EQ(config.log_level, LogLevel::debug);
  EXPECT_TRUE(config.log_hide_time);
  EXPECT_EQ(config.stall_policy, StallPolicy::abort);
  EXPECT_EQ(config.cache_capacity, 0);
  EXPECT_EQ(config.check, CheckLevel::comm);
  EXPECT_EQ(config.join_average, JoinAverage::present);
  EXPECT_EQ(config.test_topology, (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(config.mpi_max_count, 2147483647);
  EXPECT_EQ(config.test_hang_op, "group:1:0");
}

TEST(Config, every_word_of_a_choice_is_read) {
  EXPECT_EQ(config_from({{"HVD_CHECK", "off"}}).check, CheckLevel::off);
  EXPECT_EQ(config_from({{"HVD_CHECK", "local"}}).check, CheckLevel::local);
  EXPECT_EQ(config_from({{"HVD_STALL_POLICY", "raise"}}).stall_policy, StallPolicy::raise);
  EXPECT_EQ(config_from({{"HVD_JOIN_AVERAGE", "all"}}).join_average, JoinAverage::all);
  EXPECT_EQ(config_from({{"HVD_TEST_HANG_OP", ""}}).test_hang_op, "");
}

TEST(Config, reads_horovods_names_where_they_mean_the_same) {
  const Config config = config_from({{"HOROVOD_FUSION_THRESHOLD", "0"},
                                     {"HOROVOD_STALL_CHECK_TIME_SECONDS", "10"},
                                     {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20"},
                                     {"HOROVOD_START_TIMEOUT", "30"},
                                     {"HOROVOD_TIMELINE", "trace.json"},
                                     {"HOROVOD_LOG_LEVEL", "fatal"},
                                     {"HOROVOD_LOG_HIDE_TIME", "1"},
                                     {"HOROVOD_CYCLE_TIME", "is not ours"}});
  EXPECT_EQ(config.fusion_threshold, 0);
  EXPECT_EQ(config.stall_warning.count(), 10.0);
  EXPECT_EQ(config.stall_shutdown.count(), 20.0);
  EXPECT_EQ(config.start_timeout.count(), 30.0);
  EXPECT_EQ(config.timeline, "trace.json");
  EXPECT_EQ(config.log_level, LogLevel::fatal);
  EXPECT_TRUE(config.log_hide_time);
}

TEST(Config, prefers_its_own_name_to_horovods) {
  const Config config = config_from({{"HOROVOD_FUSION_THRESHOLD", "1K"}, {"HVD_FUSION_THRESHOLD", "2K"}});
  EXPECT_EQ(config.fusion_threshold, 2048);
}

TEST(Config, takes_horovods_switch_for_the_stall_check) {
  EXPECT_EQ(config_from({{"HOROVOD_STALL_CHECK_DISABLE", "1"}}).stall_warning.count(), 0.0);
  EXPECT_EQ(config_from({{"HOROVOD_STALL_CHECK_DISABLE", "0"}}).stall_warning.count(), 60.0);
  EXPECT_EQ(config_from({{"HOROVOD_STALL_CHECK_DISABLE", "1"}, {"HOROVOD_STALL_CHECK_TIME_SECONDS", "9"}})
                .stall_warning.count(),
            0.0);
  EXPECT_EQ(
      config_from({{"HOROVOD_STALL_CHECK_DISABLE", "1"}, {"HVD_STALL_CHECK_TIME_SECONDS", "9"}}).stall_warning.count(),
      9.0);
}

TEST(Config, writes_no_file_called_dynamic) {
  std::vector<std::string> warnings;
  EXPECT_EQ(Config::from_variables({{"HOROVOD_TIMELINE", "DYNAMIC"}}, warnings).timeline, "");
  EXPECT_EQ(warnings, std::vector<std::string>{"HOROVOD_TIMELINE: 'DYNAMIC' is not supported; no timeline is written"});
}

TEST(Config, refuses_what_does_not_parse_as_a_whole) {
  EXPECT_EQ(error_from({{"HVD_FUSION_THRESHOLD", "12x"}}), "HVD_FUSION_THRESHOLD: '12x' is not a number of bytes");
  EXPECT_EQ(error_from({{"HOROVOD_FUSION_THRESHOLD", "12x"}}),
            "HOROVOD_FUSION_THRESHOLD: '12x' is not a number of bytes");
  EXPECT_EQ(error_from({{"HVD_FUSION_THRESHOLD", ""}}), "HVD_FUSION_THRESHOLD: '' is not a number of bytes");
  EXPECT_EQ(error_from({{"HVD_START_TIMEOUT", "5 min"}}), "HVD_START_TIMEOUT: '5 min' is not a number of seconds");
  EXPECT_EQ(error_from({{"HVD_LOG_LEVEL", "loud"}}),
            "HVD_LOG_LEVEL: 'loud' is not one of trace, debug, info, warning, error, fatal");
  EXPECT_EQ(error_from({{"HVD_LOG_HIDE_TIME", "2"}}), "HVD_LOG_HIDE_TIME: '2' is not 0 or 1");
  EXPECT_EQ(error_from({{"HVD_TEST_TOPOLOGY", "2,,1"}}),
            "HVD_TEST_TOPOLOGY: '2,,1' is not a list of ranks per host such as 2,1,1");
  EXPECT_EQ(error_from({{"HOROVOD_STALL_CHECK_DISABLE", "maybe"}}),
            "HOROVOD_STALL_CHECK_DISABLE: 'maybe' is not 0 or 1");
}

// Of each variable the text that follows its name, for values that are none.
TEST(Config, refuses_what_is_no_value_of_a_choice_a_number_or_a_rank_s_operation) {
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"HVD_CHECK", "is not one of off, local, comm"},    {"HVD_JOIN_AVERAGE", "is not one of all, present"},
      {"HVD_STALL_POLICY", "is not one of raise, abort"}, {"HVD_CACHE_CAPACITY", "is not a whole number"},
      {"HVD_MPI_MAX_COUNT", "is not a whole number"},     {"HOROVOD_CACHE_CAPACITY", "is not a whole number"},
  };
  for (const auto& [variable, problem] : wanted) {
    for (const std::string value : {"", "of", "local ", "LOCAL", "1.5", "1K", "0x10", "all,present"}) {
      EXPECT_EQ(error_from({{variable, value}}), variable + ": '" + value + "' " + problem);
    }
  }
  for (const std::string value : {"x", "x:", ":1", "x:one", "x:-1", "x:1 ", ":", "1"}) {
    EXPECT_EQ(error_from({{"HVD_TEST_HANG_OP", value}}),
              "HVD_TEST_HANG_OP: '" + value + "' is not an operation's name and a rank such as name:1");
  }
}

TEST(Config, states_the_range_of_numbers_outside_it) {
  for (const std::string value : {"-1", "1073741825", "99999999999999999999"}) {
    EXPECT_EQ(error_from({{"HVD_CACHE_CAPACITY", value}}),
              "HVD_CACHE_CAPACITY: '" + value + "' is out of range: from 0 to 1073741824");
  }
  for (const std::string value : {"-1", "2147483648", "-99999999999999999999"}) {
    EXPECT_EQ(error_from({{"HVD_MPI_MAX_COUNT", value}}),
              "HVD_MPI_MAX_COUNT: '" + value + "' is out of range: from 0 to 2147483647");
  }
}

TEST(Config, states_the_range_of_what_is_outside_it) {
  EXPECT_EQ(error_from({{"HVD_FUSION_THRESHOLD", "-1"}}),
            "HVD_FUSION_THRESHOLD: '-1' is out of range: from 0 bytes to 64 GiB");
  EXPECT_EQ(error_from({{"HVD_FUSION_THRESHOLD", "99999999999999999999"}}),
            "HVD_FUSION_THRESHOLD: '99999999999999999999' is out of range: from 0 bytes to 64 GiB");
  const std::string chunk_range = "is out of range: from 256 bytes to 64 MiB and a multiple of 64";
  for (const std::string value : {"0", "192", "4097", "65MiB", "9999999999G"}) {
    EXPECT_EQ(error_from({{"HVD_CHUNK_BYTES", value}}), "HVD_CHUNK_BYTES: '" + value + "' " + chunk_range);
  }
  for (const std::string value : {"-0.5", "inf", "nan", "1e999", "2e9"}) {
    EXPECT_EQ(error_from({{"HVD_STALL_CHECK_TIME_SECONDS", value}}),
              "HVD_STALL_CHECK_TIME_SECONDS: '" + value + "' is out of range: from 0 to 1000000000 seconds");
  }
  EXPECT_EQ(error_from({{"HVD_TEST_TOPOLOGY", "2,0"}}),
            "HVD_TEST_TOPOLOGY: '2,0' is out of range: each host has 1 rank or more");
}

TEST(Config, warns_of_unknown_names_with_the_nearest_known_one) {
  EXPECT_EQ(warnings_from({{"HVD_FUSION_TRESHOLD", "1"}}),
            std::vector<std::string>{"unknown variable HVD_FUSION_TRESHOLD; did you mean HVD_FUSION_THRESHOLD?"});
  EXPECT_EQ(warnings_from({{"HVD_TEST_TOPOLGY", "1"}}),
            std::vector<std::string>{"unknown variable HVD_TEST_TOPOLGY; did you mean HVD_TEST_TOPOLOGY?"});
  EXPECT_EQ(warnings_from({{"HVD_RANK", "1"}}), std::vector<std::string>{"unknown variable HVD_RANK"});
  EXPECT_EQ(warnings_from({{"HVD_", "1"}}), std::vector<std::string>{"unknown variable HVD_"});
  EXPECT_EQ(warnings_from({{"HVD_" + std::string(100000, 'X'), "1"}}).size(), 1U);
}

TEST(Config, reads_the_environment_and_prints_its_warnings) {
  ASSERT_EQ(::setenv("HVD_FUSION_THRESHOLD", "3MiB", 1), 0);
  ASSERT_EQ(::setenv("HVD_LOG_LEVLE", "info", 1), 0);
  testing::internal::CaptureStderr();
  const Config config = Config::from_environment();
  const std::string printed = testing::internal::GetCapturedStderr();
  ::unsetenv("HVD_FUSION_THRESHOLD");
  ::unsetenv("HVD_LOG_LEVLE");
  EXPECT_EQ(config.fusion_threshold, std::int64_t{3} << 20);
  EXPECT_NE(printed.find("[hvd] warning: unknown variable HVD_LOG_LEVLE; did you mean HVD_LOG_LEVEL?\n"),
            std::string::npos)
      << printed;
}

TEST(Config, filled_by_code_is_checked_too) {
  Config config;
  EXPECT_NO_THROW(check_config(config));
  config.chunk_bytes = 1000;
  try {
    check_config(config);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_STREQ(error.what(),
                 "Config::chunk_bytes: 1000 bytes is out of range: from 256 bytes to 64 MiB and a multiple of 64");
  }
}

TEST(Config, values_of_no_enumerator_filled_by_code_are_refused) {
  const auto refused = [](const auto& change) {
    Config config;
    change(config);
    try {
      check_config(config);
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(refused([](Config& config) { config.check = static_cast<CheckLevel>(3); }),
            "Config::check: unknown is not one of its values");
  EXPECT_EQ(refused([](Config& config) { config.join_average = static_cast<JoinAverage>(2); }),
            "Config::join_average: unknown is not one of its values");
  EXPECT_EQ(refused([](Config& config) { config.stall_policy = static_cast<StallPolicy>(255); }),
            "Config::stall_policy: unknown is not one of its values");
  EXPECT_EQ(refused([](Config& config) { config.cache_capacity = -5; }),
            "Config::cache_capacity: -5 is out of range: from 0 to 1073741824");
  EXPECT_EQ(refused([](Config& config) { config.mpi_max_count = std::int64_t{1} << 31; }),
            "Config::mpi_max_count: 2147483648 is out of range: from 0 to 2147483647");
  EXPECT_EQ(refused([](Config& config) { config.test_hang_op = "x"; }),
            "Config::test_hang_op: x is not an operation's name and a rank such as name:1");
}

TEST(ParseBytes, knows_the_binary_units_and_no_ambiguous_ones) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::pair<std::string, std::int64_t>> good{{"0", 0},
                                                               {"7", 7},
                                                               {"2K", 2048},
                                                               {"2KiB", 2048},
                                                               {"2 KiB", 2048},
                                                               {"3M", 3 << 20},
                                                               {"3MiB", 3 << 20},
                                                               {"1G", 1 << 30},
                                                               {"1GiB", 1 << 30},
                                                               {"-1K", -1024},
                                                               {"9007199254740993", 9007199254740993},
                                                               {"8589934592G", most}};
  for (const auto& [text, value] : good) EXPECT_EQ(parse_bytes(text), value) << text;
  for (const std::string text :
       {"", " 1", "1 ", "+1", "1.5M", "1KB", "1MB", "1kib", "1Ki", "K", "0x10", "1  K", "1Kx"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(FormatBytes, tells_unlike_values_apart_and_can_be_parsed) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(std::int64_t{128} << 20), "128 MiB");
  EXPECT_EQ(format_bytes((std::int64_t{128} << 20) + 1), "134217729 bytes");
  EXPECT_EQ(parse_bytes(format_bytes(512 << 10)), 512 << 10);
}

}  // namespace
}  // namespace hvd
