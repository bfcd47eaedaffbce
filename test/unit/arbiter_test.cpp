#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void submit_all(NegotiationWorld& world, const Request& request) {
  for (int rank = 0; rank < world.size(); ++rank) world.submit(rank, request);
  world.settle();
}

TEST(Arbiter, R11_UnequalShapesAreAnErrorOnEveryRankThatNamesThemAll) {
  NegotiationWorld world(4);
  for (const int rank : {0, 1, 2, 3}) world.submit(rank, float_request("w", rank == 1 ? 5 : 4));
  world.settle();
  for (const int rank : {0, 1, 2, 3}) {
    ASSERT_TRUE(world.failures(rank).contains("w"));
    EXPECT_EQ(world.failures(rank).at("w").code, ErrorCode::mismatch);
    EXPECT_EQ(world.failures(rank).at("w").text, "allreduce 'w': shapes differ: [0,2,3] float32[4]; [1] float32[5]");
  }
  submit_all(world, float_request("w"));
  EXPECT_EQ(world.history(3), (std::vector<std::vector<std::string>>{{"w"}}));
}

TEST(Arbiter, R15_AMismatchAfterEqualRoundsIsSeenOnTheCachedPath) {
  NegotiationWorld world(2);
  submit_all(world, float_request("w", 409600));
  submit_all(world, float_request("w", 409600));
  world.submit(0, float_request("w", 409600));
  world.submit(1, float_request("w", 409598));
  world.settle();
  EXPECT_THAT(world.failures(0).at("w").text, HasSubstr("[0] float32[409600]; [1] float32[409598]"));
  EXPECT_EQ(world.failures(1).at("w").text, world.failures(0).at("w").text);
}

struct Unlike {
  const char* text;
  void (*change)(Request&);
};

class EveryPartOfARequest : public testing::TestWithParam<Unlike> {};

TEST_P(EveryPartOfARequest, R19_ThatDiffersIsNamedInWords) {
  NegotiationWorld world(2);
  Request changed = float_request("x");
  GetParam().change(changed);
  world.submit(0, float_request("x"));
  world.submit(1, changed);
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").text, GetParam().text);
  EXPECT_EQ(world.failures(1).at("x").text, GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Arbiter, EveryPartOfARequest,
    testing::Values(Unlike{"'x': operations differ: [0] allreduce; [1] allgather",
                           [](Request& r) { r.operation = Operation::allgather; }},
                    Unlike{"allreduce 'x': device differs: [0] cpu; [1] gpu",
                           [](Request& r) { r.device = Device::Kind::gpu; }},
                    Unlike{"allreduce 'x': dtypes differ: [0] float32[4]; [1] float64[4]",
                           [](Request& r) { r.dtype = DataType::f64; }},
                    Unlike{"allreduce 'x': shapes differ: [0] float32[4]; [1] float32[2, 2]",
                           [](Request& r) {
                             r.shape = Shape{2, 2};
                           }},
                    Unlike{"allreduce 'x': reduce op differs: [0] Sum; [1] Average",
                           [](Request& r) { r.reduce_op = ReduceOp::average; }},
                    Unlike{"allreduce 'x': prescale differs: [0] 1; [1] 0.5", [](Request& r) { r.prescale = 0.5; }},
                    Unlike{"allreduce 'x': postscale differs: [0] 1; [1] 0.5", [](Request& r) { r.postscale = 0.5; }}));

TEST(Arbiter, R19_UnequalBroadcastRootsAreNamed) {
  NegotiationWorld world(3);
  for (const int rank : {0, 1, 2}) {
    Request request = float_request("x");
    request.operation = Operation::broadcast;
    request.root = rank == 2 ? 1 : 0;
    world.submit(rank, request);
  }
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").text, "broadcast 'x': root rank differs: [0,1] 0; [2] 1");
}

TEST(Arbiter, AllgatherRowsMayDifferButOtherDimensionsMayNot) {
  NegotiationWorld world(2);
  for (const int rank : {0, 1}) {
    Request request = float_request("x");
    request.operation = Operation::allgather;
    request.shape = Shape{rank + 1, 3};
    world.submit(rank, request);
    request.name = "y";
    request.shape = Shape{1, rank + 3};
    world.submit(rank, request);
  }
  world.settle();
  EXPECT_EQ(world.history(0), (std::vector<std::vector<std::string>>{{"x"}}));
  EXPECT_EQ(world.failures(1).at("y").text, "allgather 'y': shapes differ: [0] float32[?, 3]; [1] float32[?, 4]");
}

TEST(Arbiter, R01_AStallReportShowsBothSides) {
  NegotiationWorld world(4, {.fusion_threshold = 0, .stall_warning = Seconds(1), .stall_shutdown = Seconds(10)});
  for (const int rank : {0, 1, 2}) world.submit(rank, float_request("grad", 8));
  world.submit(3, float_request("have_more", 1));
  world.settle();
  world.now += 2s;
  world.tick();
  const auto warnings = world.arbiter().take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("'grad' (allreduce float32[8]) submitted by [0,1,2] 2 s ago, waits for [3]"));
  EXPECT_THAT(warnings[0], HasSubstr("'have_more' (allreduce float32[1]) submitted by [3] 2 s ago, waits for [0,1,2]"));
  EXPECT_THAT(warnings[0], HasSubstr("rank 3 is at 'have_more', which waits for [0,1,2]"));
  world.now += 9s;
  world.tick();
  world.settle();
  for (const int rank : {0, 1, 2}) EXPECT_EQ(world.failures(rank).at("grad").code, ErrorCode::stalled);
  EXPECT_THAT(world.failures(0).at("grad").text, HasSubstr("submitted by [0,1,2], waits for [3]"));
  EXPECT_EQ(world.failures(3).at("have_more").code, ErrorCode::stalled);
  EXPECT_FALSE(world.failures(3).contains("grad"));
}

