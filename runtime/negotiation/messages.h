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
// |         |               | an id is evicted                                        | it is used anew only after all ranks'    |
// |         |               |                                                         | reports say that they have seen that     |
// clang-format on

// Readiness of one operation. `request` travels when the rank has no id for the key yet or when it changed since it
// last travelled; from then on id and fingerprint stand for it.
struct Ready {
  std::uint32_t id = 0;  // 0: not known yet
  std::uint64_t fingerprint = 0;
  std::vector<std::int64_t> extents;  // Request::has_extents(): rows or splits of each tensor, or the scatter's layout
  std::optional<Request> request;
};

// An operation that this rank has reported before.
struct Reference {
  std::uint32_t id = 0;  // 0: not known yet, but by its key
  std::string key;
};

struct Leave {
  std::string reason;    // "called shutdown()"
  bool at_once = false;  // waited long enough: fail what is still in flight
  ErrorCode code = ErrorCode::shut_down;
  std::string process = {};  // "host h, pid 7", of a process that fails
};

struct Report {
  List<Ready> ready;
  List<Reference> withdrawn;     // cancelled, unless they are under way by now
  List<Reference> blocked;       // a thread does nothing but wait for them
  std::uint64_t plans_seen = 0;  // number of the last plan that this rank has taken in
  std::optional<Leave> leave;
};

struct Naming {  // from now on this id stands for this key
  std::uint32_t id = 0;
  std::string key;
};

struct Description {  // what an operation is: for ranks that have joined and take part in it all the same
  std::uint32_t id = 0;
  Request request;
};

struct BatchEntry {
  std::uint32_t id = 0;
  // By position in the set; empty unless the ranks' extents matter. Of join the rank that joined last.
  std::vector<std::vector<std::int64_t>> extents;
};

struct SetChange {
  std::uint32_t id = 0;
  std::uint32_t channel = 0;
  std::vector<int> ranks;  // none: the set is removed
};

struct Batch {
  std::uint64_t number = 0;
  std::uint32_t process_set = 0;
  std::vector<int> pair;            // of send/recv the two ranks that it concerns
  std::vector<int> absent;          // world ranks that have joined
  std::optional<SetChange> change;  // is made once this batch is reached
  List<BatchEntry> entries;
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
  ErrorCode code = ErrorCode::shut_down;
};

// In the order in which it is taken in.
struct Plan {
  std::uint64_t number = 0;
  List<std::uint32_t> evicted;  // these ids stand for nothing any more; answered by a report
  List<Naming> names;
  List<Description> descriptions;
  List<Batch> batches;
  List<FailedTensor> failures;
  std::optional<Stop> stop;
  bool empty() const { return evicted.empty() && batches.empty() && failures.empty() && !stop; }
};

Bytes encode(const Report& report);
Bytes encode(const Plan& plan);
// Throw InternalError for bytes that no encode() made.
Report decode_report(BytesView bytes);
Plan decode_plan(BytesView bytes);

}  // namespace hvd
