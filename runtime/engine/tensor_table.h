#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/pending_operation.h"
#include "engine/shared_sets.h"

namespace hvd::detail {

// What this rank has in flight, by key. Any thread submits; the thread that drives progress takes and finishes.
class TensorTable {
 public:
  // Operations without a name take turns among this many names.
  static constexpr std::uint64_t unnamed_names = 4096;

  explicit TensorTable(const SharedSets& sets) : sets_(sets) {}

  // Gives the operation its number and slot, and a name if it has none. Throws DuplicateNameError when the name is in
  // flight, InvalidArgumentError while this rank has joined the set, the closing failure's error once closed, and what
  // has failed unseen, see raise_next().
  void admit(const OperationPtr& operation);
  // Makes an admitted operation visible to the driver.
  void hand_over(const OperationPtr& operation);
  // Asks the driver to cancel it, or to tell that a thread does nothing but wait for it.
  void ask_to_withdraw(const OperationPtr& operation) { ask(withdrawn_, operation); }
  void tell_blocked(const OperationPtr& operation) { ask(blocked_, operation); }

  struct News {
    std::vector<OperationPtr> submitted;
    std::vector<OperationPtr> withdrawn;
    std::vector<OperationPtr> blocked;
    void clear();
  };
  // Moves what was submitted and asked since the last call to the end of `news`; true if there was anything.
  bool take_news(News& news);
  // The operation in that slot; its name may be used again.
  OperationPtr release(std::uint32_t slot);
  // The slot may be given to another key: once its operation has ended, if one is `executing`, else at once, unless one
  // has just been submitted.
  void forget(std::uint32_t slot, bool executing);
  // Nobody has seen this failure: the next admit() throws it.
  void raise_next(Failure failure);
  // Nothing can be submitted any more; returns all that was in flight.
  std::vector<OperationPtr> close(const Failure& failure);

 private:
  struct Slot {
    OperationPtr operation;            // null: not in flight
    const std::string* key = nullptr;  // of slot_of_; null: free
    bool forgotten = false;            // to be freed once its operation has ended
  };

  void name(Request& request);
  std::uint64_t& unnamed_count(const Request& request);
  void refuse_if_joined(const Request& request) const;
  std::uint32_t slot_for(const std::string& key);
  void free(Slot& slot, std::uint32_t number);
  void ask(std::vector<OperationPtr>& list, const OperationPtr& operation);

  const SharedSets& sets_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> slot_of_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<OperationPtr> submitted_;
  std::vector<OperationPtr> withdrawn_;
  std::vector<OperationPtr> blocked_;
  std::atomic<bool> has_news_{false};
  std::map<std::string, std::uint64_t> unnamed_;  // by kind, set and, of send/recv, pair
  std::vector<std::uint32_t> joined_;             // sets whose join is in flight
  std::uint64_t next_number_ = 1;
  std::optional<Failure> unseen_;
  std::optional<Failure> closed_;
};

}  // namespace hvd::detail
