// The transport over MPI, and collectives over it, without a runtime.
#include "mpi/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/error.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "../support/data_world.h"
#include "../support/mpi_world.h"
#include "collectives/allgather.h"
#include "collectives/point_to_point.h"

namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// All on one host, or the last rank on one of its own.
std::vector<std::vector<int>> topologies() {
  std::vector<std::vector<int>> all{{world_size()}};
  if (world_size() > 1) all.push_back({world_size() - 1, 1});
  return all;
}

std::string world_name(Transport& transport) {
  const std::uint64_t mine = std::random_device()();
  std::uint64_t first = 0;
  const auto all = transport.allgather(std::as_bytes(std::span(&mine, 1)), 10s);
  std::memcpy(&first, all[0].data(), sizeof(first));
  return "test" + std::to_string(first);
}

std::size_t names_left(const std::string& world) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find(world) != std::string::npos) ++count;
  }
  return count;
}

template <typename Done>
void wait_until(const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST(MpiTransport, MemoryOfOneNameIsSharedByTheRanksOfAHostAndLeavesNoName) {
  for (const auto& hosts : topologies()) {
    const auto transport = make_mpi_transport(MPI_COMM_WORLD, hosts, 10s);
    const Topology& topology = transport->topology();
    const std::string world = world_name(*transport);
    for (int round = 0; round < 3; ++round) {
      std::unique_ptr<SharedMemory> memory;
      wait_until([&] {
        memory = transport->try_share(world + "-a", 100'000, topology.local_size());
        return memory != nullptr;
      });
      const auto bytes = memory->bytes();
      ASSERT_EQ(bytes.size(), 100'000U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0U);
      EXPECT_TRUE(std::ranges::all_of(bytes.subspan(50'000), [](std::byte byte) { return byte == std::byte{0}; }));
      bytes[static_cast<std::size_t>(topology.local_rank())] = static_cast<std::byte>(topology.host() + 1);
      transport->allgather({}, 10s);
      EXPECT_EQ(names_left(world), 0U);
      for (int rank = 0; rank < topology.local_size(); ++rank) {
        EXPECT_EQ(bytes[static_cast<std::size_t>(rank)], static_cast<std::byte>(topology.host() + 1));
      }
      bytes.back() = std::byte{1};
      transport->allgather({}, 10s);
    }
    EXPECT_TRUE(transport->close());
  }
}

TEST(MpiTransport, MemoryThatNobodyElseHasComeForTakesItsNameAlong) {
  const auto transport = make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s);
  const std::string world = world_name(*transport);
  if (transport->topology().rank() == 0) {
    auto memory = transport->try_share(world, 100, world_size() + 1);
    EXPECT_EQ(names_left(world), 1U);
    memory.reset();
    EXPECT_EQ(names_left(world), 0U);
  }
  EXPECT_TRUE(transport->close());
}

TEST(MpiTransport, MemoryThatThereIsNoRoomForIsAnError) {
  const auto transport = make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s);
  const std::string world = world_name(*transport);
  const std::size_t bytes = std::size_t{1} << 46;
  std::string text;
  wait_until([&] {
    try {
      EXPECT_EQ(transport->try_share(world, bytes, world_size()), nullptr);
    } catch (const InternalError& error) {
      text = error.what();
    }
    return !text.empty();
  });
  EXPECT_EQ(text, "/dev/shm has no room for 70368744177664 bytes");
  MPI_Barrier(MPI_COMM_WORLD);  // no other rank is in the midst of its attempt
  EXPECT_EQ(names_left(world), 0U);
  EXPECT_TRUE(transport->close());
}

Bytes pattern(std::size_t size, std::size_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 7 + seed * 31 + i / 251) & 255U);
  return bytes;
}

// Everybody to everybody, on two channels at a time, received in another order than sent.
TEST(MpiTransport, MessagesOfAnySizeAreCutAtTheLimitAndKeepTheirOrder) {
  constexpr std::size_t sizes[] = {0, 1, 6, 7, 8, 14, 4096, 100'003};
  for (const std::int64_t limit : {1, 7, 4096, 0}) {
    const auto transport = make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s, limit);
    const auto me = static_cast<std::size_t>(transport->topology().rank());
    const auto ranks = static_cast<std::size_t>(world_size());
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<Bytes> sent;
    std::vector<std::vector<Bytes>> got(ranks);
    // The smaller the pieces, the smaller what is cut into them: thousands of requests at a time take MPI long.
    const std::size_t count = std::size(sizes) - (limit == 1 ? 2 : limit == 7 ? 1 : 0);
    for (std::size_t k = 0; k < count; ++k) sent.push_back(pattern(sizes[k], me + k));
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      for (std::size_t k = 0; k < count; ++k) {
        transfers.push_back(transport->send_data(static_cast<int>(peer), k % 2 == 0 ? 0 : 2047, sent[k]));
        if (peer != me) transport->send_control(static_cast<int>(peer), sent[k]);
      }
    }
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      for (std::size_t k = 0; k < count; ++k) got[peer].emplace_back(sizes[k]);
      for (const std::size_t first : {1U, 0U}) {
        for (std::size_t k = first; k < count; k += 2) {
          const int channel = k % 2 == 0 ? 0 : 2047;
          transfers.push_back(transport->receive_data(static_cast<int>(peer), channel, got[peer][k]));
        }
      }
    }
    std::vector<std::size_t> next(ranks);
    std::size_t messages = 0;
    wait_until([&] {
      if (const auto message = transport->poll_control()) {
        const auto peer = static_cast<std::size_t>(message->sender);
        EXPECT_EQ(message->bytes, pattern(sizes[next[peer]], peer + next[peer]));
        ++next[peer];
        ++messages;
      }
      std::erase_if(transfers, [](const auto& transfer) { return transfer->test(); });
      return transfers.empty() && messages == (ranks - 1) * count;
    });
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      for (std::size_t k = 0; k < count; ++k) EXPECT_EQ(got[peer][k], pattern(sizes[k], peer + k));
      if (peer != me) wait_until([&] { return transport->control_idle(static_cast<int>(peer)); });
    }
    EXPECT_TRUE(transport->close());
  }
}