TEST(Arbiter, R05_TheNumberOfStallReportsGrowsLikeALogarithm) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(1)});
  world.submit(0, float_request("g"));
  world.settle();
  std::size_t reports = 0;
  for (int tenths = 0; tenths < 320; ++tenths) {
    world.now += 100ms;
    world.tick();
    reports += world.arbiter().take_warnings().size();
  }
  EXPECT_EQ(reports, 6U);  // after 1, 2, 4, 8, 16 and 32 s
}

TEST(Arbiter, EveryStallIsReportedAfterTheWarningTimeHoweverLongAnEarlierOneLasted) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(1)});
  const auto next_report = [&] {
    const TimePoint start = world.now;
    while (world.arbiter().take_warnings().empty()) {
      world.now = *world.arbiter().deadline();
      world.tick();
    }
    return Seconds(world.now - start).count();
  };
  world.submit(0, float_request("a"));
  world.settle();
  EXPECT_DOUBLE_EQ(next_report(), 1);
  EXPECT_DOUBLE_EQ(next_report(), 1);
  EXPECT_DOUBLE_EQ(next_report(), 2);
  world.submit(1, float_request("a"));
  world.settle();
  world.now += 1s;
  world.submit(0, float_request("b"));
  world.settle();
  EXPECT_DOUBLE_EQ(next_report(), 1);
}

TEST(Arbiter, R06_TheShutdownTimeHoldsEvenWhenItIsShorterThanTheWarningTime) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(60), .stall_shutdown = Seconds(2)});
  world.submit(0, float_request("x", 1));
  world.settle();
  EXPECT_EQ(world.arbiter().deadline(), world.now + 2s);
  world.now += 2s;
  world.tick();
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").code, ErrorCode::stalled);
}

TEST(Arbiter, R09_NamesThatDifferByRankAreHintedAt) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(1)});
  world.submit(0, float_request("m/w"));
  world.submit(1, float_request("m_1/w"));
  world.settle();
  world.now += 1s;
  world.tick();
  EXPECT_THAT(world.arbiter().take_warnings()[0], HasSubstr("do names differ by rank?"));
}

