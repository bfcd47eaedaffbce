#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation/rank_groups.h"
#include "negotiation_world.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using History = std::vector<std::vector<std::string>>;

Request add_request(const std::string& ranks) { return bare_request(Operation::add_process_set, ranks); }

Request remove_request(int set) {
  Request request = bare_request(Operation::remove_process_set, std::to_string(set));
  request.root = set;
  return request;
}

// Four ranks; process set 1 is [0,1], set 2 is [2,3].
class ArbiterSets : public testing::Test {
 protected:
  ArbiterSets() : world(4, {.fusion_threshold = 1 << 20}, {{0, 1}, {2, 3}}) {}
  void submit_on(const std::vector<int>& ranks, const Request& request, const std::vector<std::int64_t>& extents = {}) {
    for (const int rank : ranks) world.submit(rank, request, extents);
    world.settle();
  }
  void report_and_receive(int rank) {
    while (world.can_report(rank)) world.report(rank);
    while (world.can_receive(rank)) world.receive(rank);
  }
  NegotiationWorld world;
};

TEST_F(ArbiterSets, EqualNamesInUnlikeSetsAreUnlikeOperations) {
  for (const int rank : {0, 1}) world.submit(rank, float_request("x", 4, 1));
  for (const int rank : {2, 3}) world.submit(rank, float_request("x", 7, 2));
  world.settle();
  world.submit(0, float_request("x"));
  world.settle();
  EXPECT_EQ(world.ran(1)[0].process_set, 1U);
  EXPECT_EQ(world.ran(3)[0].process_set, 2U);
  EXPECT_EQ(world.ran(0).size(), 1U);
  EXPECT_TRUE(world.in_flight(0, "0:x"));
}

TEST_F(ArbiterSets, AMismatchNamesTheSet) {
  world.submit(2, float_request("x", 4, 2));
  world.submit(3, float_request("x", 5, 2));
  world.settle();
  EXPECT_EQ(world.failures(2).at("x").text,
            "allreduce 'x' process set 2: shapes differ: [2] float32[4]; [3] float32[5]");
}

TEST_F(ArbiterSets, EachSetIsHeldBackByItsOwnBatchesAndThoseWithoutTheRootByNone) {
  const auto submit_and_report = [&](const std::vector<int>& ranks, const std::string& name, std::uint32_t set) {
    for (const int rank : ranks) world.submit(rank, float_request(name, 4, set));
    for (const int rank : ranks) report_and_receive(rank);
    for (const int rank : ranks) report_and_receive(rank);
  };
  for (const char* name : {"a", "b", "c", "d"}) {
    submit_and_report({0, 1}, name, 1);
    submit_and_report({2, 3}, name, 2);
  }
  EXPECT_EQ(world.history(1), (History{{"a"}, {"b"}}));
  EXPECT_EQ(world.history(3), (History{{"a"}, {"b"}, {"c"}, {"d"}}));
  submit_and_report({0, 1, 2, 3}, "w", 0);
  EXPECT_EQ(world.history(0), (History{{"a"}, {"b"}, {"w"}}));
  world.finish_batch();
  report_and_receive(1);
  EXPECT_EQ(world.history(1), (History{{"a"}, {"b"}, {"w"}, {"c", "d"}}));
}

TEST_F(ArbiterSets, AMessageConcernsItsTwoRanksAlone) {
  Request message = float_request("m");
  message.operation = Operation::send_recv;
  message.root = 3;
  message.peer = 1;
  submit_on({1, 3}, message);
  EXPECT_THAT(world.history(0), IsEmpty());
  EXPECT_EQ(world.history(1), (History{{"m"}}));
  EXPECT_EQ(world.history(3), (History{{"m"}}));
}

TEST_F(ArbiterSets, ASetThatIsAddedCanBeUsedAndOneThatIsRemovedCannot) {
  submit_on({0, 1, 2, 3}, add_request("[1,2]"), {1, 2});
  ASSERT_TRUE(world.ran(3).back().change);
  EXPECT_EQ(world.ran(3).back().change->id, 3U);
  EXPECT_THAT(world.ran(3).back().change->ranks, ElementsAre(1, 2));
  submit_on({1, 2}, float_request("x", 4, 3));
  EXPECT_EQ(world.ran(2).back().process_set, 3U);
  submit_on({0, 1, 2, 3}, remove_request(3));
  EXPECT_THAT(world.ran(0).back().change->ranks, IsEmpty());
  // The name is known to the root, and rank 1 has not heard.
  submit_on({1}, float_request("x", 4, 3));
  EXPECT_EQ(world.failures(1).at("x").code, ErrorCode::invalid_argument);
  EXPECT_EQ(world.failures(1).at("x").text, "allreduce 'x' process set 3: the process set does not exist any more");
  // Its rows are for the ranks of the set, of which the root knows no more.
  Request exchange = float_request("y", 2, 3);
  exchange.operation = Operation::alltoall;
  submit_on({1}, exchange, {1, 1});
  EXPECT_EQ(world.failures(1).at("y").code, ErrorCode::invalid_argument);
}

TEST_F(ArbiterSets, WhatIsReportedToASetThatIsNoMoreFailsOnEachRankThatReportsIt) {
  for (const int rank : {0, 1, 2, 3}) world.submit(rank, remove_request(2));
  for (const int rank : {0, 1, 2, 3}) world.report(rank);
  for (const int rank : {2, 3}) world.submit(rank, float_request("new", 4, 2));
  world.settle();
  for (const int rank : {2, 3}) {
    ASSERT_TRUE(world.failures(rank).contains("new"));
    EXPECT_EQ(world.failures(rank).at("new").code, ErrorCode::invalid_argument);
  }
}

