#include "collectives/remote_chunks.h"

namespace hvd {

void RemoteChunks::send(std::uint64_t chunk, int rank, BytesView data) {
  if (data.empty()) return;
  sending_.push_back({chunk, transport_.send_data(world_rank(rank), members_.channel, data)});
  stats_.bytes_sent += data.size();
}

void RemoteChunks::expect(std::uint64_t chunk, int rank, std::span<std::byte> data,
                          std::atomic<std::uint64_t>& arrived) {
  auto transfer = data.empty() ? nullptr : transport_.receive_data(world_rank(rank), members_.channel, data);
  expected_[rank].push_back({chunk, std::move(transfer), &arrived});
}

bool RemoteChunks::poll() {
  bool news = false;
  for (auto& [rank, queue] : expected_) {
    while (!queue.empty() && (queue.front().transfer == nullptr || queue.front().transfer->test())) {
      queue.front().arrived->store(queue.front().chunk + 1, std::memory_order_release);
      queue.pop_front();
      news = true;
    }
  }
  return news;
}

bool RemoteChunks::sent(std::uint64_t chunk) {
  while (!sending_.empty() && sending_.front().chunk <= chunk && sending_.front().transfer->test())
    sending_.pop_front();
  return sending_.empty() || sending_.front().chunk > chunk;
}

}  // namespace hvd
