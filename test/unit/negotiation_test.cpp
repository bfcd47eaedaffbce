// Every legal order of events of small worlds, by copying the world at each step and trying all continuations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "../support/world.h"
#include "negotiation_world.h"

namespace hvd {
namespace {

using History = std::vector<std::vector<std::string>>;

std::multiset<std::string> names_in(const History& history) {
  std::multiset<std::string> names;
  for (const auto& batch : history) names.insert(batch.begin(), batch.end());
  return names;
}

void expect_all_done(const NegotiationWorld& world, const std::multiset<std::string>& expected) {
  for (int rank = 0; rank < world.size(); ++rank) {
    ASSERT_EQ(names_in(world.history(rank)), expected) << "rank " << rank;
    ASSERT_EQ(world.history(rank), world.history(0)) << "rank " << rank;
    ASSERT_TRUE(world.failures(rank).empty());
  }
}

const std::array<std::string, 3> tensors{"a", "b", "c"};

// Under a sanitizer, rank 2 has one order only.
constexpr std::size_t interleavings = (test::sanitized ? 6U : 36U) * 1680U;

// All interleavings of three submissions on each of three ranks; rank 0 submits a, b, c (other orders are this one with
// the names exchanged), the others in every order.
template <typename AfterEach>
std::size_t for_each_interleaving(const AfterEach& after_each_submission) {
  std::size_t count = 0;
  std::array<int, 3> order1{0, 1, 2};
  do {
    std::array<int, 3> order2{0, 1, 2};
    do {
      std::array<int, 9> turns{0, 0, 0, 1, 1, 1, 2, 2, 2};
      do {
        NegotiationWorld world(3);
        std::array<std::size_t, 3> next{};
        for (const int rank : turns) {
          const std::size_t k = next[static_cast<std::size_t>(rank)]++;
          const int tensor = rank == 0 ? static_cast<int>(k) : (rank == 1 ? order1[k] : order2[k]);
          world.submit(rank, float_request(tensors[static_cast<std::size_t>(tensor)]));
          after_each_submission(world, rank);
        }
        world.settle();
        expect_all_done(world, {"a", "b", "c"});
        if (testing::Test::HasFatalFailure()) return count;
        ++count;
      } while (std::ranges::next_permutation(turns).found);
    } while (!test::sanitized && std::ranges::next_permutation(order2).found);
  } while (std::ranges::next_permutation(order1).found);
  return count;
}

TEST(Negotiation, EveryInterleavingOfThreeRanksAndThreeTensorsGivesEqualBatchesWhenMessagesAreQuick) {
  EXPECT_EQ(for_each_interleaving([](NegotiationWorld& world, int /*rank*/) { world.settle(); }), interleavings);
}

TEST(Negotiation, EveryInterleavingOfThreeRanksAndThreeTensorsGivesEqualBatchesWhenMessagesAreSlow) {
  // Reports leave at once, plans and batches wait to the end.
  EXPECT_EQ(for_each_interleaving([](NegotiationWorld& world, int rank) { world.report(rank); }), interleavings);
}

TEST(Negotiation, EveryInterleavingOfThreeRanksAndThreeTensorsGivesEqualBatchesWhenNobodySpeaksBeforeTheEnd) {
  EXPECT_EQ(for_each_interleaving([](NegotiationWorld&, int) {}), interleavings);
}

// Depth-first over all events: submissions in program order per rank, deliveries, ends of batches.
class Explorer {
 public:
  explicit Explorer(std::vector<std::vector<std::string>> programs) : programs_(std::move(programs)) {}

  void explore() {
    visit(NegotiationWorld(static_cast<int>(programs_.size())), std::vector<std::size_t>(programs_.size(), 0));
  }
  std::size_t endings() const { return endings_; }

