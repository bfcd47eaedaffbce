#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "collectives/data_stats.h"
#include "transport/members.h"
#include "transport/transport.h"

namespace hvd {

// Chunks of one process set on their way to and from ranks on other hosts. Those from one rank are taken in the order
// in which they were expected. Ranks are positions in the set.
class RemoteChunks {
 public:
  RemoteChunks(Transport& transport, const Members& members, DataStats& stats)
      : transport_(transport), members_(members), stats_(stats) {}

  void send(std::uint64_t chunk, int rank, BytesView data);
  // Once the data is in, `arrived` becomes chunk + 1. An empty chunk is not sent.
  void expect(std::uint64_t chunk, int rank, std::span<std::byte> data, std::atomic<std::uint64_t>& arrived);
  // Tests what is under way. True when something has arrived.
  bool poll();
  // All sends of chunks up to and including this one are through.
  bool sent(std::uint64_t chunk);

 private:
  struct Sending {
    std::uint64_t chunk;
    std::unique_ptr<Transfer> transfer;
  };
  struct Expected {
    std::uint64_t chunk;
    std::unique_ptr<Transfer> transfer;  // null: empty
    std::atomic<std::uint64_t>* arrived;
  };

  int world_rank(int rank) const { return members_.ranks[static_cast<std::size_t>(rank)]; }

  Transport& transport_;
  const Members& members_;
  DataStats& stats_;
  std::deque<Sending> sending_;
  std::map<int, std::deque<Expected>> expected_;
};

}  // namespace hvd
