#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "negotiation/fuser.h"

namespace hvd {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

Batches fuse_sizes(const std::vector<std::int64_t>& bytes, std::int64_t threshold) {
  const Request request;
  std::vector<Fusable> tensors;
  for (const std::int64_t size : bytes) tensors.push_back({&request, size});
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

TEST(Fuser, OnlyTensorsThatNeedTheSameWorkShareABatch) {
  const Request plain;
  const auto changed = [&](auto change) {
    Request request = plain;
    change(request);
    return request;
  };
  EXPECT_TRUE(may_fuse(plain, changed([](Request& r) { r.shape = Shape{3, 4}; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.process_set = 1; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.operation = Operation::broadcast; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.dtype = DataType::f16; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.device = Device::Kind::gpu; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.reduce_op = ReduceOp::max; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.prescale = 2; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.postscale = 2; })));
  EXPECT_FALSE(may_fuse(plain, changed([](Request& r) { r.root = 1; })));
  const Request barrier = changed([](Request& r) { r.operation = Operation::barrier; });
  EXPECT_FALSE(may_fuse(barrier, barrier));
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
