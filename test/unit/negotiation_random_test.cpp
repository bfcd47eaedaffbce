// Random programs of random worlds in random schedules: see negotiation_checks.h for what is checked at each end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "../support/world.h"
#include "negotiation_explorer.h"

namespace hvd {
namespace {

class RandomScenario {
 public:
  explicit RandomScenario(unsigned seed) : random_(seed) {
    const int size = 2 + pick(3);
    scenario_.programs.resize(static_cast<std::size_t>(size));
    for (int left = pick(3); left > 0; --left) add_set(size);
    scenario_.options.fusion_threshold = pick(3) == 0 ? 0 : 64;
    scenario_.options.cache_capacity = static_cast<std::size_t>(pick(2) == 0 ? 1 + pick(4) : 100);
    scenario_.piles_up = pick(2) == 0;
    const bool clean = pick(3) == 0;
    for (int left = 1 + pick(3); left > 0; --left) add_epoch(clean);
    if (clean) {
      scenario_.at_end = [](const NegotiationWorld& world) {
        for (int rank = 0; rank < world.size(); ++rank) {
          for (const auto& handle : world.handles(rank)) EXPECT_TRUE(!handle.open && !handle.failure) << rank;
        }
      };
    } else if (pick(4) == 0) {
      auto& program = any(scenario_.programs);
      program.insert(program.begin() + pick(static_cast<int>(program.size()) + 1), leaves());
    }
  }
  const Scenario& scenario() const { return scenario_; }
  std::mt19937& random() { return random_; }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  template <typename List>
  typename List::value_type& any(List& list) {
    return list[static_cast<std::size_t>(pick(static_cast<int>(list.size())))];
  }

  void add_set(int size) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) {
      if (pick(2) == 0) ranks.push_back(rank);
    }
    const ProcessSets sets(size, scenario_.sets);
    if (sets.problem_with(ranks).empty()) scenario_.sets.push_back(ranks);
  }

  // Operations in an order of each rank's own, then a join of all. Some ranks join early, so that the others'
  // operations go on without them; if it is not to be clean, some disagree, take back, or have the wrong root.
  void add_epoch(bool clean) {
    const ProcessSets sets(static_cast<int>(scenario_.programs.size()), scenario_.sets);
    std::vector<std::vector<Step>> steps(scenario_.programs.size());
    for (int name = 0, names = 1 + pick(5); name < names; ++name) add_operation(sets, name, clean, steps);
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      std::ranges::shuffle(steps[rank], random_);
      if (pick(4) == 0) steps[rank].resize(static_cast<std::size_t>(pick(static_cast<int>(steps[rank].size()) + 1)));
      if (!clean && pick(3) == 0 && !steps[rank].empty()) steps[rank].push_back(cancels(any(steps[rank]).request));
      steps[rank].push_back(joins());
      if (!clean && pick(8) == 0) steps[rank].push_back(cancels(join_request()));
      scenario_.programs[rank].insert(scenario_.programs[rank].end(), steps[rank].begin(), steps[rank].end());
    }
  }

  void add_operation(const ProcessSets& sets, int name, bool clean, std::vector<std::vector<Step>>& steps) {
    const auto set = static_cast<std::uint32_t>(pick(static_cast<int>(sets.all().size())));
    const std::vector<int>& ranks = sets.find(set)->ranks;
    Request request = float_request("t" + std::to_string(name), 1 + pick(6), set);
    const int kind = pick(clean ? 3 : 6);
    if (kind == 1) request.operation = Operation::allgather;
    if (kind == 2) request = bare_request(Operation::barrier, request.name, set);
    if (kind == 3) request.operation = Operation::broadcast;
    if (kind == 4) request.operation = Operation::alltoall;
    if (kind == 3) request.root = ranks[static_cast<std::size_t>(pick(static_cast<int>(ranks.size())))];
    const int odd_one = !clean && pick(6) == 0 ? pick(static_cast<int>(steps.size())) : -1;
    for (const int rank : ranks) {
      Request mine = request;
      if (rank == odd_one) mine.prescale = 2;
      std::vector<std::int64_t> extents;
      if (kind == 1) extents = {pick(5)};
      if (kind == 4) extents.assign(ranks.size(), pick(2));
      steps[static_cast<std::size_t>(rank)].push_back(submits(mine, extents));
    }
  }

  std::mt19937 random_;
  Scenario scenario_;
};

// From SCHEDULE_SEED on, 1 if not set; a failure names its seed.
TEST(NegotiationRandom, ProgramsWithJoinsSetsEvictionsAndFailuresInAnySchedule) {
  const char* start = std::getenv("SCHEDULE_SEED");
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::stoul(start)) : 1;
  const unsigned programs = test::sanitized ? 400 : 5'000;
  constexpr int schedules = 8;
  std::uint64_t evictions = 0;
  for (unsigned seed = first; seed < first + programs; ++seed) {
    RandomScenario random(seed);
    Explorer explorer(random.scenario());
    for (int i = 0; i < schedules && !HasFailure(); ++i) explorer.walk(random.random());
    evictions += explorer.evictions();
    if (HasFailure()) FAIL() << "to repeat, set SCHEDULE_SEED=" << seed;
  }
  std::cout << programs * schedules << " schedules, " << evictions << " evictions\n";
  EXPECT_GT(evictions, programs);
}

}  // namespace
}  // namespace hvd
