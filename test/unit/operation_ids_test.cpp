#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

OperationState state_of(const std::string& key) {
  OperationState state;
  state.key = key;
  state.participants = {0, 1};
  state.reported.resize(2);
  state.last.resize(2);
  return state;
}

TEST(OperationIds, EachKeyHasANumberFromOneOn) {
  OperationIds ids(2, 8);
  EXPECT_FALSE(ids.valid(0));
  EXPECT_EQ(ids.find("a"), 0U);
  EXPECT_EQ(ids.add(state_of("a")), 1U);
  EXPECT_EQ(ids.add(state_of("b")), 2U);
  EXPECT_EQ(ids.find("a"), 1U);
  EXPECT_TRUE(ids.valid(2));
  EXPECT_FALSE(ids.valid(3));
}

TEST(OperationIds, TheLeastRecentlyUsedOnesAreEvictedButNoneThatIsInUse) {
  OperationIds ids(2, 3);
  for (const char* key : {"a", "b", "c"}) ids.add(state_of(key));
  EXPECT_TRUE(ids.evict(1).empty());
  ids.start_use(1);
  ids.end_use(1);
  ids.start_use(2);
  ids.add(state_of("d"));
  EXPECT_EQ(ids.evict(1), List<std::uint32_t>{3});
  EXPECT_EQ(ids.find("c"), 0U);
  EXPECT_EQ(ids.find("a"), 1U);
  ids.start_use(1);
  ids.start_use(4);
  ids.add(state_of("e"));
  ids.start_use(5);
  EXPECT_TRUE(ids.evict(2).empty());  // more than the capacity, all in use
  ids.end_use(2);
  EXPECT_EQ(ids.evict(3), List<std::uint32_t>{2});
}

TEST(OperationIds, AnEighthIsEvictedAtATime) {
  OperationIds ids(1, 16);
  for (int i = 0; i < 17; ++i) ids.add(state_of(std::to_string(i)));
  EXPECT_EQ(ids.evict(1), (List<std::uint32_t>{1, 2, 3}));
}

TEST(OperationIds, AnEvictedNumberIsUsedAgainOnceAllRanksHaveSeenThatPlan) {
  OperationIds ids(2, 1);
  ids.add(state_of("a"));
  ids.add(state_of("b"));
  EXPECT_EQ(ids.evict(7), List<std::uint32_t>{1});
  EXPECT_TRUE(ids.valid(1));  // a tombstone: what it stood for is still known
  EXPECT_EQ(ids[1].key, "a");
  ids.on_seen(0, 7);
  ids.on_seen(1, 6);
  EXPECT_EQ(ids.add(state_of("a")), 3U);
  ids.on_seen(1, 9);
  EXPECT_FALSE(ids.valid(1));
  EXPECT_EQ(ids.add(state_of("c")), 1U);
}

TEST(OperationIds, AStateForgetsWhatNoRankCanReferToAnyMore) {
  OperationState state = state_of("a");
  for (const std::uint64_t print : {1, 2, 3}) state.said.emplace(print, float_request("a"));
  state.reported = {2, 3};
  state.last = {2, 3};
  state.count = 2;
  EXPECT_EQ(state.ranks(true), (std::vector<int>{0, 1}));
  state.reset();
  EXPECT_EQ(state.ranks(false), (std::vector<int>{0, 1}));
  EXPECT_FALSE(state.said.contains(1));
  EXPECT_TRUE(state.said.contains(2));
  EXPECT_TRUE(state.said.contains(3));
}

// Two ranks and room for one operation, which is "b".
class Evicted : public testing::Test {
 protected:
  Evicted() : world(2, {.fusion_threshold = 0, .cache_capacity = 1}) {
    for (const char* name : {"a", "b"}) run(name);
  }
  void run(const char* name) {
    for (const int rank : {0, 1}) world.submit(rank, float_request(name));
    world.settle();
  }
  // Rank 1 submits "b" by its number, while the plan that takes it back is under way to it.
  void evict_unseen_by_rank_1() {
    world.submit(0, float_request("c"));
    world.report(0);
    world.submit(1, float_request("b"));
  }
  NegotiationWorld world;
};

TEST_F(Evicted, RunsAgainUnderANewNumber) {
  run("a");
  EXPECT_EQ(world.history(0), (std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"a"}}));
  EXPECT_EQ(world.history(1), world.history(0));
  EXPECT_EQ(world.full_requests(), 6U);
  EXPECT_EQ(world.evictions(1), 2U);
}

TEST_F(Evicted, IsUnderstoodFromARankThatDidNotKnowYet) {
  evict_unseen_by_rank_1();
  world.settle();
  world.submit(0, float_request("b"));
  world.settle();
  for (const int rank : {0, 1}) EXPECT_EQ(world.history(rank).back(), (std::vector<std::string>{"b"}));
  EXPECT_FALSE(world.in_flight(1, "0:b"));
}

TEST_F(Evicted, CanBeCancelledByARankThatDidNotKnowYet) {
  evict_unseen_by_rank_1();
  world.cancel(1, float_request("b"));
  world.settle();
  ASSERT_TRUE(world.failures(1).contains("b"));
  EXPECT_EQ(world.failures(1).at("b").code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace hvd