 private:
  void visit(const NegotiationWorld& world, const std::vector<std::size_t>& next) {
    if (testing::Test::HasFatalFailure()) return;
    bool ended = true;
    const auto branch = [&](auto&& act) {
      ended = false;
      NegotiationWorld copy = world;
      std::vector<std::size_t> copied_next = next;
      act(copy, copied_next);
      visit(copy, copied_next);
    };
    for (int r = 0; r < world.size(); ++r) {
      const auto rank = static_cast<std::size_t>(r);
      if (next[rank] < programs_[rank].size()) {
        branch([&](NegotiationWorld& w, std::vector<std::size_t>& n) {
          w.submit(r, float_request(programs_[rank][n[rank]++]));
        });
      }
      if (world.can_report(r)) branch([&](NegotiationWorld& w, auto&) { w.report(r); });
      if (world.can_receive(r)) branch([&](NegotiationWorld& w, auto&) { w.receive(r); });
    }
    if (world.can_finish_batch()) branch([](NegotiationWorld& w, auto&) { w.finish_batch(); });
    if (ended) {
      ++endings_;
      expect_all_done(world, {programs_[0].begin(), programs_[0].end()});
    }
  }

  std::vector<std::vector<std::string>> programs_;
  std::size_t endings_ = 0;
};

TEST(Negotiation, EveryOrderOfAllEventsOfTwoRanksAndTwoTensorsEndsWithEqualBatches) {
  Explorer explorer({{"a", "b"}, {"b", "a"}});
  explorer.explore();
  EXPECT_GT(explorer.endings(), 1000U);
}

TEST(Negotiation, EveryOrderOfAllEventsOfThreeRanksAndOneTensorEndsWithEqualBatches) {
  Explorer explorer({{"a"}, {"a"}, {"a"}});
  explorer.explore();
  EXPECT_GT(explorer.endings(), 1000U);
}

TEST(Negotiation, RandomSchedulesOfManyRanksAndRoundsEndWithEqualBatches) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const int size = 1 + static_cast<int>(pick(8));
    NegotiationWorld world(size, {.fusion_threshold = 64});
    constexpr int rounds = 3;
    std::multiset<std::string> expected;
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::vector<std::string>> left(static_cast<std::size_t>(size));
      for (auto& names : left) {
        for (int t = 0; t < 12; ++t) names.push_back("tensor" + std::to_string(t));
        std::ranges::shuffle(names, random);
      }
      expected.insert(left[0].begin(), left[0].end());
      for (std::size_t done = 0; done < left.size() * 12;) {
        const std::size_t rank = pick(left.size());
        const int r = static_cast<int>(rank);
        switch (pick(4)) {
          case 0:
            if (left[rank].empty()) break;
            world.submit(r, float_request(left[rank].back(), static_cast<std::int64_t>(left[rank].back().size())));
            left[rank].pop_back();
            ++done;
            break;
          case 1:
            if (world.can_report(r)) world.report(r);
            break;
          case 2:
            if (world.can_receive(r)) world.receive(r);
            break;
          default:
            if (world.can_finish_batch()) world.finish_batch();
        }
      }
      world.settle();
    }
    expect_all_done(world, expected);
    if (HasFatalFailure()) return;
    // After its first round a name travels as a number.
    EXPECT_EQ(world.full_requests(), 12U * static_cast<std::size_t>(size));
  }
}

TEST(Negotiation, WhatBecomesReadyWhileBatchesAreUnderWayIsFused) {
  NegotiationWorld world(1);
  for (int t = 0; t < 6; ++t) {
    world.submit(0, float_request("tensor" + std::to_string(t)));
    world.report(0);
    while (world.can_receive(0)) world.receive(0);
  }
  EXPECT_EQ(world.history(0), (History{{"tensor0"}, {"tensor1"}}));
  world.finish_batch();
  world.receive(0);
  EXPECT_EQ(world.history(0).back(), (std::vector<std::string>{"tensor2", "tensor3", "tensor4", "tensor5"}));
}

TEST(Negotiation, ARequestThatChangesTravelsAgainAndOneThatDoesNotIsANumber) {
  NegotiationWorld world(2);
  for (const std::int64_t elements : {4, 4, 5, 5, 4}) {
    for (const int rank : {0, 1}) world.submit(rank, float_request("w", elements));
    world.settle();
  }
  expect_all_done(world, {"w", "w", "w", "w", "w"});
  EXPECT_EQ(world.full_requests(), 2U * 3U);
}

}  // namespace
}  // namespace hvd
