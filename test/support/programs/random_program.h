#pragma once

#include <hvd/config.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../steps/step.h"

// Random programs as plain data: made from a seed, shrunk by edits, run on an in-process world.
namespace hvd::test {

// Steps that are submitted in an order of each rank's own before any of them is waited for.
using Part = std::vector<Step>;
// What one thread of every rank does: part after part; a step may be waited for in any later part.
using Stream = std::vector<Part>;

// The ranks of a set do some of the steps each and then join; who has joined serves the rest.
struct Tail {
  std::size_t set = 0;
  std::vector<Step> steps;           // of this set and of sets within it
  std::vector<std::size_t> join_at;  // by position in the set: the number of steps before the join
};

// All ranks: make sets, run the streams, join, remove sets.
struct Phase {
  std::vector<std::size_t> added;
  std::vector<Stream> streams;
  std::vector<Tail> tails;
  std::vector<std::size_t> removed;
};

struct RandomProgram {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<int> hosts;  // by ranks; empty: one
  std::int64_t chunk_bytes = 4096;
  std::int64_t fusion_threshold = 0;
  std::int64_t cache_capacity = 0;
  JoinAverage join_average = JoinAverage::all;
  bool pauses = false;
  bool shuffled = true;                  // otherwise all ranks submit in one order, and some steps have no name
  bool cancels = false;                  // ranks withdraw some of what they have submitted, and submit it again
  std::vector<std::vector<int>> sets;    // 0 has all ranks
  std::vector<std::size_t> static_sets;  // made at init
  std::vector<Phase> phases;

  Config config() const;
};

RandomProgram random_program(std::uint64_t seed);

// One change that makes a program smaller, as text: "s17" leaves out step 17.
using Edit = std::string;
RandomProgram edited(RandomProgram program, const std::vector<Edit>& edits);
// The same with one edit for all steps that are left out, where that gives the same program.
std::vector<Edit> shortened(const RandomProgram& program, const std::vector<Edit>& edits);
// Groups of edits to try on this program, the largest first; those of a group belong together.
std::vector<std::vector<Edit>> possible_edits(const RandomProgram& program);

// The number of a step within its program, which edits keep.
std::uint64_t number_of(const Step& step);
std::string to_string(const RandomProgram& program);

// Runs it, every rank in a thread of its own and every stream as well; returns what was wrong. Aborts the process when
// it hangs for so long.
std::vector<std::string> run(const RandomProgram& program, std::chrono::seconds limit);

}  // namespace hvd::test