TEST(MpiTransport, ClosingTakesInWhatNobodyHasReceived) {
  const auto transport = make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s, 1000);
  const Bytes message = pattern(50'000, 1);
  Bytes given_up(50'000);
  const int next = (transport->topology().rank() + 1) % world_size();
  transport->send_data(next, 5, message);
  transport->send_control(next, message);
  transport->receive_data(next, 6, given_up);
  EXPECT_TRUE(transport->close());
}

// What the negotiation rules out: the two sides of a message know unlike sizes.
TEST(MpiTransport, R16_AMessageOfAnotherSizeThanExpectedIsAnErrorThatNamesRanksAndBytes) {
  if (world_size() == 1) GTEST_SKIP() << "needs 2 ranks";
  for (const std::int64_t limit : {0, 7}) {
    const auto transport = make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s, limit);
    const int me = transport->topology().rank();
    const int next = (me + 1) % world_size();
    const int last = (me + world_size() - 1) % world_size();
    const Bytes sixteen(16);
    const Bytes twenty(20);
    Bytes room(20);
    const auto error_of = [&](BytesView sent, std::span<std::byte> expected) {
      const auto receiving = transport->receive_data(last, 5, expected);
      const auto sending = transport->send_data(next, 5, sent);
      std::string text;
      wait_until([&] {
        try {
          return receiving->test();
        } catch (const InternalError& error) {
          text = error.what();
          return true;
        }
      });
      wait_until([&] { return sending->test(); });
      return text;
    };
    const std::string from = "rank " + std::to_string(last) + " sent ";
    const std::string to = " to rank " + std::to_string(me);
    EXPECT_EQ(error_of(sixteen, room), from + "16 bytes" + to + ", which expected 20");
    EXPECT_EQ(error_of(twenty, std::span(room).first(16)), from + "more bytes" + to + " than the 16 that it expected");
    EXPECT_EQ(error_of(twenty, room), "");
    EXPECT_TRUE(transport->close());
  }
}

