#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "negotiation/messages.h"

namespace hvd {

// A rank's side of the negotiation, pure state: turns submissions into reports and plans into what this rank does next.
// The rank numbers its tensors (process set and name) by small dense slots; the root's ids are known to this class
// alone.
class Reporter {
 public:
  explicit Reporter(int rank) : rank_(rank) {}

  // The tensor has become ready. Its slot must not be in flight. `request` is copied only when it has to travel.
  void submit(std::uint32_t slot, const Request& request, std::uint64_t fingerprint);
  void leave(Leave leave);

  bool has_news() const { return !news_.empty(); }
  Report take_report() { return std::exchange(news_, {}); }

  struct Entry {
    std::uint32_t slot = 0;
    std::vector<std::int64_t> rows;
  };
  struct Work {
    std::uint64_t number = 0;
    std::vector<Entry> entries;
  };
  struct Outcome {
    std::vector<Work> batches;  // in order
    std::vector<std::pair<std::uint32_t, Failure>> failures;
    std::optional<Stop> stop;
  };
  // Throws InternalError for a plan that names a tensor this rank has not in flight.
  Outcome accept(Plan plan);

 private:
  struct Slot {
    std::uint32_t id = 0;
    std::uint64_t fingerprint = 0;  // of the request that travelled last
    bool in_flight = false;
  };

  void learn(const Naming& naming);
  Slot* find(std::uint32_t id, std::uint32_t& number);

  int rank_;
  Report news_;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, std::uint32_t> unnamed_;  // slots without an id, by process set and name
  std::unordered_map<std::uint32_t, std::uint32_t> slot_of_id_;
};

// One string for the identity of a tensor.
std::string tensor_key(std::uint32_t process_set, const std::string& name);

}  // namespace hvd
