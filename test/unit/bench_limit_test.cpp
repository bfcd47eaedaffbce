#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "limit/combine.h"
#include "limit/segments.h"

namespace hvd::bench::limit {
namespace {

TEST(BenchLimit, CombineStoresTheSumInEveryDestinationAtAnyLengthAndAlignment) {
  for (const std::size_t count : {0U, 1U, 15U, 63U, 64U, 65U, 1000U}) {
    for (const std::size_t shift : {0U, 1U, 16U}) {
      for (const bool streamed : {false, true}) {
        std::vector<float> a(count + shift + 1);
        std::iota(a.begin(), a.end(), 1.0F);
        const std::vector<float> b(count + shift, 0.5F);
        std::vector<float> first(count + shift + 1, -1.0F);
        std::vector<float> second(count + 1, -1.0F);
        const std::array<const float*, 3> sources{a.data() + shift, b.data() + shift, a.data()};
        const std::array<float*, 2> destinations{first.data() + shift, second.data()};
        combine(sources, destinations, count, streamed);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(first[shift + i], a[shift + i] + 0.5F + a[i]);
          ASSERT_EQ(second[i], first[shift + i]);
        }
        EXPECT_EQ(first[shift + count], -1.0F);
        EXPECT_EQ(second[count], -1.0F);
      }
    }
  }
}

TEST(BenchLimit, CombineMayStoreWhereItReads) {
  std::vector<float> a(1000, 1.0F);
  std::vector<float> b(1000, 2.0F);
  const std::array<const float*, 2> sources{a.data(), b.data()};
  const std::array<float*, 2> destinations{a.data(), b.data()};
  combine(sources, destinations, a.size(), false);
  EXPECT_EQ(a, std::vector<float>(1000, 3.0F));
  EXPECT_EQ(b, a);
}

TEST(BenchLimit, SharesAreWholeLinesAndCoverEverything) {
  for (const std::size_t count : {0U, 5U, 16U, 1000U, 262144U}) {
    for (const int size : {1, 2, 3, 7}) {
      EXPECT_EQ(share(count, 0, size), 0U);
      EXPECT_EQ(share(count, size, size), count);
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_LE(share(count, rank, size), share(count, rank + 1, size));
        EXPECT_EQ(share(count, rank, size) % 16, 0U);
      }
    }
  }
}

// The elements [begin, end) of tensors that are numbered through, by walking.
std::vector<float> walked(Walk& walk, std::size_t begin, std::size_t end) {
  std::vector<float> seen(end - begin, -1.0F);
  walk.each(begin, end, [&](const Segment& segment, std::size_t offset, std::size_t done, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) seen[done + i] = segment.input[offset + i];
  });
  return seen;
}

TEST(BenchLimit, WalkSeesEveryElementOnceForwardsAndBackwards) {
  std::vector<float> all(100);
  std::iota(all.begin(), all.end(), 0.0F);
  std::vector<Segment> segments;
  std::size_t at = 0;
  for (const std::size_t count : {1U, 0U, 30U, 9U, 0U, 60U, 0U}) {
    segments.push_back({all.data() + at, nullptr, count});
    at += count;
  }
  ASSERT_EQ(total(segments), all.size());
  Walk walk(segments);
  for (std::size_t begin = 0; begin <= all.size(); ++begin) {
    for (std::size_t end = begin; end <= all.size(); ++end) {
      ASSERT_EQ(walked(walk, begin, end), std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                                             all.begin() + static_cast<std::ptrdiff_t>(end)));
      ASSERT_EQ(walked(walk, 0, 1).front(), 0.0F);
    }
  }
}

}  // namespace
}  // namespace hvd::bench::limit
