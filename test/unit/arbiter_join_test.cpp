#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

using History = std::vector<std::vector<std::string>>;
using Extents = std::vector<std::vector<std::int64_t>>;

// Three ranks, the last of which has joined; process set 1 is [0,1], set 2 is [1,2].
class Join : public testing::Test {
 protected:
  Join() : world(3, {.fusion_threshold = 1 << 20}, {{0, 1}, {1, 2}}) {
    world.submit(2, join_request());
    world.settle();
  }
  void submit_on(const std::vector<int>& ranks, const Request& request, const std::vector<std::int64_t>& extents = {}) {
    for (const int rank : ranks) world.submit(rank, request, extents);
    world.settle();
  }
  void expect_failed(int rank, const std::string& name, const std::string& text) const {
    ASSERT_TRUE(world.failures(rank).contains(name)) << "rank " << rank;
    EXPECT_EQ(world.failures(rank).at(name).text, text);
    EXPECT_EQ(world.failures(rank).at(name).code, ErrorCode::mismatch);
  }
  NegotiationWorld world;
};

Request request_of(Operation operation, const std::string& name = "x") {
  Request request = float_request(name);
  request.operation = operation;
  if (operation == Operation::scatter || operation == Operation::barrier) request.tensors.clear();
  return request;
}

TEST_F(Join, ARankThatHasJoinedCountsAsReadyAndHearsWhatTheOthersDo) {
  for (const Operation operation :
       {Operation::allreduce, Operation::reduce, Operation::reduce_scatter, Operation::broadcast, Operation::barrier}) {
    SCOPED_TRACE(to_string(operation));
    submit_on({0, 1}, request_of(operation, std::string(to_string(operation))));
    for (const int rank : {0, 1, 2}) {
      ASSERT_FALSE(world.ran(rank).empty());
      const auto& batch = world.ran(rank).back();
      EXPECT_EQ(batch.names, std::vector{std::string(to_string(operation))});
      EXPECT_EQ(batch.absent, std::vector{2});
    }
  }
}

TEST_F(Join, ItHasNoRows) {
  Request gather = request_of(Operation::allgather);
  gather.tensors.push_back(gather.tensors[0]);
  submit_on({0, 1}, gather, {3, 4});
  EXPECT_EQ(world.ran(2).back().extents[0], (Extents{{3, 4}, {3, 4}, {0, 0}}));
  submit_on({0, 1}, request_of(Operation::gather, "y"), {5});
  EXPECT_EQ(world.ran(2).back().extents[0], (Extents{{5}, {5}, {0}}));
  submit_on({0, 1}, request_of(Operation::alltoall, "z"), {2, 2, 0});
  EXPECT_EQ(world.ran(1).back().extents[0], (Extents{{2, 2, 0}, {2, 2, 0}, {0, 0, 0}}));
}

TEST_F(Join, AScatterHandsItTheLayout) {
  const auto layout = encode_scatter(
      std::vector<ScatterLayout>{{.tensor = {.dtype = DataType::i8, .shape = Shape{2, 5}}, .splits = {1, 1, 0}}});
  world.submit(0, request_of(Operation::scatter), layout);
  world.submit(1, request_of(Operation::scatter));
  world.settle();
  EXPECT_EQ(world.ran(2).back().extents[0], Extents{layout});
}

TEST_F(Join, RowsThatAreSentToItAreAnErrorThatNamesTheSenders) {
  world.submit(0, request_of(Operation::alltoall), {2, 1, 1});
  world.submit(1, request_of(Operation::alltoall), {2, 2, 0});
  world.settle();
  for (const int rank : {0, 1}) {
    expect_failed(rank, "x", "alltoall 'x': rank 2 has joined and is sent rows: [0] 1 rows");
  }
  EXPECT_TRUE(world.in_flight(2, "0|join"));
}

TEST_F(Join, ARootThatHasJoinedFailsOnBothSides) {
  for (const Operation operation : {Operation::broadcast, Operation::reduce, Operation::gather, Operation::scatter}) {
    SCOPED_TRACE(to_string(operation));
    Request request = request_of(operation);
    request.root = 2;
    submit_on({0, 1}, request,
              operation == Operation::gather ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{});
    const std::string text = std::string(to_string(operation)) + " 'x': its root rank 2 has joined";
    for (const int rank : {0, 1}) expect_failed(rank, "x", text);
    expect_failed(2, "join", text);
    world.submit(2, join_request());
    world.settle();
  }
}

TEST_F(Join, MessagesAndChangesOfSetsCannotGoOnWithoutIt) {
  Request message = request_of(Operation::send_recv, "m");
  message.root = 1;
  message.peer = 2;
  submit_on({1}, message);
  expect_failed(1, "m", "send/recv 'm': rank 2 has joined and takes no part");
  submit_on({0}, bare_request(Operation::add_process_set, "[0,2]"), {0, 2});
  expect_failed(0, "[0,2]", "add_process_set '[0,2]': rank 2 has joined and takes no part");
}

TEST_F(Join, FailsWhatWasWaitingForItWhenItCannotBeServed) {
  NegotiationWorld other(2);
  Request request = request_of(Operation::broadcast);
  request.root = 1;
  other.submit(0, request);
  other.settle();
  other.submit(1, join_request());
  other.settle();
  for (const auto& [rank, name] : {std::pair(0, "x"), std::pair(1, "join")}) {
    EXPECT_EQ(other.failures(rank).at(name).text, "broadcast 'x': its root rank 1 has joined");
  }
}

