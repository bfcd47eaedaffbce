#include "mpi/mpi_transport.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <climits>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "mpi/environment.h"

namespace hvd {

namespace {

using mpi::check;

// Owns one duplicate or split of a communicator; errors come back as codes.
class Communicator {
 public:
  explicit Communicator(MPI_Comm handle) : handle_(handle) {
    check(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  Communicator(Communicator&& other) noexcept : handle_(std::exchange(other.handle_, MPI_COMM_NULL)) {}
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator() {
    if (handle_ != MPI_COMM_NULL && !mpi::finalized()) MPI_Comm_free(&handle_);
  }

  static Communicator duplicate(MPI_Comm original) {
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
    return Communicator(copy);
  }

  MPI_Comm get() const { return handle_; }
  int rank() const {
    int rank = 0;
    check(MPI_Comm_rank(handle_, &rank), "MPI_Comm_rank");
    return rank;
  }
  int size() const {
    int size = 0;
    check(MPI_Comm_size(handle_, &size), "MPI_Comm_size");
    return size;
  }

 private:
  MPI_Comm handle_;
};

int byte_count(std::size_t bytes) {
  if (bytes > INT_MAX) throw InternalError(fmt::format("{} bytes in one MPI message; the limit is {}", bytes, INT_MAX));
  return static_cast<int>(bytes);
}

class MpiTransfer final : public Transfer {
 public:
  explicit MpiTransfer(MPI_Request request) : request_(request) {}
  // The transport outlives its transfers' buffers: one that is given up is detached, not waited for.
  ~MpiTransfer() override {
    if (request_ == MPI_REQUEST_NULL || mpi::finalized()) return;
    MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }
  bool test() override {
    int done = 1;
    check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

 private:
  MPI_Request request_;
};

class WindowMemory final : public SharedMemory {
 public:
  WindowMemory(MPI_Comm host, std::size_t bytes) : bytes_(bytes) {
    int local_rank = 0;
    check(MPI_Comm_rank(host, &local_rank), "MPI_Comm_rank");
    void* mine = nullptr;
    const MPI_Aint share = local_rank == 0 ? static_cast<MPI_Aint>(bytes) : 0;
    check(MPI_Win_allocate_shared(share, 1, MPI_INFO_NULL, host, &mine, &window_), "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 0;
    check(MPI_Win_shared_query(window_, 0, &size, &unit, &memory_), "MPI_Win_shared_query");
    if (local_rank == 0) std::memset(memory_, 0, bytes);
    check(MPI_Barrier(host), "MPI_Barrier");
  }
  ~WindowMemory() override {
    if (!mpi::finalized()) MPI_Win_free(&window_);
  }
  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  std::size_t bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
  void* memory_ = nullptr;
};

std::vector<int> find_hosts(const Communicator& world, std::span<const int> pretended) {
  if (!pretended.empty()) return Topology::hosts_from_counts(pretended, world.size());
  MPI_Comm split = MPI_COMM_NULL;
  check(MPI_Comm_split_type(world.get(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &split),
        "MPI_Comm_split_type");
  const Communicator host(split);
  int leader = world.rank();
  check(MPI_Bcast(&leader, 1, MPI_INT, 0, host.get()), "MPI_Bcast");
  std::vector<int> hosts(static_cast<std::size_t>(world.size()));
  check(MPI_Allgather(&leader, 1, MPI_INT, hosts.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  return hosts;
}

Communicator host_communicator(const Communicator& world, const Topology& topology) {
  MPI_Comm split = MPI_COMM_NULL;
  check(MPI_Comm_split(world.get(), topology.host(), topology.rank(), &split), "MPI_Comm_split");
  return Communicator(split);
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm communicator, std::span<const int> pretended)
      : world_(Communicator::duplicate(communicator)),
        topology_(world_.rank(), find_hosts(world_, pretended)),
        host_(host_communicator(world_, topology_)) {}

  const Topology& topology() const override { return topology_; }

  std::vector<Bytes> allgather(BytesView mine, std::chrono::duration<double> limit) override {
    const auto ranks = static_cast<std::size_t>(topology_.size());
    const int count = byte_count(mine.size());
    std::vector<int> counts(ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, world_.get(), &request), "MPI_Iallgather");
    finish(request, limit);
    std::vector<int> offsets(ranks);
    std::size_t total = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      offsets[r] = byte_count(total);
      total += static_cast<std::size_t>(counts[r]);
    }
    Bytes all(total);
    check(MPI_Iallgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE,
                          world_.get(), &request),
          "MPI_Iallgatherv");
    finish(request, limit);
    std::vector<Bytes> result;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto part =
          BytesView(all).subspan(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r]));
      result.emplace_back(part.begin(), part.end());
    }
    return result;
  }

  // The ranks have just met in allgather(): the window's own collectives do not wait for late ones.
  std::unique_ptr<SharedMemory> share(std::size_t bytes, std::chrono::duration<double> /*limit*/) override {
    return std::make_unique<WindowMemory>(host_.get(), bytes);
  }

  std::unique_ptr<Transfer> send_data(int rank, BytesView data) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(data.data(), byte_count(data.size()), MPI_BYTE, rank, data_tag, world_.get(), &request),
          "MPI_Isend");
    return std::make_unique<MpiTransfer>(request);
  }
  std::unique_ptr<Transfer> receive_data(int rank, std::span<std::byte> data) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(data.data(), byte_count(data.size()), MPI_BYTE, rank, data_tag, world_.get(), &request),
          "MPI_Irecv");
    return std::make_unique<MpiTransfer>(request);
  }

  void send_control(int rank, Bytes message) override {
    auto& sending = control_[rank].emplace_back(std::move(message), MPI_REQUEST_NULL);
    check(MPI_Isend(sending.first.data(), byte_count(sending.first.size()), MPI_BYTE, rank, control_tag, world_.get(),
                    &sending.second),
          "MPI_Isend");
  }
  bool control_idle(int rank) override {
    auto& queue = control_[rank];
    while (!queue.empty()) {
      int done = 0;
      check(MPI_Test(&queue.front().second, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) return false;
      queue.pop_front();
    }
    return true;
  }
  std::optional<Message> poll_control() override {
    int there = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, control_tag, world_.get(), &there, &handle, &status), "MPI_Improbe");
    if (there == 0) return std::nullopt;
    int count = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    Message message{.sender = status.MPI_SOURCE, .bytes = Bytes(static_cast<std::size_t>(count))};
    check(MPI_Mrecv(message.bytes.data(), count, MPI_BYTE, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return message;
  }

  // The last control message of each rank must be out before its communicator goes.
  void close() noexcept override {
    try {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      for (auto& [rank, queue] : control_) {
        while (!control_idle(rank) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      }
    } catch (const std::exception&) {
      // A broken link has been reported where it broke; here only resources are given back.
    }
  }

 private:
  static constexpr int control_tag = 1;
  static constexpr int data_tag = 2;

  void finish(MPI_Request& request, std::chrono::duration<double> limit) const {
    const auto start = std::chrono::steady_clock::now();
    for (int done = 0; done == 0;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
      if (std::chrono::steady_clock::now() - start > limit) {
        throw StallError(fmt::format("init: not all {} ranks arrived within {} s", topology_.size(), limit.count()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  Communicator world_;
  Topology topology_;
  Communicator host_;
  std::map<int, std::deque<std::pair<Bytes, MPI_Request>>> control_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator, std::span<const int> pretended_ranks_per_host) {
  return std::make_unique<MpiTransport>(communicator, pretended_ranks_per_host);
}

}  // namespace hvd
