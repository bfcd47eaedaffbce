// Alltoall and reduce-scatter, driven without a runtime.
#include <gtest/gtest.h>

#include "../support/data_world.h"
#include "collectives/alltoall.h"
#include "collectives/reduce_scatter.h"

namespace hvd::test {
namespace {

// ---- alltoall

using Block = std::vector<std::uint8_t>;

struct AlltoallCase {
  std::vector<std::vector<std::vector<std::size_t>>> sizes = {};  // bytes, by tensor, source and destination
  std::uint64_t seed = 0;
};

Block block_of(const AlltoallCase& given, std::size_t tensor, std::size_t from, std::size_t to) {
  return values<std::uint8_t>(given.sizes[tensor][from][to], given.seed, static_cast<int>(from), tensor * 100 + to);
}

Job alltoall_job(DataSet& set, const AlltoallCase& given) {
  struct State {
    std::vector<std::vector<Block>> inputs;  // by destination, by tensor
    std::vector<std::vector<Block>> outputs;
  };
  auto state = std::make_shared<State>();
  const auto me = static_cast<std::size_t>(set.rank());
  const auto size = static_cast<std::size_t>(set.size());
  const auto start = [&set, given, state, me, size]() -> std::unique_ptr<Collective> {
    std::vector<std::vector<std::size_t>> blocks(size, std::vector<std::size_t>(size));
    std::vector<FusedInput> inputs(size);
    std::vector<FusedOutput> outputs(size);
    state->inputs.resize(size);
    state->outputs.resize(size);
    for (std::size_t t = 0; t < given.sizes.size(); ++t) {
      for (std::size_t peer = 0; peer < size; ++peer) {
        state->inputs[peer].push_back(block_of(given, t, me, peer));
        state->outputs[peer].emplace_back(given.sizes[t][peer][me]);
        for (std::size_t to = 0; to < size; ++to) blocks[peer][to] += given.sizes[t][peer][to];
      }
    }
    for (std::size_t peer = 0; peer < size; ++peer) {
      for (const Block& block : state->inputs[peer]) inputs[peer].append(bytes_of(block), block.size());
      for (Block& block : state->outputs[peer]) outputs[peer].append(bytes_of(block), block.size());
    }
    return std::make_unique<Alltoall>(set.stream, std::move(blocks), std::move(inputs), std::move(outputs));
  };
  const auto check = [given, state, me, size] {
    for (std::size_t from = 0; from < size; ++from) {
      for (std::size_t t = 0; t < given.sizes.size(); ++t) {
        ASSERT_EQ(state->outputs[from][t], block_of(given, t, from, me))
            << "seed " << given.seed << ", tensor " << t << " from " << from << " to " << me;
      }
    }
  };
  return {start, check};
}

// ---- reduce-scatter

struct ReduceCase {
  std::vector<std::vector<std::size_t>> counts = {};  // elements, by tensor, by destination
  std::vector<int> contributors = {};
  std::int64_t divisor = 1;
  std::uint64_t seed = 0;
};

template <typename T>
Job reduce_scatter_job(DataSet& set, const ReduceCase& given) {
  struct State {
    std::vector<std::vector<std::vector<T>>> inputs;  // by destination, by tensor
    std::vector<std::vector<T>> outputs;              // by tensor
  };
  auto state = std::make_shared<State>();
  const auto me = static_cast<std::size_t>(set.rank());
  const auto size = static_cast<std::size_t>(set.size());
  const auto start = [&set, given, state, me, size]() -> std::unique_ptr<Collective> {
    const Participants participants(set.members.topology, given.contributors);
    std::vector<std::size_t> parts(size);
    std::vector<FusedInput> inputs(size);
    FusedOutput output;
    state->inputs.resize(size);
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      for (std::size_t to = 0; to < size; ++to) {
        state->inputs[to].push_back(values<T>(given.counts[t][to], given.seed, set.rank(), t * 100 + to));
        parts[to] += given.counts[t][to] * sizeof(T);
      }
      state->outputs.emplace_back(given.counts[t][me]);
    }
    for (std::size_t to = 0; to < size && participants.contributes(set.rank()); ++to) {
      for (const auto& block : state->inputs[to]) inputs[to].append(bytes_of(block), block.size() * sizeof(T));
    }
    for (auto& block : state->outputs) output.append(bytes_of(block), block.size() * sizeof(T));
    const cpu::Reduction reduction{.dtype = data_type_of<T>,
                                   .op = given.divisor == 1 ? ReduceOp::sum : ReduceOp::average,
                                   .divisor = given.divisor};
    return std::make_unique<ReduceScatter>(set.stream, participants, reduction, std::move(parts), std::move(inputs),
                                           std::move(output));
  };
  const auto check = [given, state, me] {
    using A = std::conditional_t<std::is_integral_v<T>, T, float>;
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      std::vector<A> sums;
      for (const int from : given.contributors) {
        const auto input = values<T>(given.counts[t][me], given.seed, from, t * 100 + me);
        for (std::size_t i = 0; i < input.size(); ++i) {
          if (sums.size() < input.size()) {
            sums.push_back(static_cast<A>(input[i]));
          } else {
            sums[i] = static_cast<A>(sums[i] + static_cast<A>(input[i]));
          }
        }
      }
      std::vector<T> expected;
      for (const A sum : sums) expected.push_back(T(static_cast<A>(sum / static_cast<A>(given.divisor))));
      ASSERT_TRUE(same_bytes(state->outputs[t], expected)) << "seed " << given.seed << ", tensor " << t << " on " << me;
    }
  };
  return {start, check};
}

