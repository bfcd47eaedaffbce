#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "negotiation/fuser.h"

namespace hvd {
namespace {

using Batches = List<List<std::size_t>>;

Batches fuse_sizes(const std::vector<std::int64_t>& bytes, std::int64_t threshold) {
  Request request;
  request.tensors.push_back({});
  List<Fusable> tensors;
  for (const std::int64_t size : bytes) tensors.push_back({.request = &request, .bytes = size, .absent = {}});
  return fuse(tensors, threshold);
}

TEST(Fuser, R56_FillsABatchUpToTheThresholdAndNoFurther) {
  EXPECT_EQ(fuse_sizes({40, 40, 40, 40}, 100), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(fuse_sizes({50, 50, 1}, 100), (Batches{{0, 1}, {2}}));
}

TEST(Fuser, TakesLaterTensorsThatFitBesideALargeOne) {
  EXPECT_EQ(fuse_sizes({60, 60, 40}, 100), (Batches{{0, 2}, {1}}));
}

TEST(Fuser, ATensorAboveTheThresholdIsABatchOfItsOwn) {
  EXPECT_EQ(fuse_sizes({500, 10, 10}, 100), (Batches{{0}, {1, 2}}));
}

TEST(Fuser, AThresholdOfZeroFusesNothing) { EXPECT_EQ(fuse_sizes({0, 1, 1}, 0), (Batches{{0}, {1}, {2}})); }

TEST(Fuser, EmptyTensorsRideAlong) { EXPECT_EQ(fuse_sizes({0, 0, 90, 0}, 100), (Batches{{0, 1, 2, 3}})); }

Request plain() {
  Request request;
  request.tensors.push_back({.dtype = DataType::f32, .shape = Shape{4}});
  return request;
}

bool fuses_with_plain(void (*change)(Request&)) {
  const Request one = plain();
  Request other = plain();
  change(other);
  return may_fuse({.request = &one, .bytes = 0, .absent = {}}, {.request = &other, .bytes = 0, .absent = {}});
}

TEST(Fuser, OnlyOperationsThatNeedTheSameWorkShareABatch) {
  EXPECT_TRUE(fuses_with_plain([](Request& r) { r.tensors[0].shape = Shape{3, 4}; }));
  EXPECT_TRUE(fuses_with_plain([](Request& r) { r.timeout = 3; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.process_set = 1; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.operation = Operation::broadcast; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.tensors[0].dtype = DataType::f16; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.device = Device::Kind::gpu; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.reduce_op = ReduceOp::max; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.prescale = 2; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.postscale = 2; }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.root = 1; }));
}

TEST(Fuser, AGroupSharesABatchUnlessItsDtypesDiffer) {
  EXPECT_TRUE(fuses_with_plain([](Request& r) { r.tensors.push_back(r.tensors[0]); }));
  EXPECT_FALSE(fuses_with_plain([](Request& r) { r.tensors.push_back({.dtype = DataType::f64, .shape = Shape{4}}); }));
}

TEST(Fuser, OperationsThatLackUnlikeRanksStayApart) {
  const Request request = plain();
  const Fusable all{.request = &request, .bytes = 0, .absent = {}};
  const Fusable without_two{.request = &request, .bytes = 0, .absent = {2}};
  EXPECT_FALSE(may_fuse(all, without_two));
  EXPECT_FALSE(may_fuse(without_two, all));
  EXPECT_TRUE(may_fuse(without_two, without_two));
}

TEST(Fuser, WhatMovesNothingOrIsNoCollectiveOnABufferStaysAlone) {
  for (std::uint8_t i = 0; i < operation_count; ++i) {
    Request request = plain();
    request.operation = static_cast<Operation>(i);
    const bool fuses = request.operation < Operation::scatter || request.operation == Operation::alltoall;
    const Fusable fusable{.request = &request, .bytes = 0, .absent = {}};
    EXPECT_EQ(may_fuse(fusable, fusable), fuses) << to_string(request.operation);
    request.tensors.clear();
    EXPECT_FALSE(may_fuse(fusable, fusable)) << to_string(request.operation);
  }
}

TEST(Fuser, PutsEveryTensorIntoExactlyOneBatchAndKeepsTheOrderWithin) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> sizes(random() % 40);
    for (auto& size : sizes) size = static_cast<std::int64_t>(random() % 120);
    std::vector<std::size_t> seen;
    for (const auto& batch : fuse_sizes(sizes, 100)) {
      EXPECT_TRUE(std::ranges::is_sorted(batch));
      std::int64_t total = 0;
      for (const std::size_t i : batch) total += sizes[i];
      EXPECT_TRUE(batch.size() == 1 || total <= 100);
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    std::ranges::sort(seen);
    std::vector<std::size_t> all(sizes.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(seen, all);
  }
}

}  // namespace
}  // namespace hvd
