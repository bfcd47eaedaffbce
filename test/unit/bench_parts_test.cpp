#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "pattern.h"
#include "profile.h"
#include "record.h"
#include "sizes.h"

namespace hvd::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The text of the std::invalid_argument that the call throws, or nothing.
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(BenchSizes, AreBytesWithUnitsOf1024) {
  EXPECT_EQ(parse_size("4"), 4U);
  EXPECT_EQ(parse_size("4B"), 4U);
  EXPECT_EQ(parse_size("64K"), 65536U);
  EXPECT_EQ(parse_size("1 MiB"), 1048576U);
  EXPECT_EQ(parse_size("2G"), std::size_t{2} << 30);
  EXPECT_THAT(parse_sizes("4,1K"), ElementsAre(4, 1024));
}

TEST(BenchSizes, ThatAreNoneAreNamed) {
  for (const std::string text : {"", "K", "-4", "4X", "4KB", "1.5M", "99999999999G"}) {
    EXPECT_THAT(refusal([&] { parse_size(text); }), HasSubstr("'" + text + "'")) << text;
  }
  EXPECT_THAT(refusal([] { parse_size("0"); }), HasSubstr("nothing to measure"));
  EXPECT_THAT(refusal([] { parse_sizes("4,,8"); }), HasSubstr("''"));
}

TEST(BenchSizes, RangeEndsWithItsGreatest) {
  EXPECT_THAT(size_range(4, 64, 4), ElementsAre(4, 16, 64));
  EXPECT_THAT(size_range(4, 65, 4), ElementsAre(4, 16, 64, 65));
  EXPECT_THAT(size_range(4, 4, 4), ElementsAre(4));
  EXPECT_THAT(refusal([] { size_range(8, 4, 4); }), HasSubstr("--min 8 is more than --max 4"));
}

TEST(BenchSizes, DtypesGoByBothNames) {
  EXPECT_EQ(parse_dtype("bf16"), DataType::bf16);
  EXPECT_EQ(parse_dtype("float64"), DataType::f64);
  EXPECT_EQ(short_name(DataType::i32), "i32");
  EXPECT_THAT(refusal([] { parse_dtype("bool"); }), HasSubstr("'bool' is no dtype that is measured; there are: f32,"));
}

Record timed(const std::string& peer, const std::string& variant, double median) {
  Record record;
  record.bench = "allreduce";
  record.peer = peer;
  record.variant = variant;
  record.median_us = median;
  return record;
}

TEST(BenchRecord, TimesAreQuantilesAndBandwidthCountsWhatPassesTheBus) {
  Record record;
  record.bytes = 4'000'000;
  Samples samples;
  for (int i = 100; i >= 0; --i) samples.add(1000.0 + i);
  set_times(record, samples, allreduce_factor(4));
  EXPECT_EQ(*record.median_us, 1050.0);
  EXPECT_EQ(*record.p10_us, 1010.0);
  EXPECT_EQ(*record.p90_us, 1090.0);
  EXPECT_EQ(*record.p99_us, 1099.0);
  EXPECT_NEAR(*record.busbw_GBps, 1.5 * 4.0 / 1.05, 1e-9);
  EXPECT_EQ(allreduce_factor(1), 0.0);
}

TEST(BenchRecord, RatiosAreToTheFastestMpiAndToTheLimitOfTheSameVariant) {
  std::vector<Record> group{timed("hvd", "packed", 40.0),      timed("hvd", "arena", 20.0),
                            timed("mpi", "two-buffers", 90.0), timed("mpi", "in-place", 80.0),
                            timed("limit", "packed", 30.0),    timed("limit", "arena", 10.0)};
  set_ratios(group);
  EXPECT_EQ(group[0].ratio_to_mpi, 2.0);
  EXPECT_EQ(group[0].ratio_to_limit, 0.75);
  EXPECT_EQ(group[1].ratio_to_limit, 0.5);
  EXPECT_EQ(group[2].ratio_to_mpi, 80.0 / 90.0);
  EXPECT_EQ(group[4].ratio_to_limit, 1.0);
}

TEST(BenchRecord, WhatWasNotMeasuredIsNullAndADash) {
  std::vector<Record> group{timed("hvd", "packed", 40.0)};
  set_ratios(group);
  group[0].counts["messages"] = 2;
  const nlohmann::json json = to_json(group[0]);
  EXPECT_TRUE(json.at("ratio_to_mpi").is_null());
  EXPECT_TRUE(json.at("p90_us").is_null());
  EXPECT_EQ(json.at("median_us"), 40.0);
  EXPECT_EQ(json.at("counts").at("messages"), 2.0);
  EXPECT_FALSE(json.contains("profile"));
  EXPECT_THAT(table_line(group[0]), HasSubstr(" - "));
  EXPECT_THAT(table_line(group[0]), HasSubstr("messages=2"));
}

TEST(BenchRecord, ColumnsOfTheTableLineUp) {
  Record record = timed("hvd", "packed", 12.5);
  record.bytes = 1 << 20;
  record.counts["end"] = 1;
  EXPECT_EQ(table_heading().find("counts"), table_line(record).find("end=1"));
}

