#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "negotiation/id_list.h"
#include "negotiation/request.h"
#include "negotiation/stall.h"
#include "types/pooled.h"

namespace hvd {

// What the root knows of one operation. It goes round: idle -> waiting (first rank reports) -> complete (last rank
// reports) -> planned, idle again; or from waiting to failed, idle again. Vectors go by position in `participants`.
struct OperationState {
  std::string key;
  std::string name;
  std::uint32_t process_set = 0;
  std::vector<int> participants;  // world ranks, sorted
  bool announced = false;         // every participant knows the id
  std::uint64_t described = 0;    // at which count of joins, and as what, the joined ranks heard of it
  std::uint64_t described_as = 0;
  std::unordered_map<std::uint64_t, Request> said;  // by fingerprint
  std::vector<std::uint64_t> reported;              // the rank's fingerprint; 0: not yet
  std::vector<std::uint64_t> last;                  // what it reported last, and may refer to again
  std::vector<std::vector<std::int64_t>> extents;
  std::size_t count = 0;         // of ranks that have reported
  std::vector<int> absent;       // once complete: ranks that take part by having joined
  TimePoint since;               // first report
  TimePoint lacks_one_since;     // all but one have reported
  std::uint64_t evicted_by = 0;  // number of the plan that told so; 0: lives

  bool has_reported(int rank) const;
  std::vector<int> ranks(bool that_have_reported) const;
  // What the first rank that has reported said.
  const Request& request() const;
  // Idle again; what no rank can refer to any more is forgotten.
  void reset();
};

// Numbers for operations, so that their keys and descriptions need not travel again. At most `capacity` are kept (more
// only while in flight); the least recently used idle ones are evicted. An evicted number is not used again before all
// ranks have said that they know, and what a rank has reported under it meanwhile is still understood.
class OperationIds {
 public:
  OperationIds(int size, std::size_t capacity)
      : capacity_(capacity), seen_(static_cast<std::size_t>(size)), states_(1) {}

  OperationState& operator[](std::uint32_t id) { return states_[id]; }
  const OperationState& operator[](std::uint32_t id) const { return states_[id]; }
  // 0 when the key has no number.
  std::uint32_t find(const std::string& key) const;
  bool valid(std::uint32_t id) const { return id > 0 && id < states_.size() && !states_[id].key.empty(); }
  std::uint32_t add(OperationState state);

  void start_use(std::uint32_t id) { idle_.erase(id); }
  void end_use(std::uint32_t id) { idle_.push_back(id); }

  // Its key will not come again: is evicted next, if idle.
  void retire(std::uint32_t id);
  // All of a process set that is no more.
  void retire_set(std::uint32_t process_set);

  // The numbers that the plan with this number takes back.
  List<std::uint32_t> evict(std::uint64_t plan);
  // The rank has taken in all plans up to this one.
  void on_seen(int rank, std::uint64_t plan);

 private:
  void evict(std::uint32_t id, std::uint64_t plan, List<std::uint32_t>& evicted);

  std::size_t capacity_;
  std::vector<std::uint64_t> seen_;  // by rank
  std::vector<OperationState> states_;
  std::unordered_map<std::string, std::uint32_t> id_of_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> retired_;
  std::deque<std::uint32_t> evicted_;  // in order
  IdList idle_;                        // least recently used first
};

}  // namespace hvd
