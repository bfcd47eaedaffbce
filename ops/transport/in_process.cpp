#include "transport/in_process.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <hvd/error.h>
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace hvd {

namespace {

// One block of memory that several ranks hold.
class PageMemory final : public SharedMemory {
 public:
  using Block = std::shared_ptr<std::byte[]>;

  // Pages come zero-filled, as they are touched, and go back when they are freed.
  static Block make(std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw InternalError(fmt::format("no memory for {} bytes", bytes));
    return {static_cast<std::byte*>(memory), [bytes](std::byte* pages) { ::munmap(pages, bytes); }};
  }

  PageMemory(Block block, std::size_t size) : block_(std::move(block)), size_(size) {}
  std::span<std::byte> bytes() override { return {block_.get(), size_}; }

 private:
  Block block_;
  std::size_t size_;
};

}  // namespace

class InProcessHub {
 public:
  // Of data messages.
  struct Route {
    int from;
    int to;
    int channel;
    friend auto operator<=>(const Route&, const Route&) = default;
  };

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

  // The first to ask makes the block.
  PageMemory::Block share(const std::pair<int, std::string>& host_and_key, std::size_t bytes, int members) {
    const std::scoped_lock lock(mutex_);
    auto [entry, is_new] = shared_.try_emplace(host_and_key);
    if (is_new) entry->second.block = PageMemory::make(bytes);
    PageMemory::Block block = entry->second.block;
    if (++entry->second.taken == members) shared_.erase(entry);
    return block;
  }

  void put_data(const Route& route, BytesView data) {
    const std::scoped_lock lock(mutex_);
    Mailbox& box = data_[route];
    box.messages.emplace(box.sent++, Bytes(data.begin(), data.end()));
  }
  // The n-th to expect gets the n-th message, whoever looks first.
  std::uint64_t expect_data(const Route& route) {
    const std::scoped_lock lock(mutex_);
    return data_[route].expected++;
  }
  bool take_data(const Route& route, std::uint64_t number, std::span<std::byte> data) {
    const std::scoped_lock lock(mutex_);
    auto& messages = data_[route].messages;
    const auto message = messages.find(number);
    if (message == messages.end()) return false;
    if (message->second.size() != data.size()) {
      throw InternalError(fmt::format("rank {} sent {} bytes to rank {}, which expected {}", route.from,
                                      message->second.size(), route.to, data.size()));
    }
    std::ranges::copy(message->second, data.begin());
    messages.erase(message);
    return true;
  }

 private:
  struct Mailbox {
    std::uint64_t sent = 0;
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Bytes> messages;
  };
  struct Meeting {
    std::map<int, Bytes> contributions;
    bool complete = false;
  };
  struct Shared {
    PageMemory::Block block;
    int taken = 0;
  };

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<int, std::shared_ptr<Meeting>> meetings_;
  std::vector<std::deque<Message>> inboxes_;
  std::map<Route, Mailbox> data_;
  std::map<std::pair<int, std::string>, Shared> shared_;
};

namespace {

class Sent final : public Transfer {
 public:
  bool test() override { return true; }
};

class Receiving final : public Transfer {
 public:
  Receiving(InProcessHub& hub, const InProcessHub::Route& route, std::span<std::byte> data)
      : hub_(hub), route_(route), number_(hub.expect_data(route)), data_(data) {}
  bool test() override { return done_ = done_ || hub_.take_data(route_, number_, data_); }

 private:
  InProcessHub& hub_;
  InProcessHub::Route route_;
  std::uint64_t number_;
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
    PageMemory::Block block;
    if (topology_.is_leader()) block = PageMemory::make(bytes);
    const PageMemory::Block* mine = &block;
    Bytes pointer(sizeof(mine));
    std::memcpy(pointer.data(), &mine, sizeof(mine));
    const auto met = meet_on_host(pointer, limit);
    if (!topology_.is_leader()) {
      const PageMemory::Block* leaders = nullptr;
      std::memcpy(&leaders, met.begin()->second.data(), sizeof(leaders));
      block = *leaders;
    }
    meet_on_host({}, limit);
    return std::make_unique<PageMemory>(std::move(block), bytes);
  }

  std::unique_ptr<SharedMemory> try_share(const std::string& key, std::size_t bytes, int members_on_host) override {
    return std::make_unique<PageMemory>(hub_->share({topology_.host(), key}, bytes, members_on_host), bytes);
  }

  std::unique_ptr<Transfer> send_data(int rank, int channel, BytesView data) override {
    hub_->put_data({topology_.rank(), rank, channel}, data);
    return std::make_unique<Sent>();
  }
  std::unique_ptr<Transfer> receive_data(int rank, int channel, std::span<std::byte> data) override {
    return std::make_unique<Receiving>(*hub_, InProcessHub::Route{rank, topology_.rank(), channel}, data);
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