TEST(MpiTransport, UnlikeLimitsAreAnErrorOnAllRanks) {
  if (world_size() == 1) GTEST_SKIP() << "needs 2 ranks";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    make_mpi_transport(MPI_COMM_WORLD, std::vector<int>{}, 10s, rank == 0 ? 0 : 1000);
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("mpi_max_count (HVD_MPI_MAX_COUNT)"));
  }
}

struct Block {
  std::vector<std::uint8_t> mine;
  std::vector<std::vector<std::uint8_t>> all;
};

Job allgather_job(DataSet& set, std::size_t size, std::uint64_t seed) {
  auto block = std::make_shared<Block>();
  const auto start = [&set, block, size, seed]() -> std::unique_ptr<Collective> {
    FusedInput input;
    std::vector<FusedOutput> outputs(static_cast<std::size_t>(set.size()));
    block->mine = values<std::uint8_t>(size, seed, set.rank());
    block->all.resize(outputs.size());
    input.append(bytes_of(block->mine), size);
    for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
      block->all[rank].resize(size);
      outputs[rank].append(bytes_of(block->all[rank]), size);
    }
    return std::make_unique<Allgather>(set.stream, Participants::all(set.members.topology),
                                       std::vector<std::size_t>(outputs.size(), size), std::move(input),
                                       std::move(outputs));
  };
  const auto check = [&set, block, size, seed] {
    for (int rank = 0; rank < set.size(); ++rank) {
      ASSERT_EQ(block->all[static_cast<std::size_t>(rank)], values<std::uint8_t>(size, seed, rank));
    }
  };
  return {start, check};
}

// From the set's first member to its last.
Job message_job(DataSet& set, std::size_t size) {
  auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  const bool sends = set.rank() == 0;
  const auto start = [&set, bytes, size, sends]() -> std::unique_ptr<Collective> {
    *bytes = sends ? values<std::uint8_t>(size, size, 0) : std::vector<std::uint8_t>(size);
    if (sends) return PointToPoint::send(set.stream, set.size() - 1, std::as_bytes(std::span(*bytes)));
    return PointToPoint::receive(set.stream, 0, std::as_writable_bytes(std::span(*bytes)));
  };
  return {start, [bytes, size] { ASSERT_EQ(*bytes, values<std::uint8_t>(size, size, 0)); }};
}

TEST(MpiTransport, CarriesTheCollectivesOfTwoSetsAtATime) {
  for (const auto& hosts : topologies()) {
    const auto transport = make_mpi_transport(MPI_COMM_WORLD, hosts, 10s, 1000);
    const Topology& topology = transport->topology();
    const std::string name = world_name(*transport);
    {
      HostSegment segment(transport->share(HostSegment::bytes_for(topology), 10s));
      HostBells bells(segment, topology);
      DataSet world(*transport, bells, all_members(topology), 4096, name);
      std::vector<int> odd;
      for (int rank = 1; rank < topology.size(); rank += 2) odd.push_back(rank);
      std::unique_ptr<DataSet> part;
      std::vector<DataSet*> sets{&world};
      if (topology.rank() % 2 == 1) {
        part = std::make_unique<DataSet>(*transport, bells, make_members(topology, odd, 9), 4096, name);
        sets.push_back(part.get());
      }
      for (const std::size_t size : {0, 10, 5000, 60'000}) {
        for (DataSet* set : sets) {
          set->jobs.push_back(allgather_job(*set, size, size + static_cast<std::size_t>(set->members.channel)));
          const bool has_end = set->rank() == 0 || set->rank() == set->size() - 1;
          if (set->size() > 1 && has_end) set->jobs.push_back(message_job(*set, size));
        }
      }
      run_jobs(sets, topology, bells);
      EXPECT_EQ(names_left(name), 0U);
      EXPECT_TRUE(transport->close());
    }
  }
}

}  // namespace
}  // namespace hvd::test
