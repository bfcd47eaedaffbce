#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/data_stats.h"
#include "collectives/participants.h"
#include "collectives/remote_chunks.h"
#include "shm/chunk_buffers.h"
#include "shm/host_bells.h"
#include "transport/members.h"
#include "transport/transport.h"

namespace hvd {

// The data plane of one process set as its collectives see it: an endless stream of chunks through the set's buffers on
// this host, each chunk in one of `depth`. Collectives follow each other in it without a barrier in between: a buffer
// is free for chunk k once every local rank is through with chunk k - depth. Streams of different sets do not wait for
// each other. Ranks and hosts are the set's: positions, and hosts that have members. Everything given outlives the
// stream.
class ChunkStream {
 public:
  ChunkStream(Transport& transport, const Members& members, ChunkBuffers& buffers, HostBells& bells,
              const SharedArenas* arenas = nullptr)
      : transport_(transport),
        members_(members),
        buffers_(buffers),
        bells_(bells),
        arenas_(arenas),
        everyone_(Participants::all(members.topology)),
        remote_(transport, members, stats_),
        local_ranks_(members.topology.ranks_on(members.topology.host())) {
    for (const int rank : local_ranks_) bell_numbers_.push_back(transport.topology().local_rank_of(world_rank(rank)));
  }
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  const Topology& topology() const { return members_.topology; }
  const Members& members() const { return members_; }
  // When nobody has joined.
  const Participants& everyone() const { return everyone_; }
  Transport& transport() { return transport_; }
  ChunkBuffers& buffers() { return buffers_; }
  const SharedArenas* arenas() const { return arenas_; }  // may be none
  RemoteChunks& remote() { return remote_; }
  DataStats& stats() { return stats_; }
  std::size_t chunk_bytes() const { return buffers_.plan().chunk_bytes; }
  std::span<const int> local_ranks() const { return local_ranks_; }
  bool one_host() const { return topology().host_count() == 1; }
  int leader_of(int host) const { return topology().ranks_on(host)[0]; }
  int world_rank(int rank) const { return members_.ranks[static_cast<std::size_t>(rank)]; }

  // Takes the next `count` chunks for a collective; returns the first.
  std::uint64_t reserve(std::uint64_t count) { return std::exchange(next_, next_ + count); }

  using Counter = std::atomic<std::uint64_t> ChunkProgress::*;
  // Chunk `chunk` is through this phase on that rank.
  bool passed(int rank, Counter counter, std::uint64_t chunk) {
    return (buffers_.progress(rank).*counter).load(std::memory_order_acquire) > chunk;
  }
  bool passed_by_all(std::span<const int> ranks, Counter counter, std::uint64_t chunk) {
    for (const int rank : ranks) {
      if (!passed(rank, counter, chunk)) return false;
    }
    return true;
  }
  // This rank is through the phase with the chunk and those before it: says so and rings the members on this host.
  void pass(Counter counter, std::uint64_t chunk) {
    (buffers_.progress(topology().rank()).*counter).store(chunk + 1, std::memory_order_release);
    bells_.ring_others(bell_numbers_);
  }
  bool buffer_free(std::uint64_t chunk) {
    const std::uint64_t depth = buffers_.plan().depth;
    return chunk < depth || passed_by_all(local_ranks_, &ChunkProgress::unpacked, chunk - depth);
  }
  // Takes in what has come from other hosts. True when something has.
  bool poll_remote() {
    if (one_host() || !remote_.poll()) return false;
    bells_.ring_others(bell_numbers_);
    return true;
  }
  // Something outside the chunks has been done for that member of this host.
  void ring(int rank) {
    const int bell = bell_of(rank);
    bells_.ring_others({&bell, 1});
  }
  // That member's number among the ranks of this host in the world.
  int bell_of(int rank) const { return bell_numbers_[static_cast<std::size_t>(topology().local_rank_of(rank))]; }

 private:
  Transport& transport_;
  const Members& members_;
  ChunkBuffers& buffers_;
  HostBells& bells_;
  const SharedArenas* arenas_;
  Participants everyone_;
  DataStats stats_;
  RemoteChunks remote_;
  std::span<const int> local_ranks_;
  std::vector<int> bell_numbers_;  // local ranks in the world, of local_ranks_
  std::uint64_t next_ = 0;
};

}  // namespace hvd
