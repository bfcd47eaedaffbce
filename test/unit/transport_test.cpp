// Topology, the in-process transport, and the control links over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hvd/error.h>
#include <random>
#include <thread>

#include "shm/chunk_buffers.h"
#include "transport/control_links.h"
#include "transport/count_plan.h"
#include "transport/in_process.h"
#include "transport/members.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Topology, NumbersHostsByTheirSmallestRankAndRanksWithinThem) {
  const std::vector<int> hosts{70, 30, 70, 30, 30};
  const Topology topology(3, hosts);
  EXPECT_EQ(topology.host_count(), 2);
  EXPECT_EQ(topology.host(), 1);
  EXPECT_EQ(topology.local_rank(), 1);
  EXPECT_EQ(topology.local_size(), 3);
  EXPECT_THAT(topology.ranks_on(0), ElementsAre(0, 2));
  EXPECT_THAT(topology.ranks_on(1), ElementsAre(1, 3, 4));
  EXPECT_FALSE(topology.is_homogeneous());
  EXPECT_TRUE(topology.is_local(4));
  EXPECT_FALSE(topology.is_local(0));
}

TEST(Topology, R143_CrossRanksCountHostsThatHaveTheLocalRank) {
  const std::vector<int> hosts{0, 1, 1, 1};  // h1:1, h2:3
  const auto expect_cross = [&](int rank, int cross_rank, int cross_size) {
    const Topology topology(rank, hosts);
    EXPECT_EQ(topology.cross_rank(), cross_rank) << rank;
    EXPECT_EQ(topology.cross_size(), cross_size) << rank;
  };
  expect_cross(0, 0, 2);
  expect_cross(1, 1, 2);
  expect_cross(2, 0, 1);
  expect_cross(3, 0, 1);
}

TEST(Topology, CountsPerHostMustAddUp) {
  const std::vector<int> counts{2, 1};
  EXPECT_THAT(Topology::hosts_from_counts(counts, 3), ElementsAre(0, 0, 1));
  EXPECT_THROW(Topology::hosts_from_counts(counts, 4), InvalidArgumentError);
}

TEST(ChunkPlan, UsesSmallerChunksRatherThanMoreMemoryWhenThereAreManyRanks) {
  const std::vector<int> hosts(64, 0);
  const ChunkPlan plan = ChunkPlan::make(Topology(0, hosts), 1 << 20);
  EXPECT_LT(plan.chunk_bytes, 1U << 20);
  EXPECT_GE(plan.chunk_bytes, 4096U);
  EXPECT_LT(ChunkBuffers::bytes_for(plan), 100U << 20);
}

TEST(ChunkPlan, HasRoomForAnElementOfEveryRankInEachChunk) {
  const std::vector<int> hosts(3000, 0);
  EXPECT_GE(ChunkPlan::make(Topology(0, hosts), 1 << 20).chunk_bytes, 3000 * ChunkPlan::least_per_rank);
  EXPECT_GE(ChunkPlan::make(Topology(0, std::vector<int>(5)), 64).chunk_bytes, 5 * ChunkPlan::least_per_rank);
}

TEST(Members, CountPositionsInTheSetAndKeepHosts) {
  const std::vector<int> hosts{0, 0, 1, 2, 2};
  const Members members = make_members(Topology(3, hosts), {1, 3, 4}, 7);
  EXPECT_THAT(members.ranks, ElementsAre(1, 3, 4));
  EXPECT_EQ(members.channel, 7);
  EXPECT_EQ(members.topology.rank(), 1);
  EXPECT_EQ(members.topology.size(), 3);
  EXPECT_EQ(members.topology.host_count(), 2);
  EXPECT_THAT(members.topology.ranks_on(0), ElementsAre(0));
  EXPECT_THAT(members.topology.ranks_on(1), ElementsAre(1, 2));
  EXPECT_TRUE(members.topology.is_leader());
  EXPECT_THAT(all_members(Topology(3, hosts)).ranks, ElementsAre(0, 1, 2, 3, 4));
}

// Each element once, in order, and no count above the limit.
void expect_cut(std::size_t count, std::size_t limit) {
  std::size_t next = 0;
  const std::vector<Piece> pieces = plan_counts(count, limit);
  for (const Piece& piece : pieces) {
    EXPECT_EQ(piece.begin, next);
    EXPECT_LE(piece.count, limit);
    EXPECT_TRUE(piece.count > 0 || count == 0);
    next += piece.count;
  }
  EXPECT_EQ(next, count);
  EXPECT_EQ(pieces.size(), count == 0 ? 1 : (count + limit - 1) / limit);
}

TEST(CountPlan, R69_CutsAtTheLargestCountThatMpiTakes) {
  constexpr std::size_t int_max = 2147483647;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, int_max, int_max + 1, (std::size_t{1} << 33) + 7}) {
    expect_cut(count, int_max);
  }
  EXPECT_THAT(plan_counts(int_max + 1, int_max), ElementsAre(Piece{0, int_max}, Piece{int_max, 1}));
  for (std::size_t count = 0; count < 40; ++count) expect_cut(count, 1 + count % 7);
}

TEST(CountPlan, APieceBelowTheLimitEndsAMessageOfUnknownSize) {
  EXPECT_THAT(plan_ended_counts(0, 4), ElementsAre(Piece{0, 0}));
  EXPECT_THAT(plan_ended_counts(3, 4), ElementsAre(Piece{0, 3}));
  EXPECT_THAT(plan_ended_counts(4, 4), ElementsAre(Piece{0, 4}, Piece{4, 0}));
  EXPECT_THAT(plan_ended_counts(9, 4), ElementsAre(Piece{0, 4}, Piece{4, 4}, Piece{8, 1}));
}

