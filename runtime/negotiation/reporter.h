#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "negotiation/messages.h"
#include "negotiation/process_sets.h"

namespace hvd {

// A rank's side of the negotiation, pure state: turns submissions into reports and plans into what this rank does next.
// The rank numbers its operations (by key) by small dense slots; the root's ids are known to this class alone.
class Reporter {
 public:
  Reporter(int rank, ProcessSets sets) : rank_(rank), sets_(std::move(sets)) {}

  // The operation has become ready. Its slot must not be in flight. `request` is copied only when it has to travel.
  void submit(std::uint32_t slot, const Request& request, std::uint64_t fingerprint,
              std::vector<std::int64_t> extents = {});
  // Asks to take it back; it fails with ErrorCode::cancelled unless it is under way by then.
  void withdraw(std::uint32_t slot);
  // A thread of this rank does nothing but wait for it.
  void block(std::uint32_t slot);
  void leave(Leave leave);

  bool has_news() const;
  bool has_only_readiness() const;
  Report take_report();

  struct Entry {
    std::uint32_t slot = 0;
    std::shared_ptr<const Request> absent;  // this rank has joined: there is no slot, and this is what the others do
    std::vector<std::vector<std::int64_t>> extents;
  };
  struct Work {
    std::uint64_t number = 0;
    std::uint32_t process_set = 0;
    std::vector<int> absent;
    std::optional<SetChange> change;
    List<Entry> entries;
  };
  struct Outcome {
    List<std::uint32_t> forgotten;  // slots that stand for nothing any more
    List<Work> batches;             // in order
    List<std::pair<std::uint32_t, Failure>> failures;
    std::optional<Stop> stop;
  };
  // Throws InternalError for a plan that cannot be, such as one of an operation that this rank has not in flight.
  Outcome accept(Plan plan);

  struct Counts {
    std::uint64_t requests_sent = 0;
    std::uint64_t requests_cached = 0;
    std::uint64_t evictions = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Slot {
    std::string key;
    std::uint32_t id = 0;
    std::uint64_t fingerprint = 0;  // of the request that travelled last
    bool in_flight = false;
  };

  void learn(const Naming& naming);
  void forget(std::uint32_t id, Outcome& outcome);
  void hear_of(Description& description, const List<Batch>& batches);
  void end(std::uint32_t slot);
  std::optional<Work> take_on(Batch& batch);
  std::optional<std::uint32_t> find(std::uint32_t id) const;
  Reference reference(std::uint32_t slot) const {
    return {slots_[slot].id, slots_[slot].id == 0 ? slots_[slot].key : ""};
  }

  int rank_;
  ProcessSets sets_;
  Report news_;
  std::vector<std::uint32_t> withdrawn_;  // slots in flight, to be told of
  std::vector<std::uint32_t> blocked_;
  bool acknowledges_ = false;  // the root waits to hear that this rank has seen a plan
  std::vector<Slot> slots_;
  std::unordered_map<std::string, std::uint32_t> unnamed_;  // slots in flight without an id, by key
  std::unordered_map<std::uint32_t, std::uint32_t> slot_of_id_;
  // What this rank has taken part in by having joined, by id; and ids of that which it has not submitted itself, by
  // key.
  std::unordered_map<std::uint32_t, std::shared_ptr<const Request>> described_;
  std::unordered_map<std::string, std::uint32_t> heard_of_;
  Counts counts_;
};

}  // namespace hvd
