#pragma once

#include <cstdint>
#include <vector>

#include "negotiation/arbiter.h"
#include "steps.h"

// What the targets of the two sides of the negotiation and the worlds that their seeds come from have in common.
namespace hvd::fuzz {

constexpr int least_ranks = 3;
inline int ranks_of(int header) { return least_ranks + header % 2; }
inline ProcessSets sets_of(int ranks) { return {ranks, {{0, 1}, {1, 2}}}; }

inline Arbiter::Options options_of(int header) {
  return {.fusion_threshold = (header & 2) != 0 ? 64 : 0,
          .stall_warning = Seconds((header & 4) != 0 ? 10 : 0),
          .stall_shutdown = Seconds((header & 8) != 0 ? 40 : 0),
          .cache_capacity = (header & 16) != 0 ? 2U : 64U};
}

// Steps of the root. The argument is the sender, the process set, or seconds.
namespace root_step {
enum Kind { report, report_with_true_fingerprints, plan, batch_done, time };
constexpr int with_message = plan;
}  // namespace root_step

// Steps of a rank. The argument is which of the operations below.
namespace rank_step {
enum Kind { plan, submit, withdraw, block, report, leave };
constexpr int with_message = submit;
}  // namespace rank_step

struct Submission {
  Request request;
  std::vector<std::int64_t> extents;
  std::vector<int> by;  // none: all ranks of the set
};

inline Submission submission(Operation operation, const char* name, std::uint32_t process_set, bool with_tensor) {
  Submission made;
  made.request.name = name;
  made.request.operation = operation;
  made.request.process_set = process_set;
  if (with_tensor) made.request.tensors.push_back({.dtype = DataType::f32, .shape = Shape{4, 2}});
  return made;
}

// Where in submissions() these begin.
constexpr std::size_t joins_from = 12;
constexpr std::size_t process_sets_from = 14;

// Of each kind of operation one, for a world of so many ranks.
inline std::vector<Submission> submissions(int rank, int ranks) {
  std::vector<Submission> all;
  const auto add = [&](Operation operation, const char* name, std::uint32_t process_set = 0,
                       bool with_tensor = true) -> Submission& {
    return all.emplace_back(submission(operation, name, process_set, with_tensor));
  };
  add(Operation::allreduce, "a");
  add(Operation::allreduce, "a").request.tensors.front().shape = Shape{5};
  add(Operation::allreduce, "b");
  add(Operation::reduce, "c", 1).request.root = 1;
  add(Operation::reduce_scatter, "d", 2);
  add(Operation::broadcast, "e").request.root = 2;
  add(Operation::allgather, "f").extents = {4};
  add(Operation::gather, "g", 1).extents = {4};
  Submission& scatter = add(Operation::scatter, "h", 0, false);
  if (rank == 0) {
    scatter.extents =
        encode_scatter(std::vector<ScatterLayout>{{.tensor = {.dtype = DataType::f32, .shape = Shape{4, 2}},
                                                   .splits = equal_shares(4, static_cast<std::size_t>(ranks))}});
  }
  add(Operation::alltoall, "i").extents = equal_shares(4, static_cast<std::size_t>(ranks));
  Submission& pair = add(Operation::send_recv, "j");
  pair.request.root = 2;
  pair.request.peer = 1;
  pair.by = {1, 2};
  add(Operation::barrier, "k", 0, false);
  add(Operation::join, "join", 0, false);
  add(Operation::join, "join", 1, false);
  add(Operation::add_process_set, "[0,2]", 0, false).extents = {0, 2};
  add(Operation::add_process_set, "[0,1,2]", 0, false).extents = {0, 1, 2};
  add(Operation::remove_process_set, "1", 0, false).request.root = 1;
  add(Operation::remove_process_set, "2", 0, false).request.root = 2;
  return all;
}

}  // namespace hvd::fuzz
