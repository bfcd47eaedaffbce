#include <gtest/gtest.h>

#include "negotiation/process_sets.h"

namespace hvd {
namespace {

TEST(ProcessSets, NumberZeroIsThatOfAllRanksAndTheOthersFollowInOrder) {
  const ProcessSets sets(4, {{0, 1}, {1, 3}});
  EXPECT_EQ(sets.find(0)->ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(sets.find(1)->ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(sets.find(2)->ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(sets.find(3), nullptr);
  EXPECT_EQ(sets.all().size(), 3U);
}

TEST(ProcessSets, SayWhyRanksCannotBecomeASet) {
  const ProcessSets sets(4, {{0, 1}});
  EXPECT_EQ(sets.problem_with({0, 2}), "");
  EXPECT_EQ(sets.problem_with({3}), "");
  EXPECT_EQ(sets.problem_with({}), "it has no ranks");
  EXPECT_EQ(sets.problem_with({2, 4}), "rank 4 is not in 0..3");
  EXPECT_EQ(sets.problem_with({-1, 2}), "rank -1 is not in 0..3");
  EXPECT_EQ(sets.problem_with({1, 2, 2}), "rank 2 is in it twice");
  EXPECT_EQ(sets.problem_with({0, 1}), "process set 1 has the same ranks");
  EXPECT_EQ(sets.problem_with({0, 1, 2, 3}), "process set 0 has the same ranks");
}

TEST(ProcessSets, ANumberIsNeverUsedAgainAndAChannelOnlyAfterAllOthers) {
  ProcessSets sets(4, {{0, 1}, {1, 2}});
  EXPECT_EQ(sets.find(1)->channel, 1U);
  EXPECT_EQ(sets.find(2)->channel, 2U);
  sets.remove(1);
  EXPECT_EQ(sets.find(1), nullptr);
  EXPECT_EQ(sets.add({0, 1}), 3U);
  EXPECT_EQ(sets.find(3)->channel, 3U);
  for (std::uint32_t channel = 4; channel < ProcessSets::most_channels; ++channel) {
    const std::uint32_t id = sets.add({2, 3});
    EXPECT_EQ(sets.find(id)->channel, channel);
    sets.remove(id);
  }
  EXPECT_EQ(sets.find(sets.add({2, 3}))->channel, 1U);
}

TEST(ProcessSets, ThereAreAsManyAsThereAreChannels) {
  ProcessSets sets(2000, {});
  for (int rank = 0; sets.all().size() < ProcessSets::most_channels; ++rank) {
    ASSERT_EQ(sets.problem_with({rank}), "");
    sets.add({rank});
  }
  EXPECT_EQ(sets.problem_with({1999}), "there are 1024 process sets already");
  sets.remove(7);
  EXPECT_EQ(sets.problem_with({1999}), "");
  EXPECT_EQ(sets.find(sets.add({1999}))->channel, 7U);
}

TEST(ProcessSets, OneContainsAnotherWhenItHasAllItsRanks) {
  const ProcessSets sets(4, {{0, 1}, {0, 1, 3}, {1, 2}});
  EXPECT_TRUE(sets.contains(0, 3));
  EXPECT_TRUE(sets.contains(2, 1));
  EXPECT_TRUE(sets.contains(1, 1));
  EXPECT_FALSE(sets.contains(1, 2));
  EXPECT_FALSE(sets.contains(2, 3));
  EXPECT_FALSE(sets.contains(1, 0));
  EXPECT_FALSE(sets.contains(1, 9));
}

TEST(ProcessSets, ARankHasItsPositionAmongSortedRanks) {
  EXPECT_EQ(position_in({1, 3, 7}, 1), 0U);
  EXPECT_EQ(position_in({1, 3, 7}, 7), 2U);
  EXPECT_EQ(position_in({1, 3, 7}, 4), std::nullopt);
  EXPECT_EQ(position_in({1, 3, 7}, 9), std::nullopt);
  EXPECT_EQ(position_in({}, 0), std::nullopt);
}

}  // namespace
}  // namespace hvd