TEST(BenchRecord, BytesAreShort) {
  EXPECT_EQ(format_bytes(4), "4 B");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(102228128), "97.49 MiB");
}

TEST(BenchProfile, HasTensorsWithTheirElements) {
  const Profile profile =
      parse_profile(R"({"name": "tiny", "tensors": [{"name": "w", "shape": [3, 4]}, {"name": "scale", "shape": []}]})");
  EXPECT_EQ(profile.name, "tiny");
  ASSERT_EQ(profile.tensors.size(), 2U);
  EXPECT_EQ(profile.tensors[0].elements, 12U);
  EXPECT_EQ(profile.tensors[1].elements, 1U);
  EXPECT_EQ(profile.elements(), 13U);
}

TEST(BenchProfile, ThatIsNoneSaysWhy) {
  const auto refused = [](const std::string& tensors) {
    return refusal([&] { parse_profile(R"({"name": "x", "tensors": )" + tensors + "}"); });
  };
  EXPECT_THAT(refusal([] { parse_profile("ResNet"); }), HasSubstr("is no profile"));
  EXPECT_THAT(refusal([] { parse_profile("[]"); }), HasSubstr("is no profile"));
  EXPECT_THAT(refused("[]"), HasSubstr("there are no tensors in it"));
  EXPECT_THAT(refused(R"([{"name": "w"}])"), HasSubstr("shape"));
  EXPECT_THAT(refused(R"([{"name": "w", "shape": [0]}])"), HasSubstr("tensor 'w' has a shape that cannot be"));
  EXPECT_THAT(refused(R"([{"name": "w", "shape": [4294967296, 4294967296]}])"), HasSubstr("cannot be"));
  EXPECT_THAT(refused(R"([{"name": "w", "shape": [1]}, {"name": "w", "shape": [2]}])"),
              HasSubstr("two tensors called 'w'"));
}

TEST(BenchProfile, OfTheTreeCanBeReadAndUnknownOnesAreToldTheKnown) {
  EXPECT_EQ(load_profile("resnet50", HVD_BENCH_PROFILES).tensors.size(), 161U);
  EXPECT_THAT(refusal([] { load_profile("resnet", HVD_BENCH_PROFILES); }),
              HasSubstr("there is no profile 'resnet'; there are: bert-base, gpt2, resnet50, vit-b-16"));
  EXPECT_EQ(refusal([] { load_profile("/nowhere.json", HVD_BENCH_PROFILES); }), "there is no profile '/nowhere.json'");
}

TEST(BenchPattern, SumOfTheRanksInputsIsFoundRightAndAnyOtherWrong) {
  constexpr std::size_t count = 40'000;  // more than two periods
  constexpr unsigned repeat = 5;
  std::vector<std::int32_t> sum(count);
  std::vector<std::int32_t> values(count);
  for (int rank = 0; rank < 3; ++rank) {
    const Pattern pattern(DataType::i32, 3, rank);
    pattern.fill(values.data(), 0, count, repeat);
    pattern.check_values_of(rank, "values", values.data(), 0, count, repeat);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  const Pattern pattern(DataType::i32, 3, 0);
  pattern.check_sum("sum", sum.data(), 0, count, repeat);
  pattern.check_sum("sum", sum.data() + 20'000, 20'000, 7, repeat);
  EXPECT_THROW(pattern.check_sum("sum", sum.data(), 0, count, repeat + 1), std::runtime_error);
  sum[39'000] ^= 1;
  try {
    pattern.check_sum("packed", sum.data(), 0, count, repeat);
    FAIL() << "a wrong element was not seen";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "packed: wrong result at element 39000");
  }
}

TEST(BenchPattern, SumsAreExactInEveryMeasuredDtype) {
  for (const DataType dtype : {DataType::f16, DataType::bf16, DataType::f32, DataType::u8}) {
    constexpr int ranks = 16;
    std::vector<double> sum(Pattern::period);
    std::vector<std::byte> input(Pattern::period * size_of(dtype));
    const auto value_at = [&](const std::vector<std::byte>& data, std::size_t i) -> double {
      switch (dtype) {
        case DataType::f16:
          return static_cast<float>(reinterpret_cast<const float16*>(data.data())[i]);
        case DataType::bf16:
          return static_cast<float>(reinterpret_cast<const bfloat16*>(data.data())[i]);
        case DataType::f32:
          return reinterpret_cast<const float*>(data.data())[i];
        default:
          return reinterpret_cast<const std::uint8_t*>(data.data())[i];
      }
    };
    for (int rank = 0; rank < ranks; ++rank) {
      Pattern(dtype, ranks, rank).fill(input.data(), 0, Pattern::period, 1);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += value_at(input, i);
    }
    for (const double value : sum) ASSERT_LE(std::abs(value), dtype == DataType::u8 ? 255.0 : 256.0);
  }
}

}  // namespace
}  // namespace hvd::bench
