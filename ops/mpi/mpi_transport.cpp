#include "mpi/mpi_transport.h"

#include <fmt/format.h>
#include <hvd/error.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <thread>

#include "mpi/communicator.h"
#include "mpi/environment.h"
#include "mpi/messages.h"
#include "shm/named_memory.h"

namespace hvd {

namespace {

using mpi::check;
using mpi::Communicator;

constexpr std::chrono::seconds close_limit{10};

// A shared window, allocated by the host's first rank. MPI promises no alignment, so the memory begins at the first
// cache line within it; pages map the window at equal offsets into a line everywhere.
class WindowMemory final : public SharedMemory {
 public:
  WindowMemory(const Communicator& host, std::size_t bytes) : bytes_(bytes) {
    void* mine = nullptr;
    const MPI_Aint share = host.rank() == 0 ? static_cast<MPI_Aint>(bytes + line) : 0;
    check(MPI_Win_allocate_shared(share, 1, MPI_INFO_NULL, host.get(), &mine, &window_), "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 0;
    void* base = nullptr;
    check(MPI_Win_shared_query(window_, 0, &size, &unit, &base), "MPI_Win_shared_query");
    std::size_t space = bytes + line;
    memory_ = std::align(line, bytes, base, space);
    std::size_t offset = space;
    check(MPI_Bcast(&offset, sizeof(offset), MPI_BYTE, 0, host.get()), "MPI_Bcast");
    if (offset != space) throw InternalError("the ranks of a host see their shared memory at unlike offsets");
    if (host.rank() == 0) std::memset(memory_, 0, bytes);
    check(MPI_Barrier(host.get()), "MPI_Barrier");
  }
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;
  ~WindowMemory() override {
    if (!mpi::finalized()) MPI_Win_free(&window_);
  }
  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  static constexpr std::size_t line = 64;

  std::size_t bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
  void* memory_ = nullptr;
};

void finish(MPI_Request& request, int ranks, std::chrono::duration<double> limit) {
  const auto start = std::chrono::steady_clock::now();
  for (int done = 0; done == 0;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    if (std::chrono::steady_clock::now() - start > limit) {
      throw StallError(fmt::format("init: not all {} ranks arrived within {} s", ranks, limit.count()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Making communicators blocks without a bound: first all ranks arrive.
MPI_Comm arrived(MPI_Comm communicator, std::chrono::duration<double> limit) {
  int ranks = 0;
  check(MPI_Comm_size(communicator, &ranks), "MPI_Comm_size");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(communicator, &request), "MPI_Ibarrier");
  finish(request, ranks, limit);
  return communicator;
}

// What follows depends on the setting: unlike ones would leave ranks in unlike calls, or in unlike messages.
void require_same_everywhere(const Communicator& world, std::uint64_t mine, const char* setting,
                             std::chrono::duration<double> limit) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, world.get(), &request), "MPI_Iallgather");
  finish(request, world.size(), limit);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgumentError(fmt::format("init: config differs: {}: [{}] has another value than [0]", setting, rank));
  }
}

// By rank, the world rank of its host's first rank.
std::vector<int> find_hosts(const Communicator& world, std::span<const int> pretended,
                            std::chrono::duration<double> limit) {
  std::uint64_t digest = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const int count : pretended) digest = (digest ^ static_cast<std::uint64_t>(count)) * 0x100000001b3ULL;
  require_same_everywhere(world, digest, "test_topology (HVD_TEST_TOPOLOGY)", limit);
  if (!pretended.empty()) return Topology::hosts_from_counts(pretended, world.size());
  const Communicator host = Communicator::split_by_shared_memory(world);
  int leader = world.rank();
  check(MPI_Bcast(&leader, 1, MPI_INT, 0, host.get()), "MPI_Bcast");
  std::vector<int> hosts(static_cast<std::size_t>(world.size()));
  check(MPI_Allgather(&leader, 1, MPI_INT, hosts.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  return hosts;
}

std::size_t agreed_max_count(const Communicator& world, std::int64_t max_count, std::chrono::duration<double> limit) {
  require_same_everywhere(world, static_cast<std::uint64_t>(max_count), "mpi_max_count (HVD_MPI_MAX_COUNT)", limit);
  return static_cast<std::size_t>(max_count <= 0 ? INT_MAX : std::min<std::int64_t>(max_count, INT_MAX));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm communicator, std::span<const int> pretended, std::chrono::duration<double> limit,
               std::int64_t max_count)
      : world_(Communicator::duplicate(arrived(communicator, limit))),
        topology_(world_.rank(), find_hosts(world_, pretended, limit)),
        host_(Communicator::split(world_, topology_.host())),
        messages_(world_.get(), topology_.size(), agreed_max_count(world_, max_count, limit)) {}

  const Topology& topology() const override { return topology_; }

  std::vector<Bytes> allgather(BytesView mine, std::chrono::duration<double> limit) override {
    const auto ranks = static_cast<std::size_t>(topology_.size());
    const int count = int_size(mine.size());
    std::vector<int> counts(ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, world_.get(), &request), "MPI_Iallgather");
    finish(request, topology_.size(), limit);
    std::vector<int> offsets(ranks);
    std::size_t total = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      offsets[r] = int_size(total);
      total += static_cast<std::size_t>(counts[r]);
    }
    Bytes all(total);
    check(MPI_Iallgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE,
                          world_.get(), &request),
          "MPI_Iallgatherv");
    finish(request, topology_.size(), limit);
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
    return std::make_unique<WindowMemory>(host_, bytes);
  }

  // Pretended hosts are one machine: their ranks must not meet in one memory.
  std::unique_ptr<SharedMemory> try_share(const std::string& key, std::size_t bytes, int members_on_host) override {
    return try_share_by_name(fmt::format("{}-{}", key, topology_.host()), bytes, members_on_host);
  }

  std::unique_ptr<Transfer> send_data(int rank, int channel, BytesView data) override {
    return messages_.send_data(rank, channel, data);
  }
  std::unique_ptr<Transfer> receive_data(int rank, int channel, std::span<std::byte> data) override {
    return messages_.receive_data(rank, channel, data);
  }
  void send_control(int rank, Bytes message) override { messages_.send_control(rank, std::move(message)); }
  bool control_idle(int rank) override { return messages_.control_idle(rank); }
  std::optional<Message> poll_control() override { return messages_.poll_control(); }

  bool close() noexcept override {
    if (mpi::finalized()) return false;
    try {
      return messages_.drain(close_limit);
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  static int int_size(std::size_t bytes) {
    if (bytes > INT_MAX)
      throw InternalError(fmt::format("{} bytes exchanged at start; the limit is {}", bytes, INT_MAX));
    return static_cast<int>(bytes);
  }

  Communicator world_;
  Topology topology_;
  Communicator host_;
  mpi::Messages messages_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MPI_Comm communicator, std::span<const int> pretended_ranks_per_host,
                                              std::chrono::duration<double> limit, std::int64_t max_count) {
  return std::make_unique<MpiTransport>(communicator, pretended_ranks_per_host, limit, max_count);
}

}  // namespace hvd