TEST_F(ArbiterSets, ARemovedSetEndsWithWhatIsReadyThenTheChangeThenTheFailureOfTheRest) {
  for (const char* name : {"a", "b", "c"}) {
    for (const int rank : {0, 1}) {
      world.submit(rank, float_request(name, 4, 1));
      world.report(rank);
    }
  }
  world.submit(1, float_request("half", 4, 1));
  world.submit(1, join_request(1));
  for (const int rank : {0, 1, 2, 3}) world.submit(rank, remove_request(1));
  for (const int rank : {3, 2, 1, 0}) report_and_receive(rank);
  report_and_receive(1);
  EXPECT_EQ(world.history(1), (History{{"a"}, {"b"}, {"c"}, {"1"}}));
  for (const char* name : {"half", "join"}) {
    EXPECT_EQ(world.failures(1).at(name).code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(world.failures(1).at("half").text, "allreduce 'half' process set 1: the process set has been removed");
  world.settle();
  submit_on({0, 1, 2, 3}, float_request("w"));
  EXPECT_EQ(world.history(1).back(), std::vector<std::string>{"w"});
}

TEST_F(ArbiterSets, AChangeThatIsNoneFailsOnAllRanks) {
  submit_on({0, 1, 2, 3}, add_request("[0,1]"), {0, 1});
  submit_on({0, 1, 2, 3}, remove_request(9));
  for (const int rank : {0, 3}) {
    EXPECT_EQ(world.failures(rank).at("[0,1]").text, "add_process_set '[0,1]': process set 1 has the same ranks");
    EXPECT_EQ(world.failures(rank).at("9").text, "remove_process_set '9': there is no such process set");
  }
}

TEST_F(ArbiterSets, RanksThatBlockInMakingUnlikeSetsFailAfterAWhile) {
  const std::vector<std::vector<int>> sets{{0, 2}, {0, 2}, {1, 3}, {0, 3}};
  for (const int rank : {0, 1, 2, 3}) {
    const auto& ranks = sets[static_cast<std::size_t>(rank)];
    const Request request = add_request(format_ranks(ranks));
    world.submit(rank, request, {ranks.begin(), ranks.end()});
    world.block(rank, request);
  }
  world.settle();
  const auto warnings = world.arbiter().take_warnings();
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0], StartsWith("these ranks wait for each other: rank 0 waits in add_process_set '[0,2]' for "));
  ASSERT_EQ(world.arbiter().deadline(), world.now + 2s);
  world.now += 2s;
  world.tick();
  world.settle();
  for (const int rank : {0, 1, 2, 3}) {
    const Failure failure = world.failures(rank).begin()->second;
    EXPECT_EQ(failure.code, ErrorCode::mismatch);
    EXPECT_EQ(failure.text, "add_process_set: ranks of the set differ: [0,1] [0,2]; [2] [1,3]; [3] [0,3]");
  }
  EXPECT_FALSE(world.arbiter().deadline());
}

TEST_F(ArbiterSets, RanksThatComeRoundInTimeMakeBothSets) {
  for (const auto& [rank, name] : {std::pair(0, "[0,2]"), std::pair(1, "[1,3]")}) {
    world.submit(rank, add_request(name), {rank, rank + 2});
    world.block(rank, add_request(name));
  }
  world.settle();
  ASSERT_TRUE(world.arbiter().deadline());
  submit_on({1, 2, 3}, add_request("[0,2]"), {0, 2});  // another thread of rank 1
  world.now += 3s;
  world.tick();
  world.settle();
  EXPECT_THAT(world.failures(1), IsEmpty());
  submit_on({0, 2, 3}, add_request("[1,3]"), {1, 3});
  EXPECT_EQ(world.history(0), (History{{"[0,2]"}, {"[1,3]"}}));
}

TEST_F(ArbiterSets, RanksThatWaitForEachOtherAreWarnedOfOnce) {
  for (int round = 0; round < 2; ++round) {
    world.submit(0, float_request("a", 4, 1));
    world.submit(1, float_request("b", 4, 1));
    world.block(0, float_request("a", 4, 1));
    world.block(1, float_request("b", 4, 1));
    world.settle();
    EXPECT_EQ(world.arbiter().take_warnings().size(), round == 0 ? 1U : 0U);
    submit_on({0}, float_request("b", 4, 1));
    submit_on({1}, float_request("a", 4, 1));
  }
  EXPECT_THAT(world.failures(0), IsEmpty());
}

TEST_F(ArbiterSets, ARankWhoseOperationIsCancelledIsBlockedInItNoMore) {
  world.submit(0, float_request("a"));
  world.submit(1, float_request("a"));
  world.settle();
  world.block(0, float_request("a"));
  world.settle();
  world.cancel(0, float_request("a"));
  world.settle();
  EXPECT_EQ(world.failures(0).at("a").text, "allreduce 'a': cancelled");
  EXPECT_TRUE(world.in_flight(1, "0:a"));
  world.block(1, float_request("a"));
  world.settle();
  EXPECT_THAT(world.arbiter().take_warnings(), IsEmpty());
  submit_on({0, 2, 3}, float_request("a"));
  EXPECT_EQ(world.history(1), (History{{"a"}}));
}

}  // namespace
}  // namespace hvd
