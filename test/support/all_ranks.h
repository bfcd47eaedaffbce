#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>

namespace hvd::test {

// Every rank runs every test; on rank 0 a test fails if it failed on any rank, with the texts of all of them. The other
// ranks print their failures at once as well, for the case that rank 0 never gets to the end of the test.
class AllRanks : public testing::EmptyTestEventListener {
 public:
  AllRanks();
  ~AllRanks() override;
  AllRanks(const AllRanks&) = delete;
  AllRanks& operator=(const AllRanks&) = delete;

  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestPartResult(const testing::TestPartResult& part) override;
  void OnTestEnd(const testing::TestInfo& test) override;  // collective

  int rank() const { return rank_; }
  // The largest exit code of all ranks; collective.
  int combine(int exit_code) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::string failures_;
};

}  // namespace hvd::test
