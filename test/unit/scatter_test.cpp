// Scatter and broadcast, driven without a runtime.
#include "collectives/scatter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "../support/data_world.h"
#include "collectives/broadcast.h"

namespace hvd::test {
namespace {

using Block = std::vector<std::uint8_t>;

struct Case {
  std::vector<std::vector<std::size_t>> sizes = {};  // bytes, by tensor, by rank
  std::vector<int> contributors = {};
  int root = 0;
  std::uint64_t seed = 0;
};

struct State {
  std::vector<Block> inputs;  // by tensor
  std::vector<Block> outputs;
};

Job scatter_job(DataSet& set, const Case& given) {
  auto state = std::make_shared<State>();
  const auto me = static_cast<std::size_t>(set.rank());
  const auto start = [&set, given, state, me]() -> std::unique_ptr<Collective> {
    FusedInput input;
    FusedOutput output;
    std::vector<Scatter::Window> windows;
    std::size_t total = 0;
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      const auto& sizes = given.sizes[t];
      const std::size_t before = std::accumulate(sizes.begin(), sizes.begin() + set.rank(), std::size_t{0});
      windows.push_back({total + before, sizes[me]});
      const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
      if (set.rank() == given.root) state->inputs.push_back(values<std::uint8_t>(all, given.seed, given.root, t));
      state->outputs.emplace_back(sizes[me]);
      total += all;
    }
    for (const Block& block : state->inputs) input.append(bytes_of(block), block.size());
    for (Block& block : state->outputs) output.append(bytes_of(block), block.size());
    const Participants participants(set.members.topology, given.contributors);
    return std::make_unique<Scatter>(set.stream, participants, given.root, total, std::move(input), windows,
                                     std::move(output));
  };
  const auto check = [&set, given, state, me] {
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      const auto& sizes = given.sizes[t];
      const std::size_t before = std::accumulate(sizes.begin(), sizes.begin() + set.rank(), std::size_t{0});
      const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
      const Block all = values<std::uint8_t>(total, given.seed, given.root, t);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(before);
      ASSERT_EQ(state->outputs[t], Block(begin, begin + static_cast<std::ptrdiff_t>(sizes[me])))
          << "seed " << given.seed << ", tensor " << t << " on rank " << set.rank();
    }
  };
  return {start, check};
}

// sizes[t][0] is the tensor's.
Job broadcast_job(DataSet& set, const Case& given, bool in_place) {
  auto state = std::make_shared<State>();
  const Participants participants(set.members.topology, given.contributors);
  const auto start = [&set, given, state, participants, in_place]() -> std::unique_ptr<Collective> {
    FusedInput input;
    FusedOutput output;
    std::size_t bytes = 0;
    const bool is_root = set.rank() == given.root;
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      const std::size_t size = given.sizes[t][0];
      if (is_root) state->inputs.push_back(values<std::uint8_t>(size, given.seed, given.root, t));
      state->outputs.emplace_back(size);
      bytes += size;
    }
    for (const Block& block : state->inputs) input.append(bytes_of(block), block.size());
    for (Block& block : is_root&& in_place ? state->inputs : state->outputs) {
      if (participants.contributes(set.rank())) output.append(bytes_of(block), block.size());
    }
    return std::make_unique<Broadcast>(set.stream, participants, given.root, bytes, in_place, std::move(input),
                                       std::move(output));
  };
  const auto check = [&set, given, state, participants, in_place] {
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      Block expected = values<std::uint8_t>(given.sizes[t][0], given.seed, given.root, t);
      if (!participants.contributes(set.rank())) expected.assign(expected.size(), 0);
      const bool in_input = set.rank() == given.root && in_place;
      ASSERT_EQ(in_input ? state->inputs[t] : state->outputs[t], expected)
          << "seed " << given.seed << ", tensor " << t << " on rank " << set.rank();
    }
  };
  return {start, check};
}

class ScatterData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(ScatterData, GivesEachRankItsPartAndABroadcastAllOfIt) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}}) {
    run_two_sets(GetParam(), chunk_bytes, 13, [](DataSet& set, std::mt19937& random) {
      for (int round = 0; round < data_rounds * 2; ++round) {
        Case given{.root = round % set.size(), .seed = random()};
        given.contributors = some_ranks(random, set.size(), given.root);
        for (std::size_t left = 1 + below(random, 3); left > 0; --left) {
          given.sizes.emplace_back(static_cast<std::size_t>(set.size()));
          for (const int rank : given.contributors)
            given.sizes.back()[static_cast<std::size_t>(rank)] = some_count(random);
        }
        const bool in_place = below(random, 2) == 0;
        set.jobs.push_back(below(random, 2) == 0 ? scatter_job(set, given) : broadcast_job(set, given, in_place));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, ScatterData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

TEST(ScatterData, TheRootSendsOnceToEachHostThatHasAContributor) {
  with_data_ranks({0, 0, 1, 1, 2}, [](Transport& transport, HostBells& bells) {
    DataSet set(transport, bells, all_members(transport.topology()), 1024);
    const Case given{.sizes = {{5000, 0, 0, 0, 0}}, .contributors = {0, 1, 3}, .root = 1};
    set.jobs.push_back(broadcast_job(set, given, true));
    set.jobs.push_back(scatter_job(set, given));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 1 ? 10000U : 0U);
    EXPECT_EQ(set.stream.stats().bytes_packed, set.rank() == 1 ? 10000U : 0U);
    EXPECT_EQ(set.stream.stats().bytes_unpacked, set.rank() == 0 ? 10000U : set.rank() == 3 ? 5000U : 0U);
  });
}

}  // namespace
}  // namespace hvd::test