TEST_F(Join, WhoseOwnJoinFailsAtOnceLeavesAnotherRanksJoinAlone) {
  NegotiationWorld other(3, {}, {{1, 2}});
  Request request = request_of(Operation::broadcast);
  request.root = 1;
  other.submit(2, join_request(1));
  other.submit(0, request);
  other.submit(2, request);
  other.report(0);
  other.report(2);
  other.submit(1, join_request());
  other.settle();
  EXPECT_TRUE(other.failures(1).contains("join"));
  EXPECT_TRUE(other.in_flight(2, "1|join"));
  other.submit(1, join_request(1));
  other.settle();
  EXPECT_FALSE(other.in_flight(2, "1|join"));
}

TEST_F(Join, TheOthersMustStillAgree) {
  world.submit(0, float_request("x", 4));
  world.submit(1, float_request("x", 5));
  world.settle();
  for (const int rank : {0, 1}) {
    expect_failed(rank, "x", "allreduce 'x': shapes differ: [0] float32[4]; [1] float32[5]");
  }
}

TEST_F(Join, ServesTheSetsWithinAndNoOthers) {
  submit_on({1}, float_request("x", 4, 2));
  EXPECT_EQ(world.history(1), (History{{"x"}}));
  EXPECT_EQ(world.ran(2).back().absent, std::vector{2});
  EXPECT_EQ(world.ran(2).back().process_set, 2U);
  submit_on({0}, float_request("y", 4, 1));
  EXPECT_TRUE(world.in_flight(0, "1:y"));

  NegotiationWorld other(3, {}, {{0, 1}, {1, 2}});
  other.submit(2, join_request(2));
  for (const int rank : {0, 1}) other.submit(rank, float_request("z"));
  other.settle();
  EXPECT_TRUE(other.in_flight(0, "0:z"));
}

TEST_F(Join, EndsOnceAllHaveJoinedAndNamesTheLast) {
  submit_on({0}, join_request());
  EXPECT_TRUE(world.in_flight(0, "0|join"));
  submit_on({1}, join_request());
  for (const int rank : {0, 1, 2}) {
    EXPECT_FALSE(world.in_flight(rank, "0|join"));
    EXPECT_EQ(world.ran(rank).back().extents[0], Extents{{1}});
  }
  submit_on({0, 1}, float_request("x"));
  EXPECT_TRUE(world.in_flight(0, "0:x"));
  submit_on({2}, float_request("x"));
  EXPECT_EQ(world.history(2).back(), std::vector<std::string>{"x"});
  EXPECT_TRUE(world.ran(2).back().absent.empty());
}

TEST_F(Join, OfASmallerSetEndsWithTheHelpOfOneThatHasJoinedALargerOne) {
  submit_on({1}, join_request(2));
  EXPECT_FALSE(world.in_flight(1, "2|join"));
  EXPECT_EQ(world.ran(1).back().extents[0], Extents{{1}});
  EXPECT_TRUE(world.in_flight(2, "0|join"));
}

TEST_F(Join, CompletesWhatLackedTheLastRankBeforeTheJoinItselfEnds) {
  submit_on({0}, float_request("x"));
  submit_on({0}, join_request());
  submit_on({1}, join_request());
  EXPECT_EQ(world.history(2), (History{{"x"}, {"join"}}));
  EXPECT_EQ(world.ran(0)[0].absent, (std::vector{1, 2}));
  EXPECT_EQ(world.history(0), world.history(2));
}

TEST_F(Join, ThatIsCancelledMakesTheRankCountAgain) {
  world.cancel(2, join_request());
  world.settle();
  EXPECT_EQ(world.failures(2).at("join").code, ErrorCode::cancelled);
  submit_on({0, 1}, float_request("x"));
  EXPECT_TRUE(world.in_flight(0, "0:x"));
  submit_on({2}, float_request("x"));
  EXPECT_FALSE(world.in_flight(0, "0:x"));
}

// Complete, but held back while batches are under way: by the time it runs, its ranks might have joined no more.
TEST_F(Join, WhatRunsWithoutARankRunsBeforeThatRanksJoinCanEnd) {
  NegotiationWorld other(2, {.fusion_threshold = 0});
  const auto step = [&other](int rank) {
    while (other.can_report(rank)) other.report(rank);
    while (other.can_receive(rank)) other.receive(rank);
  };
  for (const char* name : {"a", "b"}) {
    for (const int rank : {0, 1}) other.submit(rank, float_request(name));
  }
  step(0);
  step(1);
  other.submit(0, float_request("x"));
  other.submit(1, join_request());
  step(0);
  step(1);
  other.cancel(1, join_request());
  step(1);
  other.submit(1, float_request("x"));
  step(1);
  step(0);
  other.settle();
  EXPECT_EQ(other.history(0), (History{{"a"}, {"b"}, {"x"}}));
  EXPECT_TRUE(other.in_flight(1, "0:x"));
  other.submit(0, float_request("x"));
  other.settle();
  EXPECT_EQ(other.history(1), (History{{"a"}, {"b"}, {"x"}, {"x"}}));
}

}  // namespace
}  // namespace hvd
