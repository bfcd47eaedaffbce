#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace hvd {

// "[0,2,3]"; more than 16 ranks as ranges, "[0-5,7,9-30]". The ranks are sorted and freed of duplicates.
std::string format_ranks(std::span<const int> ranks);

// Collects what each rank says and puts it into the form that all messages about several ranks have.
class RankGroups {
 public:
  // A rank's later value replaces its earlier one.
  void add(int rank, std::string value);

  // No two ranks have unlike values.
  bool agree() const;
  // "[0,1,3] 128 MiB; [2] 64 MiB": ranks with equal values share a group, groups are ordered by their smallest rank.
  std::string to_string() const;

 private:
  std::map<int, std::string> values_;
};

}  // namespace hvd
