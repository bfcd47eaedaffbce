#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/pending_operation.h"

namespace hvd::detail {

// What this rank has in flight, by name. Any thread submits; the thread that drives progress takes and finishes.
class TensorTable {
 public:
  // Operations without a name take turns among this many names.
  static constexpr std::uint64_t unnamed_names = 4096;

  // Gives the operation its number and slot, and a name if it has none. Throws DuplicateNameError when the name is in
  // flight and the closing failure's error once closed.
  void admit(const OperationPtr& operation);
  // Makes an admitted operation visible to the driver.
  void hand_over(const OperationPtr& operation);
  // Moves what was submitted since the last call to the end of `taken`; true if there was anything.
  bool take_submitted(std::vector<OperationPtr>& taken);
  // The operation in that slot; its name may be used again.
  OperationPtr release(std::uint32_t slot);
  // Nothing can be submitted any more; returns all that was in flight.
  std::vector<OperationPtr> close(const Failure& failure);

 private:
  void name(Request& request);

  std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> slot_of_;  // by tensor_key
  std::vector<OperationPtr> slots_;                         // null: not in flight
  std::vector<OperationPtr> submitted_;
  std::atomic<bool> has_submitted_{false};
  std::unordered_map<Operation, std::uint64_t> unnamed_;
  std::uint64_t next_number_ = 1;
  std::optional<Failure> closed_;
};

}  // namespace hvd::detail
