#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samples.h"
#include "world.h"

namespace hvd::bench {

// One way to do what is measured. All of them are collective.
struct Contender {
  std::string peer;  // "hvd", "mpi" or "limit"
  std::string variant;
  std::function<void(unsigned repeat)> prepare;  // writes the inputs of that repeat
  std::function<void()> run;                     // what is timed
  std::function<void(unsigned repeat, bool all)>
      check;  // throws when the result is wrong; `all`: looks at every element
};

struct Rounds {
  int rounds;           // at most
  int repeats;          // of each contender in each round
  bool in_step;         // a barrier before each repeat; else one operation chases the other
  double seconds = 60;  // about, for all rounds; what is slow has fewer repeats
};

// With --quick, all benches together are done within 40 s, also where several programs share the cores.
inline constexpr double quick_seconds = 1.2;

// What suits an operation on that many bytes.
Rounds rounds_for(std::size_t bytes, bool quick);

// Lets the contenders take turns, round by round, so that all see the same machine. Before, each warms up, and then
// `warm` is called. A sample is the time of one repeat, averaged over the ranks. Collective.
std::vector<Samples> run_rounds(const World& world, const std::vector<Contender>& contenders, const Rounds& rounds,
                                const std::function<void()>& warm = {});

}  // namespace hvd::bench
