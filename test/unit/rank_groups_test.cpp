#include "negotiation/rank_groups.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hvd {
namespace {

TEST(FormatRanks, lists_single_ranks_in_order_without_duplicates) {
  EXPECT_EQ(format_ranks(std::vector<int>{}), "[]");
  EXPECT_EQ(format_ranks(std::vector<int>{7}), "[7]");
  EXPECT_EQ(format_ranks(std::vector<int>{3, 0, 2, 0}), "[0,2,3]");
}

TEST(FormatRanks, keeps_single_ranks_up_to_sixteen) {
  std::vector<int> ranks(16);
  std::iota(ranks.begin(), ranks.end(), 0);
  EXPECT_EQ(format_ranks(ranks), "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]");
  ranks.push_back(16);
  EXPECT_EQ(format_ranks(ranks), "[0-16]");
}

TEST(FormatRanks, abbreviates_only_runs_of_three_or_more) {
  std::vector<int> ranks{0, 1, 2, 4, 5, 7};
  for (int rank = 9; rank <= 30; ++rank) ranks.push_back(rank);
  EXPECT_EQ(format_ranks(ranks), "[0-2,4,5,7,9-30]");
}

TEST(RankGroups, agree_when_empty_single_or_equal) {
  RankGroups groups;
  EXPECT_TRUE(groups.agree());
  EXPECT_EQ(groups.to_string(), "");
  groups.add(1, "float32");
  EXPECT_TRUE(groups.agree());
  groups.add(0, "float32");
  EXPECT_TRUE(groups.agree());
  EXPECT_EQ(groups.to_string(), "[0,1] float32");
}

TEST(RankGroups, are_ordered_by_their_smallest_rank_whatever_the_order_of_arrival) {
  RankGroups groups;
  groups.add(2, "64 MiB");
  groups.add(3, "128 MiB");
  groups.add(0, "128 MiB");
  groups.add(1, "128 MiB");
  EXPECT_FALSE(groups.agree());
  EXPECT_EQ(groups.to_string(), "[0,1,3] 128 MiB; [2] 64 MiB");
}

TEST(RankGroups, take_the_later_value_of_a_rank) {
  RankGroups groups;
  groups.add(0, "a");
  groups.add(1, "b");
  groups.add(1, "a");
  EXPECT_TRUE(groups.agree());
}

}  // namespace
}  // namespace hvd
