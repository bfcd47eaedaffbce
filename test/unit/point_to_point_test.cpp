// Messages between two members, driven without a runtime.
#include "collectives/point_to_point.h"

#include <gtest/gtest.h>

#include "../support/data_world.h"
#include "collectives/allgather.h"

namespace hvd::test {
namespace {

using Block = std::vector<std::uint8_t>;

Job message_job(DataSet& set, int from, int to, std::size_t size, std::uint64_t seed) {
  auto block = std::make_shared<Block>();
  if (set.rank() == from) {
    const auto start = [&set, block, from, to, size, seed]() -> std::unique_ptr<Collective> {
      *block = values<std::uint8_t>(size, seed, from);
      return PointToPoint::send(set.stream, to, std::as_bytes(std::span(*block)));
    };
    return {start, [] {}};
  }
  const auto start = [&set, block, from, size]() -> std::unique_ptr<Collective> {
    block->resize(size);
    return PointToPoint::receive(set.stream, from, std::as_writable_bytes(std::span(*block)));
  };
  const auto check = [block, from, size, seed] { ASSERT_EQ(*block, values<std::uint8_t>(size, seed, from)); };
  return {start, check};
}

// Everybody's one byte to everybody: chunks in between, which messages must not be taken for.
Job allgather_job(DataSet& set) {
  auto bytes = std::make_shared<Block>(static_cast<std::size_t>(set.size()) + 1);
  const auto start = [&set, bytes]() -> std::unique_ptr<Collective> {
    bytes->back() = static_cast<std::uint8_t>(set.rank() + 1);
    FusedInput input;
    input.append(bytes_of(*bytes) + set.size(), 1);
    std::vector<FusedOutput> outputs(static_cast<std::size_t>(set.size()));
    for (std::size_t rank = 0; rank < outputs.size(); ++rank) outputs[rank].append(bytes_of(*bytes) + rank, 1);
    return std::make_unique<Allgather>(set.stream, Participants::all(set.members.topology),
                                       std::vector<std::size_t>(outputs.size(), 1), std::move(input),
                                       std::move(outputs));
  };
  const auto check = [&set, bytes] {
    for (int rank = 0; rank < set.size(); ++rank) ASSERT_EQ((*bytes)[static_cast<std::size_t>(rank)], rank + 1);
  };
  return {start, check};
}

class PointToPointData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(PointToPointData, CarriesMessagesOfAnySizeInOrder) {
  run_two_sets(GetParam(), 1024, 23, [](DataSet& set, std::mt19937& random) {
    if (set.size() == 1) return;
    for (int round = 0; round < data_rounds * 4; ++round) {
      const auto ranks = static_cast<std::size_t>(set.size());
      const auto from = static_cast<int>(below(random, ranks));
      const int to = (from + 1 + static_cast<int>(below(random, ranks - 1))) % set.size();
      const std::size_t size = some_count(random);
      const std::uint64_t seed = random();
      if (set.rank() == from || set.rank() == to) set.jobs.push_back(message_job(set, from, to, size, seed));
      if (round % 10 == 0) set.jobs.push_back(allgather_job(set));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, PointToPointData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

TEST(PointToPointData, AReceiverWaitsUntilItIsRungAndAsksToBeLookedAt) {
  with_data_ranks({0, 0}, [](Transport& transport, HostBells& bells) {
    using namespace std::chrono_literals;
    DataSet set(transport, bells, all_members(transport.topology()), 1024);
    const std::vector<std::byte> given{std::byte{1}, std::byte{2}, std::byte{3}};
    std::vector<std::byte> got(3);
    if (set.rank() == 0) {
      transport.allgather({}, 10s);
      EXPECT_EQ(PointToPoint::send(set.stream, 1, given)->step(), Progress::done);
      EXPECT_EQ(set.stream.stats().bytes_sent, 3U);
      return;
    }
    const auto receiver = PointToPoint::receive(set.stream, 0, got);
    EXPECT_EQ(receiver->step(), Progress::advanced);
    EXPECT_EQ(receiver->step(), Progress::waiting);
    EXPECT_TRUE(receiver->needs_polling());
    EXPECT_EQ(receiver->phase(), Phase::started);
    const std::uint32_t seen = bells.mine().announce(Bell::Sleeper::futex);
    transport.allgather({}, 10s);
    while (bells.mine().rings.load() == seen) bells.mine().sleep_on_futex(seen, 1s);
    EXPECT_EQ(receiver->step(), Progress::done);
    EXPECT_FALSE(receiver->needs_polling());
    EXPECT_EQ(got, given);
  });
}

}  // namespace
}  // namespace hvd::test
