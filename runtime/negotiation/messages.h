#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hvd/error.h>

#include "negotiation/request.h"
#include "transport/transport.h"

namespace hvd {

// The two messages of the negotiation. A rank reports what has become ready on it; the root answers, to all ranks, with
// the plan of what runs next.
//
// clang-format off
// | message | from -> to    | sent when                                               | why in this order                        |
// |---------|---------------|---------------------------------------------------------|------------------------------------------|
// | Report  | rank -> root  | there is news and the root has taken in the last report | what piles up meanwhile travels together |
// | Plan    | root -> ranks | something is ready everywhere, failed, or all must stop | plans arrive in one order, so batches    |
// |         |               |                                                         | run in one order everywhere: no deadlock |
// clang-format on

// Readiness of one tensor. `request` travels when the rank has no id for the name yet or when it changed since it last
// travelled; from then on id and fingerprint stand for it.
struct Ready {
  std::uint32_t id = 0;  // 0: not known yet
  std::uint64_t fingerprint = 0;
  std::int64_t rows = 0;  // first dimension, where that is free
  std::optional<Request> request;
};

struct Leave {
  std::string reason;    // "called shutdown()"
  bool at_once = false;  // waited long enough: fail what is still in flight
};

struct Report {
  std::vector<Ready> ready;
  std::optional<Leave> leave;
  bool empty() const { return ready.empty() && !leave; }
};

struct Naming {  // from now on this id stands for this tensor
  std::uint32_t id = 0;
  std::uint32_t process_set = 0;
  std::string name;
};

struct BatchEntry {
  std::uint32_t id = 0;
  std::vector<std::int64_t> rows;  // by rank of the set; empty unless free
};

struct Batch {
  std::uint64_t number = 0;
  std::vector<BatchEntry> entries;
};

// Concerns the submissions of these ranks. Another rank's, sent before it could hear of this, begins a new round.
struct FailedTensor {
  std::uint32_t id = 0;
  std::vector<int> ranks;
  Failure failure;
};

struct Stop {
  std::string reason;
  bool abandon = false;  // do not run the batches that are under way to their end: a rank may be missing from them
};

struct Plan {
  std::vector<Naming> names;
  std::vector<Batch> batches;
  std::vector<FailedTensor> failures;
  std::optional<Stop> stop;
  bool empty() const { return batches.empty() && failures.empty() && !stop; }
};

Bytes encode(const Report& report);
Bytes encode(const Plan& plan);
// Throw InternalError for bytes that no encode() made.
Report decode_report(BytesView bytes);
Plan decode_plan(BytesView bytes);

}  // namespace hvd
