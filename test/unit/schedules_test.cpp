#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/cases.h"
#include "../support/world.h"

// Random programs: whatever the order in which each rank submits and waits, the results are the reference's.
namespace hvd::test {
namespace {

using Random = std::mt19937_64;

int pick(Random& random, int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }

std::vector<int> random_hosts(Random& random, int ranks) {
  if (pick(random, 0, 1) == 0) return {};
  std::vector<int> counts;
  for (int left = ranks; left > 0; left -= counts.back()) counts.push_back(pick(random, 1, left));
  return counts;
}

void add_random_case(Program& program, Random& random) {
  const DataType dtype = all_dtypes[pick(random, 0, data_type_count - 1)];
  const std::int64_t most = pick(random, 0, 9) == 0 ? 3000 : 20;
  const std::int64_t elements = pick(random, 0, static_cast<int>(most));
  switch (pick(random, 0, 9)) {
    case 0:
      return program.barrier();
    case 1:
      return program.mismatch(dtype, elements, pick(random, 0, program.ranks() - 1));
    case 2:
    case 3:
      return program.broadcast(dtype, {elements}, pick(random, 0, program.ranks() - 1), pick(random, 0, 1) == 0);
    case 4:
    case 5: {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(program.ranks()));
      for (std::int64_t& of_rank : rows) of_rank = pick(random, 0, 4) * elements / 4;
      return program.allgather(dtype, {1, pick(random, 0, 3)}, rows);
    }
    case 6:
      return program.allreduce(dtype, {elements, 2}, all_reduce_ops[pick(random, 0, 4)], pick(random, 0, 1) == 0, 0.5,
                               3.0);
    default:
      return program.allreduce(dtype, {elements}, all_reduce_ops[pick(random, 0, 4)], pick(random, 0, 1) == 0);
  }
}

// One rank's way through the program, part after part: each part is submitted in a random order, and any submitted case
// may be waited for between two parts. Waiting within a part could deadlock, with any library.
void run_shuffled(Runtime& runtime, const std::vector<std::vector<Case>>& parts, Random random) {
  std::vector<RunningCase> waited_for_later;
  const bool pauses = pick(random, 0, 3) == 0;
  for (const std::vector<Case>& part : parts) {
    std::vector<RunningCase> running;
    for (const Case& c : part) running.emplace_back(runtime, c);
    std::ranges::shuffle(running, random);
    for (RunningCase& c : running) {
      c.submit(runtime);
      if (pauses && pick(random, 0, 9) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(pick(random, 0, 200)));
    }
    std::ranges::move(running, std::back_inserter(waited_for_later));
    std::ranges::shuffle(waited_for_later, random);
    for (int count = pick(random, 0, static_cast<int>(waited_for_later.size())); count > 0; --count) {
      waited_for_later.back().check(runtime);
      waited_for_later.pop_back();
    }
  }
  for (RunningCase& c : waited_for_later) c.check(runtime);
}

struct Size {
  int most_parts;
  int most_cases;  // of a part
};

void run_program(std::uint64_t seed, Size size) {
  Random random(seed);
  const int ranks = pick(random, 2, 5);
  Config config;
  config.test_topology = random_hosts(random, ranks);
  config.chunk_bytes = std::int64_t{1024} << pick(random, 0, 6);
  config.fusion_threshold =
      std::vector<std::int64_t>{0, 100, 10'000, 128 << 20}[static_cast<std::size_t>(pick(random, 0, 3))];
  const int part_count = pick(random, 1, size.most_parts);
  const bool names_return = pick(random, 0, 1) == 0;
  std::vector<std::vector<Case>> parts;
  for (int part = 0; part < part_count; ++part) {
    Program program(ranks, config.test_topology);
    for (int count = pick(random, 1, size.most_cases); count > 0; --count) add_random_case(program, random);
    parts.push_back(program.cases());
    for (Case& c : parts.back()) c.name = (names_return ? "" : std::to_string(part) + "/") + c.name;
  }
  run_world(ranks, config, [&](Runtime& runtime) {
    const Random own(seed * 8 + static_cast<std::uint64_t>(runtime.rank()));
    if (!names_return) return run_shuffled(runtime, parts, own);
    // A name that comes again must be free: one part after the other, three times.
    for (int round = 0; round < 3; ++round) {
      for (const auto& part : parts) run_shuffled(runtime, {part}, own);
    }
  });
}

// Seeds from SCHEDULE_SEED on, 1 if not set, until the time is over; a failure names its seed.
void run_seeds(Size size, std::chrono::seconds time) {
  const char* start = std::getenv("SCHEDULE_SEED");
  const std::uint64_t first = start != nullptr ? std::stoull(start) : 1;
  const auto end = std::chrono::steady_clock::now() + time;
  std::uint64_t seed = first;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    run_program(seed, size);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ": to repeat, set SCHEDULE_SEED=" << seed;
  }
  std::cout << "seeds " << first << " to " << seed - 1 << '\n';
}

TEST(Schedules, RandomProgramsGiveTheReferenceWhateverTheOrder) {
  run_seeds({.most_parts = 6, .most_cases = 25}, std::chrono::seconds(8));
}

TEST(Schedules, ThreeHundredNamesInAnyOrderOnEachRank) {
  run_seeds({.most_parts = 2, .most_cases = 300}, std::chrono::seconds(4));
}

}  // namespace
}  // namespace hvd::test