TEST(Arbiter, ASubmissionThatCrossesItsStallErrorBeginsANewRound) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(0), .stall_shutdown = Seconds(1)});
  world.submit(0, float_request("x"));
  world.settle();
  world.submit(1, float_request("x"));  // not reported yet when rank 0's fails
  world.now += 1s;
  world.tick();
  world.settle();
  EXPECT_TRUE(world.failures(0).contains("x"));
  EXPECT_FALSE(world.failures(1).contains("x"));
  world.submit(0, float_request("x"));
  world.settle();
  EXPECT_EQ(world.history(1), (std::vector<std::vector<std::string>>{{"x"}}));
}

TEST(Arbiter, WhenARankLeavesWhatLacksItFailsAndAllStop) {
  NegotiationWorld world(3);
  world.submit(0, float_request("x"));
  world.submit(1, float_request("x"));
  world.settle();
  world.leave(2, {.reason = "called shutdown()", .at_once = false});
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").text, "allreduce 'x': rank 2 has left: called shutdown()");
  EXPECT_EQ(world.failures(1).at("x").code, ErrorCode::shut_down);
  for (const int rank : {0, 1, 2}) EXPECT_EQ(world.stop(rank)->reason, "rank 2 has left: called shutdown()");
}

TEST(Arbiter, R40_WhatALeavingRankHasSubmittedIsWaitedFor) {
  NegotiationWorld world(2);
  world.submit(0, float_request("x"));
  world.leave(0, {.reason = "called shutdown()", .at_once = false});
  world.settle();
  EXPECT_FALSE(world.stop(0));
  world.submit(1, float_request("x"));
  world.settle();
  EXPECT_EQ(world.history(1), (std::vector<std::vector<std::string>>{{"x"}}));
  EXPECT_TRUE(world.stop(0));
  EXPECT_TRUE(world.stop(1));
}

TEST(Arbiter, ALeavingRankThatWillNotWaitFailsWhatItHasSubmitted) {
  NegotiationWorld world(2);
  world.submit(0, float_request("x"));
  world.leave(0, {.reason = "has waited long enough", .at_once = true});
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").text, "allreduce 'x': rank 0 has left: has waited long enough");
  EXPECT_TRUE(world.stop(1)->abandon);
}

TEST(Arbiter, ARankThatBreaksOffStopsTheOthersThoughItsBatchesNeverEnd) {
  NegotiationWorld world(2, {.fusion_threshold = 0});
  for (const char* name : {"a", "b", "c"}) {
    for (const int rank : {0, 1}) {
      world.submit(rank, float_request(name));
      world.report(rank);
    }
  }
  world.leave(1, {.reason = "internal: out of memory", .at_once = true});
  world.report(1);
  while (world.can_receive(0)) world.receive(0);
  ASSERT_TRUE(world.stop(0));
  EXPECT_TRUE(world.stop(0)->abandon);
  EXPECT_EQ(world.stop(0)->reason, "rank 1 has left: internal: out of memory");
  EXPECT_EQ(world.history(0).size(), 2U);
}

TEST(Arbiter, ReportsThatContradictThemselvesAreErrorsThatNameTheRank) {
  const auto report = [](std::uint32_t id, std::optional<Request> request) {
    Report report;
    report.ready.push_back({.id = id, .fingerprint = 1, .rows = 0, .request = std::move(request)});
    return report;
  };
  Arbiter arbiter(2, {});
  EXPECT_THROW(arbiter.accept(1, report(7, {}), {}), InternalError);
  EXPECT_THROW(arbiter.accept(1, report(0, {}), {}), InternalError);
  arbiter.accept(1, report(0, float_request("x")), {});
  try {
    arbiter.accept(1, report(0, float_request("x")), {});
    FAIL() << "reported twice";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 reported allreduce 'x' twice"));
  }
}

}  // namespace
}  // namespace hvd
