#include <gtest/gtest.h>

#include <deque>

#include "negotiation/deadlock.h"

namespace hvd {
namespace {

class Deadlock : public testing::Test {
 protected:
  void block(int rank, const std::string& name, std::vector<int> waits_for) {
    WaitingTensor& operation = operations_.emplace_back();
    operation.request.name = name;
    operation.submitted_by = {rank};
    operation.waits_for = std::move(waits_for);
    blocked_.push_back({.rank = rank, .in = &operation});
  }
  std::string found() const { return describe_deadlock(find_deadlock(blocked_)); }

 private:
  std::deque<WaitingTensor> operations_;
  std::vector<BlockedRank> blocked_;
};

TEST_F(Deadlock, IsNotFoundWhereNobodyIsBlocked) { EXPECT_EQ(found(), ""); }

TEST_F(Deadlock, OfTwoRanksThatSubmitInOppositeOrderIsFound) {
  block(0, "a", {1});
  block(1, "b", {0});
  EXPECT_EQ(found(), "rank 0 waits in allreduce 'a' for [1]; rank 1 waits in allreduce 'b' for [0]");
}

TEST_F(Deadlock, IsNoneAsLongAsOneRankOfTheChainIsFree) {
  block(0, "a", {1});
  block(1, "b", {2});
  EXPECT_EQ(found(), "");
  block(2, "c", {3});
  EXPECT_EQ(found(), "");
}

TEST_F(Deadlock, IsTheCircleAloneWithoutTheRanksThatLeadToIt) {
  block(0, "a", {3});
  block(1, "b", {2});
  block(2, "c", {1});
  block(3, "d", {4, 2});
  EXPECT_EQ(found(), "rank 1 waits in allreduce 'b' for [2]; rank 2 waits in allreduce 'c' for [1]");
}

TEST_F(Deadlock, OfManyRanksIsFoundWhateverTheOrderInWhichTheyBlock) {
  for (const int start : {4, 1, 3, 0, 2}) block(start, "x" + std::to_string(start), {(start + 1) % 5});
  EXPECT_EQ(found().substr(0, 40), "rank 0 waits in allreduce 'x0' for [1]; ");
  EXPECT_NE(found().find("rank 4 waits in allreduce 'x4' for [0]"), std::string::npos);
}

TEST_F(Deadlock, IsSeenThroughAnyOfTheThreadsOfARank) {
  block(0, "a", {2});  // one thread of rank 0 waits for a rank that is free
  block(0, "b", {1});
  block(1, "c", {0});
  EXPECT_EQ(found(), "rank 0 waits in allreduce 'b' for [1]; rank 1 waits in allreduce 'c' for [0]");
}

TEST_F(Deadlock, IsFoundBehindBranchesThatLeadNowhere) {
  block(0, "a", {1, 2});
  block(1, "b", {3});
  block(3, "c", {5});
  block(2, "d", {3, 0});
  EXPECT_EQ(found(), "rank 0 waits in allreduce 'a' for [1,2]; rank 2 waits in allreduce 'd' for [0,3]");
}

}  // namespace
}  // namespace hvd
