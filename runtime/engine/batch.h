#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/pending_operation.h"
#include "negotiation/messages.h"

namespace hvd::detail {

// One agreed batch of this rank: operations of one kind, in the order all ranks have.
struct ExecutableBatch {
  std::uint64_t number = 0;
  std::uint32_t process_set = 0;
  std::vector<int> absent;  // world ranks that have joined
  std::optional<SetChange> change;
  List<OperationPtr> operations;
  List<std::vector<std::vector<std::int64_t>>> extents;  // by operation; see BatchEntry

  const Request& request() const { return operations.front()->request; }
};

}  // namespace hvd::detail
