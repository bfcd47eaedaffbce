#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

// The process sets that exist, pure state. Set 0 is that of all ranks.
class ProcessSets {
 public:
  struct Set {
    std::vector<int> ranks;     // world ranks, sorted
    std::uint32_t channel = 0;  // small number, unique among the sets that exist: what messages of the set are told by
  };
  static constexpr std::uint32_t most_channels = 1024;

  // `sets` become number 1, 2, ...; they have passed problem_with().
  ProcessSets(int size, const std::vector<std::vector<int>>& sets);

  // Why these ranks, sorted, cannot become a set, or nothing.
  std::string problem_with(const std::vector<int>& ranks) const;
  std::uint32_t add(const std::vector<int>& ranks);  // returns the number
  void insert(std::uint32_t id, Set set) { sets_.insert_or_assign(id, std::move(set)); }
  void remove(std::uint32_t id) { sets_.erase(id); }

  // nullptr when there is no such set.
  const Set* find(std::uint32_t id) const;
  // Every rank of `inner` is one of `outer`.
  bool contains(std::uint32_t outer, std::uint32_t inner) const;
  const std::map<std::uint32_t, Set>& all() const { return sets_; }

 private:
  int size_;
  std::uint32_t next_ = 1;
  std::uint32_t last_channel_ = 0;
  std::map<std::uint32_t, Set> sets_;
};

// Position of the rank among sorted ranks.
std::optional<std::size_t> position_in(const std::vector<int>& ranks, int rank);

}  // namespace hvd
