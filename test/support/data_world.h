#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"
#include "collectives/participants.h"
#include "transport/in_process.h"

// The data plane without a runtime: ranks in threads that step collectives of process sets.
namespace hvd::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int data_rounds = 8;
#else
inline constexpr int data_rounds = 60;
#endif

// A collective to run, and what to look at when it is done.
struct Job {
  std::function<std::unique_ptr<Collective>()> start;
  std::function<void()> check;
};

// One process set as a member sees it, and what it still has to do, in the order that all members have.
struct DataSet {
  // `world` tells the world from others of this machine.
  DataSet(Transport& transport, HostBells& bells, Members its_members, std::size_t chunk_bytes,
          const std::string& world = "world")
      : members(std::move(its_members)),
        plan(ChunkPlan::make(members.topology, chunk_bytes)),
        buffers(plan, memory(transport, world)),
        stream(transport, members, buffers, bells) {}

  int rank() const { return members.topology.rank(); }
  int size() const { return members.topology.size(); }
  // True when something moved.
  bool step() {
    if (jobs.empty()) return false;
    if (running == nullptr) running = jobs.front().start();
    const Progress progress = running->step();
    if (progress != Progress::done) return progress == Progress::advanced;
    running.reset();
    jobs.front().check();
    jobs.pop_front();
    return true;
  }

  Members members;
  ChunkPlan plan;
  ChunkBuffers buffers;
  ChunkStream stream;
  std::deque<Job> jobs;
  std::unique_ptr<Collective> running;

 private:
  std::unique_ptr<SharedMemory> memory(Transport& transport, const std::string& world) const {
    const std::string key = world + "-" + std::to_string(members.channel);
    for (;;) {
      auto block = transport.try_share(key, ChunkBuffers::bytes_for(plan), members.topology.local_size());
      if (block != nullptr) return block;
      std::this_thread::yield();
    }
  }
};

// Steps all sets in turn until they have nothing left to do. A rank that waits for its host alone sleeps: the others
// must ring it.
inline void run_jobs(const std::vector<DataSet*>& sets, const Topology& world, HostBells& bells) {
  using namespace std::chrono_literals;
  constexpr auto limit = 20s;
  const auto step = [&] {
    bool moved = false;
    for (DataSet* set : sets) moved = set->step() || moved;
    return moved;
  };
  auto last_news = std::chrono::steady_clock::now();
  const auto wait = [&] {
    const bool polls = std::ranges::any_of(
        sets, [](const DataSet* set) { return set->running != nullptr && set->running->needs_polling(); });
    if (polls || world.host_count() > 1) {
      std::this_thread::yield();
      return step();
    }
    const std::uint32_t seen = bells.mine().announce(Bell::Sleeper::futex);
    const bool moved = step();
    if (!moved) bells.mine().sleep_on_futex(seen, limit);
    bells.mine().awake();
    return moved;
  };
  while (!std::ranges::all_of(sets, [](const DataSet* set) { return set->jobs.empty(); })) {
    if (step() || wait()) {
      last_news = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last_news >= limit) {
      throw std::runtime_error("a collective makes no progress, or nobody has rung");
    }
  }
}

// Runs body(transport, bells) for each rank, in a thread of its own.
template <typename Body>
void with_data_ranks(const std::vector<int>& hosts, const Body& body) {
  using namespace std::chrono_literals;
  const auto hub = make_in_process_hub(static_cast<int>(hosts.size()));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto transport = make_in_process_transport(hub, Topology(rank, hosts));
        HostSegment segment(transport->share(HostSegment::bytes_for(transport->topology()), 10s));
        HostBells bells(segment, transport->topology());
        body(*transport, bells);
        transport->allgather({}, 70s);  // messages of a rank that is ahead die with its transport
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
}

// One set of all ranks and one of some, at work at the same time; add(set, random) gives both their jobs, drawing the
// same random numbers on all members.
template <typename Add>
void run_two_sets(const std::vector<int>& hosts, std::size_t chunk_bytes, unsigned seed, const Add& add) {
  std::vector<int> some;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    if (rank % 2 == 1 || rank + 1 == static_cast<int>(hosts.size())) some.push_back(rank);
  }
  with_data_ranks(hosts, [&](Transport& transport, HostBells& bells) {
    DataSet world(transport, bells, all_members(transport.topology()), chunk_bytes);
    std::mt19937 world_random(seed);
    add(world, world_random);
    std::vector<DataSet*> sets{&world};
    std::unique_ptr<DataSet> part;
    if (std::ranges::count(some, transport.topology().rank()) > 0) {
      part = std::make_unique<DataSet>(transport, bells, make_members(transport.topology(), some, 3), chunk_bytes);
      std::mt19937 part_random(seed + 1);
      add(*part, part_random);
      sets.push_back(part.get());
    }
    run_jobs(sets, transport.topology(), bells);
  });
}

inline std::vector<std::vector<int>> data_topologies() {
  return {{0},       {0, 0},    {0, 0, 0},    {0, 0, 0, 0},    {0, 0, 0, 0, 0},
          {0, 0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 1, 0, 1}};
}

inline std::string name_of_hosts(const std::vector<int>& hosts) {
  std::string text = "Hosts";
  for (const int host : hosts) text += std::to_string(host);
  return text;
}

// ---- random cases

inline std::size_t below(std::mt19937& random, std::size_t end) { return random() % end; }

// Half of the time everybody, else somebody; `must` is always among them, unless negative.
inline std::vector<int> some_ranks(std::mt19937& random, int size, int must = -1) {
  const bool all = below(random, 2) == 0;
  std::vector<int> ranks;
  const int sure = must >= 0 ? must : static_cast<int>(below(random, static_cast<std::size_t>(size)));
  for (int rank = 0; rank < size; ++rank) {
    const bool drawn = below(random, 2) == 0;
    if (all || drawn || rank == sure) ranks.push_back(rank);
  }
  return ranks;
}

// Elements of a tensor: none, a few, or several chunks' worth.
inline std::size_t some_count(std::mt19937& random) {
  constexpr std::size_t limits[] = {1, 4, 70, 1500};
  return below(random, limits[below(random, 4)]);
}

// Reproducible elements of a rank's tensor: integers of any value, floats whose sums round.
template <typename T>
std::vector<T> values(std::size_t count, std::uint64_t seed, int rank, std::size_t tensor = 0) {
  std::mt19937_64 random(seed * 1000003 + static_cast<std::uint64_t>(rank) * 1009 + tensor);
  std::vector<T> result(count);
  for (T& value : result) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random());
    } else {
      value = T(static_cast<float>(static_cast<double>(random() >> 11U) * 0x1p-49 - 8.0));
    }
  }
  return result;
}

template <typename T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace hvd::test
