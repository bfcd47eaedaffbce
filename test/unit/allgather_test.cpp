// Allgather and gather, driven without a runtime.
#include "collectives/allgather.h"

#include <gtest/gtest.h>

#include <optional>

#include "../support/data_world.h"

namespace hvd::test {
namespace {

using Block = std::vector<std::uint8_t>;

struct Case {
  std::vector<std::vector<std::size_t>> sizes = {};  // bytes, by tensor, by rank
  std::vector<int> contributors = {};
  std::optional<int> root = {};
  std::uint64_t seed = 0;
};

Job allgather_job(DataSet& set, const Case& given) {
  struct State {
    std::vector<Block> inputs;
    std::vector<std::vector<Block>> outputs;  // by rank, by tensor
  };
  auto state = std::make_shared<State>();
  const Participants participants(set.members.topology, given.contributors, given.root);
  const auto start = [&set, given, state, participants]() -> std::unique_ptr<Collective> {
    FusedInput input;
    std::vector<FusedOutput> outputs;
    std::vector<std::size_t> blocks(static_cast<std::size_t>(set.size()));
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      const auto me = static_cast<std::size_t>(set.rank());
      state->inputs.push_back(values<std::uint8_t>(given.sizes[t][me], given.seed, set.rank(), t));
    }
    for (const Block& block : state->inputs) input.append(bytes_of(block), block.size());
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      state->outputs.emplace_back();
      for (const auto& sizes : given.sizes) {
        blocks[rank] += sizes[rank];
        state->outputs[rank].emplace_back(sizes[rank]);
      }
    }
    for (std::size_t rank = 0; rank < blocks.size() && participants.takes(set.rank()); ++rank) {
      outputs.emplace_back();
      for (Block& block : state->outputs[rank]) outputs.back().append(bytes_of(block), block.size());
    }
    return std::make_unique<Allgather>(set.stream, participants, std::move(blocks), std::move(input),
                                       std::move(outputs));
  };
  const auto check = [&set, given, state, participants] {
    if (!participants.takes(set.rank())) return;
    for (int rank = 0; rank < set.size(); ++rank) {
      for (std::size_t t = 0; t < given.sizes.size(); ++t) {
        const auto expected = values<std::uint8_t>(given.sizes[t][static_cast<std::size_t>(rank)], given.seed, rank, t);
        ASSERT_EQ(state->outputs[static_cast<std::size_t>(rank)][t], expected)
            << "seed " << given.seed << ", tensor " << t << " of rank " << rank << " on rank " << set.rank();
      }
    }
  };
  return {start, check};
}

class AllgatherData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(AllgatherData, GivesEveryBlockToThoseWhoTake) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}}) {
    run_two_sets(GetParam(), chunk_bytes, 11, [](DataSet& set, std::mt19937& random) {
      for (int round = 0; round < data_rounds; ++round) {
        Case given{.seed = random()};
        const int root = round % set.size();
        given.contributors = some_ranks(random, set.size(), root);
        if (below(random, 2) == 0) given.root = root;
        for (std::size_t left = 1 + below(random, 3); left > 0; --left) {
          given.sizes.emplace_back(static_cast<std::size_t>(set.size()));
          for (const int rank : given.contributors)
            given.sizes.back()[static_cast<std::size_t>(rank)] = some_count(random);
        }
        set.jobs.push_back(allgather_job(set, given));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, AllgatherData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

TEST(AllgatherData, BlocksCrossOnlyToHostsThatTake) {
  with_data_ranks({0, 0, 1, 2}, [](Transport& transport, HostBells& bells) {
    DataSet set(transport, bells, all_members(transport.topology()), 1024);
    const std::vector<std::size_t> sizes{0, 3000, 5000, 0};
    set.jobs.push_back(allgather_job(set, {.sizes = {sizes}, .contributors = {0, 1, 2}, .root = 0}));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 2 ? 5000U : 0U);
    EXPECT_EQ(set.stream.stats().bytes_unpacked, set.rank() == 0 ? 8000U : 0U);
    set.jobs.push_back(allgather_job(set, {.sizes = {sizes}, .contributors = {0, 1, 2}, .root = {}}));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 2 ? 10000U : set.rank() == 1 ? 3000U : 0U);
  });
}

}  // namespace
}  // namespace hvd::test
