// Small worlds in every schedule: see negotiation_checks.h for what is checked at the end of each.
#include <gtest/gtest.h>

#include <iostream>

#include "../support/world.h"
#include "negotiation_explorer.h"

namespace hvd {
namespace {

using History = std::vector<std::vector<std::string>>;

Request broadcast_request(const std::string& name, int root) {
  Request request = float_request(name);
  request.operation = Operation::broadcast;
  request.root = root;
  return request;
}

Request message_request(const std::string& name, int from, int to) {
  Request request = float_request(name);
  request.operation = Operation::send_recv;
  request.root = from;
  request.peer = to;
  return request;
}

Request add_request(const std::string& ranks) { return bare_request(Operation::add_process_set, ranks); }

Request remove_request(int set) {
  Request request = bare_request(Operation::remove_process_set, std::to_string(set));
  request.root = set;
  return request;
}

// Where there are more schedules, random ones follow.
std::uint64_t explore(const Scenario& scenario, std::size_t most = test::sanitized ? 1'500 : 15'000) {
  Explorer explorer(scenario);
  explorer.explore(most);
  const std::size_t in_order = explorer.schedules();
  std::mt19937 random(1);
  while (in_order == most && explorer.schedules() < 2 * most && !testing::Test::HasFailure()) explorer.walk(random);
  std::cout << (in_order == most ? "" : "all ") << explorer.schedules() << " schedules\n";
  return explorer.evictions();
}

void expect_nothing_open(const NegotiationWorld& world) {
  for (int rank = 0; rank < world.size(); ++rank) {
    for (const auto& handle : world.handles(rank)) EXPECT_FALSE(handle.open) << rank << ' ' << handle.request.name;
  }
}

void expect_all_run(const NegotiationWorld& world) {
  expect_nothing_open(world);
  for (int rank = 0; rank < world.size(); ++rank) EXPECT_TRUE(world.failures(rank).empty());
}

TEST(NegotiationModel, TwoRanksInOppositeOrder) {
  explore(
      {.programs = {{submits("a"), submits("b")}, {submits("b"), submits("a")}}, .sets = {}, .at_end = expect_all_run});
}

TEST(NegotiationModel, WorldAndTwoProcessSets) {
  explore({.programs = {{submits("x"), submits("y", 1)},
                        {submits("y", 1), submits("z", 2), submits("x")},
                        {submits("z", 2), submits("x")}},
           .sets = {{0, 1}, {1, 2}},
           .at_end = expect_all_run});
}

TEST(NegotiationModel, EvictionsWhileOperationsAreInFlight) {
  const auto evictions =
      explore({.programs = {{submits("a"), submits("b"), submits("a")}, {submits("a"), submits("b"), submits("a")}},
               .sets = {},
               .options = {.fusion_threshold = 0, .cache_capacity = 1},
               .at_end = expect_all_run});
  EXPECT_GT(evictions, 0U);
}

TEST(NegotiationModel, AJoinServesTheOthersInWorldAndSet) {
  explore({.programs = {{submits("x"), joins()}, {submits("y", 1), submits("x"), joins()}, {joins()}},
           .sets = {{1, 2}},
           .at_end = [](const NegotiationWorld& world) {
             expect_all_run(world);
             EXPECT_EQ(world.ran(0).back().names, std::vector<std::string>{"join"});
           }});
}

TEST(NegotiationModel, ARankGoesOnAfterItsJoin) {
  explore({.programs = {{submits("x"), joins(), submits("x")}, {joins(), submits("x")}},
           .sets = {},
           .options = {.fusion_threshold = 0, .cache_capacity = 1},
           .at_end = expect_all_run});
}

TEST(NegotiationModel, ARootThatHasJoined) {
  explore({.programs = {{submits(broadcast_request("x", 1)), joins()}, {joins(), joins()}},
           .sets = {},
           .at_end = [](const NegotiationWorld& world) {
             EXPECT_EQ(world.failures(0).at("x").text, "broadcast 'x': its root rank 1 has joined");
             EXPECT_EQ(world.failures(1).at("join").text, world.failures(0).at("x").text);
             expect_nothing_open(world);
           }});
}

TEST(NegotiationModel, AMismatchFailsOnAllRanksAndTheNextRoundRuns) {
  explore({.programs = {{submits("x"), submits("x")},
                        {submits(float_request("x", 5)), submits("x")},
                        {submits("x"), submits("x")}},
           .sets = {},
           .at_end = [](const NegotiationWorld& world) {
             for (const int rank : {0, 1, 2}) {
               EXPECT_EQ(world.failures(rank).at("x").text,
                         "allreduce 'x': shapes differ: [0,2] float32[4]; [1] float32[5]");
               EXPECT_EQ(world.history(rank), (History{{"x"}}));
             }
             expect_nothing_open(world);
           }});
}

TEST(NegotiationModel, ACancelledOperationAndWhatFollowsUnderItsName) {
  explore({.programs = {{submits("x"), cancels("x"), submits("x")}, {submits("x"), submits("x")}}, .sets = {}});
}

TEST(NegotiationModel, ACancelThatCrossesTheEvictionOfItsId) {
  const auto evictions =
      explore({.programs = {{submits("x"), submits("b"), submits("x"), cancels("x")}, {submits("x"), submits("b")}},
               .sets = {},
               .options = {.fusion_threshold = 0, .cache_capacity = 1},
               .at_end = [](const NegotiationWorld& world) {
                 expect_nothing_open(world);
                 EXPECT_EQ(world.failures(0).at("x").code, ErrorCode::cancelled);
               }});
  EXPECT_GT(evictions, 0U);
}

TEST(NegotiationModel, ACancelledJoin) {
  explore(
      {.programs = {{submits("x"), submits("x"), joins()}, {joins(), cancels(join_request()), joins()}}, .sets = {}});
}

TEST(NegotiationModel, ARankThatLeaves) {
  explore({.programs = {{submits("x"), submits("y", 1), submits("y", 1)},
                        {submits("y", 1), submits("x"), submits("y", 1)},
                        {submits("x"), leaves()}},
           .sets = {{0, 1}}});
}

TEST(NegotiationModel, AMessageToARankThatMayHaveJoined) {
  explore({.programs = {{submits(message_request("m", 0, 1)), joins()},
                        {submits(message_request("m", 0, 1)), joins()},
                        {joins()}},
           .sets = {},
           .at_end = expect_all_run});
  explore({.programs = {{submits(message_request("m", 0, 1)), joins()}, {joins()}, {joins()}},
           .sets = {},
           .at_end = [](const NegotiationWorld& world) {
             EXPECT_EQ(world.failures(0).at("m").code, ErrorCode::mismatch);
             expect_nothing_open(world);
           }});
}

TEST(NegotiationModel, ASetThatIsMadeAndUsed) {
  explore({.programs = {{submits(add_request("[0,1]"), {0, 1}), submits("x", 1)},
                        {submits(add_request("[0,1]"), {0, 1}), submits("x", 1)},
                        {submits(add_request("[0,1]"), {0, 1}), submits("w")}},
           .sets = {},
           .at_end = [](const NegotiationWorld& world) {
             EXPECT_EQ(world.history(1), (History{{"[0,1]"}, {"x"}}));
           }});
}

TEST(NegotiationModel, ASetThatIsRemovedWhileItIsUsed) {
  explore({.programs = {{submits("x", 1), submits(remove_request(1))},
                        {submits(remove_request(1)), submits("x", 1), submits("y", 1)},
                        {submits(remove_request(1)), submits("y", 1)}},
           .sets = {{0, 1, 2}},
           .at_end = expect_nothing_open});
}

}  // namespace
}  // namespace hvd