class ExchangeData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(ExchangeData, AlltoallGivesEachBlockToItsDestination) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}}) {
    run_two_sets(GetParam(), chunk_bytes, 17, [](DataSet& set, std::mt19937& random) {
      const auto size = static_cast<std::size_t>(set.size());
      for (int round = 0; round < data_rounds; ++round) {
        AlltoallCase given{.seed = random()};
        const std::vector<int> present = some_ranks(random, set.size());
        for (std::size_t left = 1 + below(random, 2); left > 0; --left) {
          given.sizes.emplace_back(size, std::vector<std::size_t>(size));
          for (const int from : present) {
            for (const int to : present) {
              given.sizes.back()[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = some_count(random);
            }
          }
        }
        set.jobs.push_back(alltoall_job(set, given));
      }
    });
  }
}

TEST_P(ExchangeData, ReduceScatterSumsContributorsInRankOrder) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}}) {
    run_two_sets(GetParam(), chunk_bytes, 19, [](DataSet& set, std::mt19937& random) {
      for (int round = 0; round < data_rounds; ++round) {
        ReduceCase given{.seed = random()};
        given.contributors = some_ranks(random, set.size());
        for (std::size_t left = 1 + below(random, 3); left > 0; --left) {
          given.counts.emplace_back(static_cast<std::size_t>(set.size()));
          for (const int to : given.contributors)
            given.counts.back()[static_cast<std::size_t>(to)] = some_count(random);
        }
        switch (below(random, 3)) {
          case 0:
            set.jobs.push_back(reduce_scatter_job<std::int16_t>(set, given));
            break;
          case 1:
            given.divisor = 3;
            set.jobs.push_back(reduce_scatter_job<bfloat16>(set, given));
            break;
          default:
            set.jobs.push_back(reduce_scatter_job<float>(set, given));
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, ExchangeData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

TEST(ExchangeData, PiecesCrossOnlyToTheHostOfTheirDestination) {
  with_data_ranks({0, 1, 0, 2}, [](Transport& transport, HostBells& bells) {
    DataSet set(transport, bells, all_members(transport.topology()), 1024);
    std::vector<std::vector<std::size_t>> sizes(4, std::vector<std::size_t>(4));
    sizes[0] = {10, 2000, 10, 512};
    sizes[3] = {256, 0, 256, 0};  // whole pieces: one message for both
    set.jobs.push_back(alltoall_job(set, {.sizes = {sizes}}));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 0 ? 2512U : set.rank() == 3 ? 512U : 0U);
  });
}

}  // namespace
}  // namespace hvd::test
