#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

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

TEST(Arbiter, R14_OneRankOnAnotherDeviceIsAnErrorOnAllAlsoWhenANumberStandsForTheName) {
  NegotiationWorld world(4);
  Request on_gpu = float_request("x");
  on_gpu.device = Device::Kind::gpu;
  submit_all(world, on_gpu);
  for (int round = 0; round < 2; ++round) {
    for (const int rank : {0, 1, 2, 3}) world.submit(rank, rank == 3 ? float_request("x") : on_gpu);
    world.settle();
    for (const int rank : {0, 1, 2, 3}) {
      ASSERT_TRUE(world.failures(rank).contains("x"));
      EXPECT_EQ(world.failures(rank).at("x").code, ErrorCode::mismatch);
      EXPECT_EQ(world.failures(rank).at("x").text, "allreduce 'x': device differs: [0,1,2] gpu; [3] cpu");
    }
    submit_all(world, on_gpu);
    EXPECT_EQ(world.history(3).size(), static_cast<std::size_t>(round) + 2);
  }
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
    testing::Values(Unlike{"'x': operations differ: [0] allreduce; [1] broadcast",
                           [](Request& r) { r.operation = Operation::broadcast; }},
                    Unlike{"allreduce 'x': group sizes differ: [0] 1 tensor; [1] 2 tensors",
                           [](Request& r) { r.tensors.push_back(r.tensors[0]); }},
                    Unlike{"allreduce 'x': device differs: [0] cpu; [1] gpu",
                           [](Request& r) { r.device = Device::Kind::gpu; }},
                    Unlike{"allreduce 'x': dtypes differ: [0] float32[4]; [1] float64[4]",
                           [](Request& r) { r.tensors[0].dtype = DataType::f64; }},
                    Unlike{"allreduce 'x': shapes differ: [0] float32[4]; [1] float32[2, 2]",
                           [](Request& r) {
                             r.tensors[0].shape = Shape{2, 2};
                           }},
                    Unlike{"allreduce 'x': reduce op differs: [0] Sum; [1] Average",
                           [](Request& r) { r.reduce_op = ReduceOp::average; }},
                    Unlike{"allreduce 'x': prescale differs: [0] 1; [1] 0.5", [](Request& r) { r.prescale = 0.5; }},
                    Unlike{"allreduce 'x': postscale differs: [0] 1; [1] 0.5", [](Request& r) { r.postscale = 0.5; }},
                    Unlike{"allreduce 'x': timeout differs: [0] 0 s; [1] 3 s", [](Request& r) { r.timeout = 3; }},
                    Unlike{"allreduce 'x': call site differs: operations without a name are paired by their order: [0] "
                           "0; [1] ab",
                           [](Request& r) { r.call_site = 0xab; }}));

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
    request.tensors[0].shape = Shape{rank + 1, 3};
    world.submit(rank, request, {rank + 1});
    request.name = "y";
    request.tensors[0].shape = Shape{1, rank + 3};
    world.submit(rank, request, {1});
  }
  world.settle();
  EXPECT_EQ(world.history(0), (std::vector<std::vector<std::string>>{{"x"}}));
  EXPECT_EQ(world.failures(1).at("y").text, "allgather 'y': shapes differ: [0] float32[?, 3]; [1] float32[?, 4]");
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

TEST(Arbiter, AProcessThatFailsIsTheCauseOfWhatTheOthersHaveSubmitted) {  // R32
  NegotiationWorld world(3);
  for (const int rank : {0, 1}) world.submit(rank, float_request("g"));
  world.leave(2, {.reason = "ValueError: boom", .at_once = true, .process = "host h, pid 7"});
  world.settle();
  for (const int rank : {0, 1}) {
    EXPECT_EQ(world.failures(rank).at("g").text, "allreduce 'g': rank 2 (host h, pid 7) left: ValueError: boom");
    EXPECT_EQ(world.stop(rank)->reason, "rank 2 (host h, pid 7) left: ValueError: boom");
  }
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
    const std::uint64_t print = request ? fingerprint(*request) : 1;
    report.ready.push_back({.id = id, .fingerprint = print, .extents = {}, .request = std::move(request)});
    return report;
  };
  Arbiter arbiter(2, {}, ProcessSets(2, {}));
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
