#include "config/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {
namespace {

using Record = List<std::byte>;

Record bytes_of(std::string_view text) {
  Record record(text.size());
  std::transform(text.begin(), text.end(), record.begin(), [](char c) { return static_cast<std::byte>(c); });
  return record;
}

TEST(Agreement, is_silent_when_all_ranks_agree) {
  EXPECT_EQ(disagreement({}), "");
  EXPECT_EQ(disagreement(std::vector<Record>(5, agreement_record({}))), "");
}

TEST(Agreement, does_not_mind_settings_of_one_rank_alone) {
  Config other;
  other.timeline = "trace.json\nversion=9";
  other.log_level = LogLevel::trace;
  other.stall_warning = std::chrono::seconds(1);
  other.start_timeout = std::chrono::seconds(1);
  EXPECT_EQ(disagreement(std::vector{agreement_record({}), agreement_record(other)}), "");
}

TEST(Agreement, names_a_difference_by_rank) {
  Config other;
  other.fusion_threshold = std::int64_t{64} << 20;
  const Record usual = agreement_record({});
  EXPECT_EQ(disagreement(std::vector{usual, usual, agreement_record(other), usual}),
            "config differs: fusion_threshold: [0,1,3] 128 MiB; [2] 64 MiB");
}

TEST(Agreement, names_all_differences) {
  Config other;
  other.fusion_threshold += 1;
  other.chunk_bytes = 4096;
  other.stall_shutdown = std::chrono::milliseconds(2500);
  other.test_topology = {1, 1};
  EXPECT_EQ(
      disagreement(std::vector{agreement_record({}), agreement_record(other)}),
      "config differs: fusion_threshold: [0] 128 MiB; [1] 134217729 bytes | chunk_bytes: [0] 512 KiB; [1] 4 KiB | "
      "stall_shutdown: [0] 1800 s; [1] 2.5 s | test_topology: [0] none; [1] 1,1");
}

TEST(Agreement, names_unlike_process_sets_and_choices_in_words) {
  Config other;
  other.process_sets = {{0, 1}, {2}};
  other.check = CheckLevel::comm;
  other.join_average = JoinAverage::present;
  other.cache_capacity = 0;
  other.stall_policy = StallPolicy::abort;  // of one rank alone
  const Record usual = agreement_record({});
  EXPECT_EQ(disagreement(std::vector{usual, agreement_record(other), usual}),
            "config differs: cache_capacity: [0,2] 16384; [1] 0 | check: [0,2] local; [1] comm | "
            "join_average: [0,2] all; [1] present | process_sets: [0,2] none; [1] [0,1] [2]");
}

TEST(Agreement, compares_with_other_versions_that_know_other_settings) {
  EXPECT_EQ(disagreement(std::vector{bytes_of("hvd agreement\nversion=1\nold=a=b\n"),
                                     bytes_of("hvd agreement\nversion=2\nnew=\n")}),
            "config differs: version: [0] 1; [1] 2 | old: [0] a=b; [1] unknown | new: [0] unknown; [1] ");
}

TEST(Agreement, names_the_ranks_whose_records_are_not_readable) {
  const Record usual = agreement_record({});
  const std::string many_lines = [] {
    std::string text = "hvd agreement\n";
    for (int i = 0; i < 1000; ++i) text += "name" + std::to_string(i) + "=1\n";
    return text;
  }();
  const std::vector<Record> bad{bytes_of(""),
                                bytes_of("hvd agreemen"),
                                bytes_of("nonsense"),
                                bytes_of("hvd agreement\nversion"),
                                bytes_of("hvd agreement\nversion\n"),
                                bytes_of("hvd agreement\n=1\n"),
                                bytes_of("hvd agreement\nversion=\x1b[31m\n"),
                                bytes_of(std::string_view("hvd agreement\nversion=\0\n", 24)),
                                bytes_of(many_lines),
                                Record(2 << 20, std::byte{'a'})};
  for (const Record& record : bad) {
    EXPECT_EQ(disagreement(std::vector{usual, record, usual}),
              "config differs: [1] sent no readable configuration (another version of hvd?)");
  }
}

TEST(Agreement, takes_any_cut_and_any_changed_byte_without_harm) {
  const Record usual = agreement_record({});
  for (std::size_t size = 0; size < usual.size(); ++size) {
    const Record cut(usual.begin(), usual.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(disagreement(std::vector{usual, cut}), "") << size;
  }
  for (std::size_t at = 0; at < usual.size(); ++at) {
    Record changed = usual;
    changed[at] ^= std::byte{0x81};
    EXPECT_NE(disagreement(std::vector{usual, changed}), "") << at;
  }
}

}  // namespace
}  // namespace hvd
