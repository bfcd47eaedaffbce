#include "all_ranks.h"

#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <vector>

namespace hvd::test {

AllRanks::AllRanks() {
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

AllRanks::~AllRanks() { MPI_Comm_free(&communicator_); }

void AllRanks::OnTestStart(const testing::TestInfo& /*test*/) { failures_.clear(); }

void AllRanks::OnTestPartResult(const testing::TestPartResult& part) {
  if (!part.failed() || rank_ == 0) return;
  std::ostringstream text;
  text << (part.file_name() != nullptr ? part.file_name() : "unknown file") << ':' << part.line_number() << ": "
       << part.message() << '\n';
  std::fprintf(stderr, "[rank %d] %s", rank_, text.str().c_str());
  failures_ += text.str();
}

void AllRanks::OnTestEnd(const testing::TestInfo& /*test*/) {
  const int length = static_cast<int>(failures_.size());
  std::vector<int> lengths(static_cast<std::size_t>(size_));
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, communicator_);
  std::vector<int> offsets;
  int total = 0;
  for (const int one : lengths) {
    offsets.push_back(total);
    total += one;
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  MPI_Gatherv(failures_.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR, 0, communicator_);
  if (rank_ != 0) return;
  for (std::size_t rank = 1; rank < lengths.size(); ++rank) {
    if (lengths[rank] == 0) continue;
    ADD_FAILURE() << "on rank " << rank << ":\n"
                  << std::string_view(all).substr(static_cast<std::size_t>(offsets[rank]),
                                                  static_cast<std::size_t>(lengths[rank]));
  }
}

int AllRanks::combine(int exit_code) const {
  int largest = exit_code;
  MPI_Allreduce(&exit_code, &largest, 1, MPI_INT, MPI_MAX, communicator_);
  return largest;
}

}  // namespace hvd::test
