// Allreduce and reduce, driven without a runtime.
#include "collectives/allreduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "../support/data_world.h"

namespace hvd::test {
namespace {

template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 8, double, float>>;

// In rank order within each host, then in host order; the divisor once, at the end.
// Integers wrap.
template <typename A>
A sum_of(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using Unsigned = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T reference(const Topology& topology, const std::vector<int>& contributors, std::int64_t divisor,
            const std::vector<std::vector<T>>& inputs, std::size_t i) {
  using A = Accumulator<T>;
  std::optional<A> total;
  for (int host = 0; host < topology.host_count(); ++host) {
    std::optional<A> sum;
    for (const int rank : contributors) {
      if (topology.host_of(rank) != host) continue;
      const A value = static_cast<A>(inputs[static_cast<std::size_t>(rank)][i]);
      sum = sum ? sum_of(*sum, value) : value;
    }
    if (sum) total = total ? sum_of(*total, *sum) : *sum;
  }
  return T(divisor == 1 ? *total : static_cast<A>(*total / static_cast<A>(divisor)));
}

struct Case {
  std::vector<std::size_t> counts = {};  // elements, by tensor
  std::vector<int> contributors = {};
  std::optional<int> root = {};
  bool in_place = false;
  std::int64_t divisor = 1;
  std::uint64_t seed = 0;
};

template <typename T>
Job allreduce_job(DataSet& set, const Case& given) {
  struct State {
    std::vector<std::vector<T>> inputs;
    std::vector<std::vector<T>> outputs;
  };
  auto state = std::make_shared<State>();
  const Participants participants(set.members.topology, given.contributors, given.root);
  const bool contributes = participants.contributes(set.rank());
  const bool takes = participants.takes(set.rank());
  const auto start = [&set, given, state, participants, contributes, takes]() -> std::unique_ptr<Collective> {
    FusedInput input;
    FusedOutput output;
    std::size_t bytes = 0;
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      state->inputs.push_back(values<T>(given.counts[t], given.seed, set.rank(), t));
      state->outputs.emplace_back(given.counts[t]);
    }
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      const std::size_t size = given.counts[t] * sizeof(T);
      std::byte* target = bytes_of(given.in_place ? state->inputs[t] : state->outputs[t]);
      if (contributes) input.append(bytes_of(state->inputs[t]), size);
      if (takes) output.append(target, size);
      bytes += size;
    }
    const cpu::Reduction reduction{.dtype = data_type_of<T>,
                                   .op = given.divisor == 1 ? ReduceOp::sum : ReduceOp::average,
                                   .divisor = given.divisor};
    return std::make_unique<Allreduce>(set.stream, participants, reduction, bytes, std::move(input), std::move(output));
  };
  const auto check = [&set, given, state, takes] {
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      std::vector<std::vector<T>> inputs;
      for (int rank = 0; rank < set.size(); ++rank) inputs.push_back(values<T>(given.counts[t], given.seed, rank, t));
      std::vector<T> expected(given.counts[t]);
      if (!takes && given.in_place) expected = inputs[static_cast<std::size_t>(set.rank())];
      for (std::size_t i = 0; takes && i < expected.size(); ++i) {
        expected[i] = reference(set.members.topology, given.contributors, given.divisor, inputs, i);
      }
      const std::vector<T>& got = given.in_place ? state->inputs[t] : state->outputs[t];
      ASSERT_TRUE(same_bytes(got, expected)) << "seed " << given.seed << ", tensor " << t << " on rank " << set.rank();
    }
  };
  return {start, check};
}

class AllreduceData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(AllreduceData, SumsContributorsInRankOrderForThoseWhoTake) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}, std::size_t{16384}}) {
    run_two_sets(GetParam(), chunk_bytes, 7, [](DataSet& set, std::mt19937& random) {
      for (int round = 0; round < data_rounds * 3; ++round) {
        Case given{.seed = random()};
        for (std::size_t left = 1 + below(random, 3); left > 0; --left) given.counts.push_back(some_count(random));
        const int root = round % set.size();
        const bool reduce = below(random, 2) == 0;
        given.contributors = some_ranks(random, set.size(), root);
        if (reduce) given.root = root;
        given.in_place = below(random, 2) == 0;
        if (below(random, 2) == 0) given.divisor = 5;
        switch (below(random, 4)) {
          case 0:
            given.divisor = 1;
            set.jobs.push_back(allreduce_job<std::int32_t>(set, given));
            break;
          case 1:
            set.jobs.push_back(allreduce_job<float16>(set, given));
            break;
          case 2:
            set.jobs.push_back(allreduce_job<double>(set, given));
            break;
          default:
            set.jobs.push_back(allreduce_job<float>(set, given));
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, AllreduceData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

TEST(AllreduceData, HostsThatTakeNothingAreSentNothing) {
  with_data_ranks({0, 1, 2}, [](Transport& transport, HostBells& bells) {
    DataSet set(transport, bells, all_members(transport.topology()), 1024);
    set.jobs.push_back(allreduce_job<float>(set, {.counts = {2000}, .contributors = {0, 1, 2}, .root = 1}));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 1 ? 0U : 8000U);
    EXPECT_EQ(set.stream.stats().bytes_packed, 0U) << "each is the only one on its host";
    EXPECT_EQ(set.stream.stats().bytes_unpacked, set.rank() == 1 ? 8000U : 0U);
    set.jobs.push_back(allreduce_job<float>(set, {.counts = {2000}, .contributors = {2}, .root = {}}));
    run_jobs({&set}, transport.topology(), bells);
    EXPECT_EQ(set.stream.stats().bytes_sent, set.rank() == 1 ? 0U : 8000U);
  });
}

}  // namespace
}  // namespace hvd::test
