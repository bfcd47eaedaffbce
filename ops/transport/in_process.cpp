#include "transport/in_process.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace hvd {

namespace {

constexpr std::align_val_t page{4096};

struct PageDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, page); }
};

// One block of memory that several ranks hold.
class HeapMemory final : public SharedMemory {
 public:
  using Block = std::shared_ptr<std::byte[]>;

  static Block make(std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(::operator new[](bytes, page));
    std::memset(memory, 0, bytes);
    return {memory, PageDelete{}};
  }

  HeapMemory(Block block, std::size_t size) : block_(std::move(block)), size_(size) {}
  std::span<std::byte> bytes() override { return {block_.get(), size_}; }

 private:
  Block block_;
  std::size_t size_;
};

}  // namespace

class InProcessHub {
 public:
  explicit InProcessHub(int size) : inboxes_(static_cast<std::size_t>(size)) {}

  // Every rank of the group contributes bytes; returns all contributions, by rank, once the last one is in.
  std::map<int, Bytes> meet(int group, std::size_t members, int rank, Bytes mine, std::chrono::duration<double> limit) {
    std::unique_lock lock(mutex_);
    auto& meeting = meetings_[group];
    if (meeting == nullptr) meeting = std::make_shared<Meeting>();
    const auto joined = meeting;
    joined->contributions.emplace(rank, std::move(mine));
    if (joined->contributions.size() == members) {
      meetings_.erase(group);
      joined->complete = true;
      arrived_.notify_all();
    }
    if (!arrived_.wait_for(lock, limit, [&] { return joined->complete; })) {
      throw StallError(fmt::format("init: {} of {} ranks arrived within {} s", joined->contributions.size(), members,
                                   limit.count()));
    }
    return joined->contributions;
  }

  void post(int from, int to, Bytes message) {
    const std::scoped_lock lock(mutex_);
    inboxes_[static_cast<std::size_t>(to)].push_back({from, std::move(message)});
  }
  std::optional<Message> take(int rank) {
    const std::scoped_lock lock(mutex_);
    auto& inbox = inboxes_[static_cast<std::size_t>(rank)];
    if (inbox.empty()) return std::nullopt;
    Message message = std::move(inbox.front());
    inbox.pop_front();
    return message;
  }

  void put_data(int from, int to, BytesView data) {
    const std::scoped_lock lock(mutex_);
    data_[{from, to}].emplace_back(data.begin(), data.end());
  }
  bool take_data(int from, int to, std::span<std::byte> data) {
    const std::scoped_lock lock(mutex_);
    auto& queue = data_[{from, to}];
    if (queue.empty()) return false;
    if (queue.front().size() != data.size()) {
      throw InternalError(fmt::format("rank {} sent {} bytes to rank {}, which expected {}", from, queue.front().size(),
                                      to, data.size()));
    }
    std::ranges::copy(queue.front(), data.begin());
    queue.pop_front();
    return true;
  }

 private:
  struct Meeting {
    std::map<int, Bytes> contributions;
    bool complete = false;
  };

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<int, std::shared_ptr<Meeting>> meetings_;
  std::vector<std::deque<Message>> inboxes_;
  std::map<std::pair<int, int>, std::deque<Bytes>> data_;
};

namespace {

class Sent final : public Transfer {
 public:
  bool test() override { return true; }
};

class Receiving final : public Transfer {
 public:
  Receiving(InProcessHub& hub, int from, int to, std::span<std::byte> data)
      : hub_(hub), from_(from), to_(to), data_(data) {}
  bool test() override { return done_ = done_ || hub_.take_data(from_, to_, data_); }

 private:
  InProcessHub& hub_;
  int from_;
  int to_;
  std::span<std::byte> data_;
  bool done_ = false;
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessHub> hub, Topology topology)
      : hub_(std::move(hub)), topology_(std::move(topology)) {}

  const Topology& topology() const override { return topology_; }

  std::vector<Bytes> allgather(BytesView mine, std::chrono::duration<double> limit) override {
    auto gathered = hub_->meet(all_ranks, static_cast<std::size_t>(topology_.size()), topology_.rank(),
                               Bytes(mine.begin(), mine.end()), limit);
    std::vector<Bytes> result;
    for (auto& [rank, bytes] : gathered) result.push_back(std::move(bytes));
    return result;
  }

  std::unique_ptr<SharedMemory> share(std::size_t bytes, std::chrono::duration<double> limit) override {
    // The leader makes the block; the others learn of it through a pointer to its owner, alive until all have met
    // again.
    HeapMemory::Block block;
    if (topology_.is_leader()) block = HeapMemory::make(bytes);
    const HeapMemory::Block* mine = &block;
    Bytes pointer(sizeof(mine));
    std::memcpy(pointer.data(), &mine, sizeof(mine));
    const auto met = meet_on_host(pointer, limit);
    if (!topology_.is_leader()) {
      const HeapMemory::Block* leaders = nullptr;
      std::memcpy(&leaders, met.begin()->second.data(), sizeof(leaders));
      block = *leaders;
    }
    meet_on_host({}, limit);
    return std::make_unique<HeapMemory>(std::move(block), bytes);
  }

  std::unique_ptr<Transfer> send_data(int rank, BytesView data) override {
    hub_->put_data(topology_.rank(), rank, data);
    return std::make_unique<Sent>();
  }
  std::unique_ptr<Transfer> receive_data(int rank, std::span<std::byte> data) override {
    return std::make_unique<Receiving>(*hub_, rank, topology_.rank(), data);
  }

  void send_control(int rank, Bytes message) override { hub_->post(topology_.rank(), rank, std::move(message)); }
  bool control_idle(int /*rank*/) override { return true; }
  std::optional<Message> poll_control() override { return hub_->take(topology_.rank()); }

  bool close() noexcept override { return true; }

 private:
  static constexpr int all_ranks = -1;

  std::map<int, Bytes> meet_on_host(Bytes mine, std::chrono::duration<double> limit) {
    return hub_->meet(topology_.host(), static_cast<std::size_t>(topology_.local_size()), topology_.rank(),
                      std::move(mine), limit);
  }

  std::shared_ptr<InProcessHub> hub_;
  Topology topology_;
};

}  // namespace

std::shared_ptr<InProcessHub> make_in_process_hub(int size) { return std::make_shared<InProcessHub>(size); }

std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessHub> hub, Topology topology) {
  return std::make_unique<InProcessTransport>(std::move(hub), std::move(topology));
}

}  // namespace hvd
