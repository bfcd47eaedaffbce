#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ArbiterStall, R01_AStallReportShowsBothSides) {
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

TEST(ArbiterStall, R05_TheNumberOfStallReportsGrowsLikeALogarithm) {
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

TEST(ArbiterStall, EveryStallIsReportedAfterTheWarningTimeHoweverLongAnEarlierOneLasted) {
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

TEST(ArbiterStall, R06_TheShutdownTimeHoldsEvenWhenItIsShorterThanTheWarningTime) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(60), .stall_shutdown = Seconds(2)});
  world.submit(0, float_request("x", 1));
  world.settle();
  EXPECT_EQ(world.arbiter().deadline(), world.now + 2s);
  world.now += 2s;
  world.tick();
  world.settle();
  EXPECT_EQ(world.failures(0).at("x").code, ErrorCode::stalled);
}

TEST(ArbiterStall, R09_NamesThatDifferByRankAreHintedAt) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(1)});
  world.submit(0, float_request("m/w"));
  world.submit(1, float_request("m_1/w"));
  world.settle();
  world.now += 1s;
  world.tick();
  EXPECT_THAT(world.arbiter().take_warnings()[0], HasSubstr("do names differ by rank?"));
}

TEST(ArbiterStall, ASubmissionThatCrossesItsStallErrorBeginsANewRound) {
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

TEST(ArbiterStall, AJoinWaitsAsLongAsItLikesUnlessItHasATimeLimitOfItsOwn) {
  NegotiationWorld other(2, {.fusion_threshold = 0, .stall_warning = 1s, .stall_shutdown = 5s});
  other.submit(0, join_request());
  other.settle();
  EXPECT_FALSE(other.arbiter().deadline());
  other.now += 100s;
  other.tick();
  EXPECT_TRUE(other.arbiter().take_warnings().empty());
  other.settle();
  EXPECT_TRUE(other.in_flight(0, "0|join"));
  Request limited = join_request();
  limited.timeout = 3;
  other.submit(1, limited);
  other.settle();
  EXPECT_EQ(other.failures(0).at("join").text, "join 'join': timeout differs: [0] 0 s; [1] 3 s");
  other.submit(1, limited);
  other.settle();
  other.now += 3s;
  other.tick();
  other.settle();
  EXPECT_EQ(other.failures(1).at("join").code, ErrorCode::stalled);
}

TEST(ArbiterStall, AnOperationsOwnTimeLimitHoldsWhereItIsShorter) {
  NegotiationWorld world(2, {.fusion_threshold = 0, .stall_warning = Seconds(0), .stall_shutdown = 10s});
  for (const double limit : {2.0, 60.0}) {
    Request request = float_request("x" + std::to_string(static_cast<int>(limit)));
    request.timeout = limit;
    world.submit(0, request);
  }
  world.settle();
  EXPECT_EQ(world.arbiter().deadline(), world.now + 2s);
  world.now += 2s;
  world.tick();
  world.settle();
  EXPECT_EQ(world.failures(0).at("x2").code, ErrorCode::stalled);
  EXPECT_THAT(world.failures(0).at("x2").text,
              HasSubstr("allreduce 'x2': stalled for 2 s: submitted by [0], waits for [1]. All that waits: "));
  EXPECT_TRUE(world.in_flight(0, "0:x60"));
  EXPECT_EQ(world.arbiter().deadline(), world.now + 8s);
}

TEST(ArbiterStall, AnOperationsTimeLimitHoldsWhereNoneIsConfigured) {
  NegotiationWorld world(2);
  world.submit(0, float_request("endless"));
  world.settle();
  EXPECT_FALSE(world.arbiter().deadline());
  Request request = float_request("x");
  request.timeout = 0.5;
  world.submit(0, request);
  world.settle();
  EXPECT_EQ(world.arbiter().deadline(), world.now + 500ms);
}

TEST(ArbiterStall, ATimeLimitThatNoClockCountsNeverEnds) {
  NegotiationWorld world(2);
  Request request = float_request("x");
  request.timeout = 1e12;
  world.submit(0, request);
  world.settle();
  EXPECT_FALSE(world.arbiter().deadline());
  world.now += 1h;
  world.tick();
  world.settle();
  EXPECT_TRUE(world.in_flight(0, "0:x"));
}

TEST(ArbiterStall, RanksThatHaveJoinedAreNotWaitedFor) {
  NegotiationWorld world(4, {.fusion_threshold = 0, .stall_warning = 1s});
  world.submit(1, join_request());
  world.settle();
  for (const int rank : {0, 2}) world.submit(rank, float_request("x"));
  world.settle();
  world.now += 1s;
  world.tick();
  const auto warnings = world.arbiter().take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], testing::StartsWith("'x' (allreduce float32[4]) submitted by [0,2] 1 s ago, waits for [3]"));
  EXPECT_THAT(warnings[0], HasSubstr("'join' (join) submitted by [1] 1 s ago, waits for [0,2,3]"));
  EXPECT_THAT(warnings[0], HasSubstr("rank 3 has nothing in flight"));
}

TEST(ArbiterStall, AStragglerIsWaitedForFromTheTimeWhenItAloneIsMissing) {
  NegotiationWorld world(3, {}, {{0, 1}});
  const auto after = [&](std::chrono::seconds time, int rank, const Request& request) {
    world.now += time;
    world.submit(rank, request);
    world.settle();
  };
  after(0s, 0, float_request("x"));
  after(5s, 2, float_request("x"));
  after(3s, 1, float_request("x"));
  EXPECT_EQ(world.arbiter().waited_for(), (std::vector<Seconds>{0s, 3s, 0s}));
  after(0s, 0, float_request("y", 4, 1));
  after(1s, 2, join_request());  // not of the set: changes nothing
  after(1s, 1, float_request("y", 4, 1));
  EXPECT_EQ(world.arbiter().waited_for(), (std::vector<Seconds>{0s, 5s, 0s}));
  after(0s, 1, float_request("z"));
  after(4s, 0, float_request("z"));  // rank 2 has joined
  EXPECT_EQ(world.arbiter().waited_for(), (std::vector<Seconds>{4s, 5s, 0s}));
}

}  // namespace
}  // namespace hvd
