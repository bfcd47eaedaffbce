#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>

#include "negotiation_world.h"

namespace hvd {
namespace {

using testing::IsEmpty;

// Rank 1 of three; process set 1 is [0,1], set 2 is [0,2].
class ReporterTest : public testing::Test {
 protected:
  ReporterTest() : reporter(1, ProcessSets(3, {{0, 1}, {0, 2}})) {}
  void submit(std::uint32_t slot, const std::string& name, std::int64_t elements = 4) {
    const Request request = float_request(name, elements);
    reporter.submit(slot, request, fingerprint(request));
  }
  Plan plan(List<Naming> names = {}) {
    Plan plan;
    plan.number = ++number;
    plan.names = std::move(names);
    return plan;
  }
  static Batch batch(std::vector<std::uint32_t> ids, std::uint32_t process_set = 0) {
    Batch batch{.number = 1, .process_set = process_set, .pair = {}, .absent = {}, .change = {}, .entries = {}};
    for (const std::uint32_t id : ids) batch.entries.push_back({.id = id, .extents = {}});
    return batch;
  }
  // Submits, reports and runs it once, so that slot and id belong together.
  void run(std::uint32_t slot, const std::string& name, std::uint32_t id) {
    submit(slot, name);
    static_cast<void>(reporter.take_report());
    Plan ran = plan({{.id = id, .key = "0:" + name}});
    ran.batches.push_back(batch({id}));
    ASSERT_EQ(reporter.accept(std::move(ran)).batches.size(), 1U);
  }
  Reporter::Outcome evict(std::uint32_t id) {
    Plan evicting = plan();
    evicting.evicted = {id};
    return reporter.accept(std::move(evicting));
  }
  Reporter reporter;
  std::uint64_t number = 0;
};

TEST_F(ReporterTest, SaysNothingWithoutNews) {
  EXPECT_FALSE(reporter.has_news());
  submit(0, "a");
  EXPECT_TRUE(reporter.has_news());
  EXPECT_EQ(reporter.take_report().ready.size(), 1U);
  EXPECT_FALSE(reporter.has_news());
}

TEST_F(ReporterTest, SendsARequestOnceAndItsNumberFromThenOn) {
  run(0, "a", 5);
  submit(0, "a");
  const Report again = reporter.take_report();
  EXPECT_EQ(again.ready[0].id, 5U);
  EXPECT_FALSE(again.ready[0].request);
  EXPECT_EQ(again.plans_seen, 1U);
  EXPECT_EQ(reporter.counts().requests_sent, 1U);
  EXPECT_EQ(reporter.counts().requests_cached, 1U);
}

TEST_F(ReporterTest, SendsARequestAgainWhenItHasChanged) {
  run(0, "a", 5);
  submit(0, "a", 7);
  const Report report = reporter.take_report();
  EXPECT_EQ(report.ready[0].id, 5U);
  ASSERT_TRUE(report.ready[0].request);
  EXPECT_EQ(report.ready[0].request->tensors[0].shape, Shape{7});
}

TEST_F(ReporterTest, GivesBackAnIdleSlotOfAnEvictedIdAndAnswers) {
  run(3, "a", 5);
  EXPECT_EQ(evict(5).forgotten, List<std::uint32_t>{3});
  EXPECT_TRUE(reporter.has_news());
  EXPECT_EQ(reporter.take_report().plans_seen, 2U);
  EXPECT_FALSE(reporter.has_news());
  submit(3, "b");
  const Report report = reporter.take_report();
  EXPECT_EQ(report.ready[0].id, 0U);
  EXPECT_EQ(report.ready[0].request->name, "b");
}

TEST_F(ReporterTest, AnswersAnEvictionThoughItDoesNotKnowTheId) {
  EXPECT_THAT(evict(9).forgotten, IsEmpty());
  EXPECT_TRUE(reporter.has_news());
  EXPECT_EQ(reporter.take_report().plans_seen, 1U);
}

TEST_F(ReporterTest, WhatIsInFlightUnderAnEvictedIdGoesOnUnderANewOne) {
  run(0, "a", 5);
  submit(0, "a");
  EXPECT_EQ(reporter.take_report().ready[0].id, 5U);
  EXPECT_THAT(evict(5).forgotten, IsEmpty());
  EXPECT_EQ(reporter.counts().evictions, 1U);
  Plan renamed = plan({{.id = 8, .key = "0:a"}});
  renamed.batches.push_back(batch({8}));
  EXPECT_EQ(reporter.accept(std::move(renamed)).batches[0].entries[0].slot, 0U);
  submit(0, "a");
  EXPECT_EQ(reporter.take_report().ready[0].id, 8U);
}

TEST_F(ReporterTest, LeavesBatchesOfOtherRanksAlone) {
  Plan foreign = plan({{.id = 5, .key = "2:a"}, {.id = 6, .key = "0>2:a"}});
  foreign.batches.push_back(batch({5}, 2));
  foreign.batches.push_back(batch({6}));
  foreign.batches.back().pair = {0, 2};
  EXPECT_THAT(reporter.accept(std::move(foreign)).batches, IsEmpty());
}

TEST_F(ReporterTest, ABatchOfWhatIsNotInFlightIsAnErrorThatNamesTheRank) {
  Plan wrong = plan();
  wrong.batches.push_back(batch({5}));
  try {
    reporter.accept(std::move(wrong));
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "batch 1 has operation 5, which rank 1 has not in flight");
  }
}

TEST_F(ReporterTest, ABatchOfNothingIsAnError) {
  Plan wrong = plan();
  wrong.batches.push_back(batch({}));
  EXPECT_THROW(reporter.accept(std::move(wrong)), InternalError);
}

TEST_F(ReporterTest, ANumberStandsForOneOperation) {
  submit(0, "a");
  submit(1, "b");
  EXPECT_THROW(reporter.accept(plan({{.id = 0, .key = "0:a"}})), InternalError);
  EXPECT_THROW(reporter.accept(plan({{.id = 5, .key = "0:a"}, {.id = 5, .key = "0:b"}})), InternalError);
}

TEST_F(ReporterTest, AChangeOfSetsThatCannotBeIsAnErrorThatNamesTheBatch) {
  const auto change = [&](std::uint32_t id, std::uint32_t channel, std::vector<int> ranks) {
    Plan changing = plan();
    changing.batches.push_back(batch({5}));
    changing.batches[0].change = SetChange{.id = id, .channel = channel, .ranks = std::move(ranks)};
    try {
      reporter.accept(std::move(changing));
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto refused = [](std::uint32_t id) {
    return "batch 1 makes a change of process set " + std::to_string(id) + " that cannot be";
  };
  EXPECT_EQ(change(0, 0, {}), refused(0));      // of all ranks
  EXPECT_EQ(change(7, 0, {}), refused(7));      // there is none
  EXPECT_EQ(change(2, 3, {1, 2}), refused(2));  // there is one
  EXPECT_EQ(change(3, ProcessSets::most_channels, {1, 2}), refused(3));
  EXPECT_EQ(change(3, 3, {2, 1}), refused(3));
  EXPECT_EQ(change(3, 3, {1, 3}), refused(3));
}

TEST_F(ReporterTest, ARankThatHasJoinedLearnsWhatTheOthersDo) {
  for (int round = 0; round < 2; ++round) {
    Plan joined = plan();
    if (round == 0) joined.descriptions.push_back({.id = 5, .request = float_request("a", 9)});
    joined.batches.push_back(batch({5}));
    joined.batches[0].absent = {1};
    const Reporter::Outcome outcome = reporter.accept(std::move(joined));
    ASSERT_EQ(outcome.batches.size(), 1U);
    ASSERT_NE(outcome.batches[0].entries[0].absent, nullptr);
    EXPECT_EQ(outcome.batches[0].entries[0].absent->tensors[0].shape, Shape{9});
  }
  evict(5);  // the description goes with the id
  Plan unknown = plan();
  unknown.batches.push_back(batch({5}));
  unknown.batches[0].absent = {1};
  EXPECT_THROW(reporter.accept(std::move(unknown)), InternalError);
}

TEST_F(ReporterTest, ADescriptionIsKeptByARankThatHasReportedAndJoinsNext) {
  submit(0, "a");
  Plan first = plan({{.id = 5, .key = "0:a"}});
  first.descriptions.push_back({.id = 5, .request = float_request("a")});
  first.batches.push_back(batch({5}));
  first.batches[0].absent = {2};
  reporter.accept(std::move(first));
  Plan second = plan();
  second.batches.push_back(batch({5}));
  second.batches[0].absent = {1, 2};
  EXPECT_NE(reporter.accept(std::move(second)).batches[0].entries[0].absent, nullptr);
}

TEST_F(ReporterTest, WhatItHasOnlyHeardOfTravelsInFullThoughTheSlotWasUsedBefore) {
  run(0, "b", 4);
  EXPECT_EQ(evict(4).forgotten, List<std::uint32_t>{0});
  Plan joined = plan();
  joined.descriptions.push_back({.id = 5, .request = float_request("a", 9)});
  joined.batches.push_back(batch({5}));
  joined.batches[0].absent = {1};
  reporter.accept(std::move(joined));
  submit(0, "a");
  const Report report = reporter.take_report();
  EXPECT_EQ(report.ready[0].id, 5U);
  EXPECT_TRUE(report.ready[0].request);
}

TEST_F(ReporterTest, FailuresConcernTheRanksNamedAndWhatIsInFlight) {
  run(0, "a", 5);
  const auto failures_for = [&](const std::vector<int>& ranks) {
    Plan failing = plan();
    failing.failures.push_back({.id = 5, .ranks = ranks, .failure = {ErrorCode::mismatch, "text"}});
    return reporter.accept(std::move(failing)).failures.size();
  };
  submit(0, "a");
  EXPECT_EQ(failures_for({0, 2}), 0U);
  EXPECT_EQ(failures_for({1, 2}), 1U);
  EXPECT_EQ(failures_for({1, 2}), 0U);
}

TEST_F(ReporterTest, TakesNothingBackThatIsOver) {
  run(0, "a", 5);
  reporter.withdraw(0);
  reporter.block(0);
  EXPECT_FALSE(reporter.has_news());
}

TEST_F(ReporterTest, AWithdrawalDoesNotReachTheNextRoundOfTheOperation) {
  submit(0, "a");
  static_cast<void>(reporter.take_report());
  reporter.withdraw(0);  // not reported yet when the operation runs
  reporter.block(0);
  Plan ran = plan({{.id = 5, .key = "0:a"}});
  ran.batches.push_back(batch({5}));
  ASSERT_EQ(reporter.accept(std::move(ran)).batches.size(), 1U);
  submit(0, "a");
  const Report report = reporter.take_report();
  EXPECT_EQ(report.ready.size(), 1U);
  EXPECT_THAT(report.withdrawn, IsEmpty());
  EXPECT_THAT(report.blocked, IsEmpty());
  reporter.withdraw(0);
  EXPECT_EQ(reporter.take_report().withdrawn.size(), 1U);
}

TEST_F(ReporterTest, AddsAndRemovesSetsOnceTheBatchIsReached) {
  submit(0, "x");
  static_cast<void>(reporter.take_report());
  Plan change = plan({{.id = 1, .key = "0:x"}, {.id = 2, .key = "3:y"}});
  change.batches.push_back(batch({1}));
  change.batches[0].change = SetChange{.id = 3, .channel = 3, .ranks = {1, 2}};
  const Reporter::Outcome outcome = reporter.accept(std::move(change));
  ASSERT_TRUE(outcome.batches[0].change);
  EXPECT_EQ(outcome.batches[0].change->ranks, (std::vector<int>{1, 2}));
  const Request request = float_request("y", 4, 3);
  reporter.submit(1, request, fingerprint(request));
  Plan in_it = plan({{.id = 2, .key = "3:y"}});
  in_it.batches.push_back(batch({2}, 3));
  EXPECT_EQ(reporter.accept(std::move(in_it)).batches.size(), 1U);
}

}  // namespace
}  // namespace hvd