TEST(InProcessTransport, ChannelsKeepApartOnOneHostAndAcross) {
  const std::vector<int> hosts{0, 0, 1};
  const auto hub = make_in_process_hub(3);
  std::vector<std::unique_ptr<Transport>> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(make_in_process_transport(hub, Topology(rank, hosts)));
  for (const int to : {1, 2}) {
    const Bytes first{std::byte{1}};
    const Bytes second{std::byte{2}, std::byte{3}};
    ranks[0]->send_data(to, 5, first);
    ranks[0]->send_data(to, 0, second);
    ranks[0]->send_data(to, 5, {});
    Bytes one(1);
    Bytes two(2);
    const auto empty = ranks[static_cast<std::size_t>(to)]->receive_data(to == 1 ? 2 : 1, 5, {});
    EXPECT_FALSE(empty->test());
    EXPECT_TRUE(ranks[static_cast<std::size_t>(to)]->receive_data(0, 0, two)->test());
    EXPECT_TRUE(ranks[static_cast<std::size_t>(to)]->receive_data(0, 5, one)->test());
    EXPECT_TRUE(ranks[static_cast<std::size_t>(to)]->receive_data(0, 5, {})->test());
    EXPECT_EQ(one, first);
    EXPECT_EQ(two, second);
  }
}

TEST(InProcessTransport, AKeyGivesTheRanksOfAHostOneMemoryAndFreshMemoryLater) {
  const std::vector<int> hosts{0, 0, 1};
  const auto hub = make_in_process_hub(3);
  std::vector<std::unique_ptr<Transport>> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(make_in_process_transport(hub, Topology(rank, hosts)));
  for (int round = 0; round < 2; ++round) {
    const auto a = ranks[0]->try_share("x", 100, 2);
    const auto b = ranks[1]->try_share("x", 100, 2);
    const auto elsewhere = ranks[2]->try_share("x", 100, 1);
    EXPECT_EQ(a->bytes().data(), b->bytes().data());
    EXPECT_NE(a->bytes().data(), elsewhere->bytes().data());
    EXPECT_EQ(a->bytes().size(), 100U);
    for (const std::byte byte : a->bytes()) EXPECT_EQ(byte, std::byte{0});
    a->bytes()[99] = std::byte{1};
  }
}

// Runs `body(links, rank)` on one thread per rank.
template <typename Body>
void with_links(const std::vector<int>& hosts, const Body& body) {
  const auto hub = make_in_process_hub(static_cast<int>(hosts.size()));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    threads.emplace_back([&, rank] {
      const auto transport = make_in_process_transport(hub, Topology(rank, hosts));
      HostSegment segment(transport->share(HostSegment::bytes_for(transport->topology()), 10s));
      HostBells bells(segment, transport->topology());
      ControlLinks links(*transport, segment, bells);
      body(links, rank);
      transport->allgather({}, 10s);
    });
  }
}

Message receive(ControlLinks& links) {
  for (;;) {
    if (auto message = links.receive()) return std::move(*message);
    std::this_thread::yield();
  }
}

Bytes pattern(std::size_t size, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class ControlLinkWorlds : public testing::TestWithParam<std::vector<int>> {};

TEST_P(ControlLinkWorlds, CarryMessagesOfAnySizeBothWaysInOrder) {
  const std::vector<std::size_t> sizes{0, 1, 100, 40000, 32768, 300000, 7};
  with_links(GetParam(), [&](ControlLinks& links, int rank) {
    const int size = static_cast<int>(GetParam().size());
    if (rank == 0) {
      std::vector<std::size_t> next(static_cast<std::size_t>(size));
      for (std::size_t left = sizes.size() * (next.size() - 1); left > 0; --left) {
        const Message message = receive(links);
        const std::size_t k = next[static_cast<std::size_t>(message.sender)]++;
        EXPECT_EQ(message.bytes, pattern(sizes[k], message.sender * 100 + static_cast<int>(k)));
        links.send(message.sender, message.bytes);
      }
      for (int peer = 1; peer < size; ++peer) {
        while (!links.idle(peer)) {
          links.receive();
          std::this_thread::yield();
        }
      }
    } else {
      for (std::size_t k = 0; k < sizes.size(); ++k) links.send(0, pattern(sizes[k], rank * 100 + static_cast<int>(k)));
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        EXPECT_EQ(receive(links).bytes, pattern(sizes[k], rank * 100 + static_cast<int>(k)));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, ControlLinkWorlds,
                         testing::Values(std::vector<int>{0, 0}, std::vector<int>{0, 0, 0, 0}, std::vector<int>{0, 1},
                                         std::vector<int>{0, 0, 1, 1}));

TEST(ControlLinks, AnImpossibleLengthIsAnErrorThatNamesTheSender) {
  const std::vector<int> hosts{0, 0};
  const auto hub = make_in_process_hub(2);
  std::jthread other([&] {
    const auto transport = make_in_process_transport(hub, Topology(1, hosts));
    HostSegment segment(transport->share(HostSegment::bytes_for(transport->topology()), 10s));
    const std::uint64_t length = std::uint64_t{1} << 60;
    segment.to_leader(1).write(std::as_bytes(std::span(&length, 1)));
    transport->allgather({}, 10s);
    transport->allgather({}, 10s);
  });
  const auto transport = make_in_process_transport(hub, Topology(0, hosts));
  HostSegment segment(transport->share(HostSegment::bytes_for(transport->topology()), 10s));
  HostBells bells(segment, transport->topology());
  ControlLinks links(*transport, segment, bells);
  transport->allgather({}, 10s);
  try {
    links.receive();
    ADD_FAILURE() << "believed it";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 1 announced a control message of 1152921504606846976 bytes"));
  }
  transport->allgather({}, 10s);
}

}  // namespace
}  // namespace hvd
