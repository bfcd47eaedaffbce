#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/topology.h"
#include "types/pooled.h"

namespace hvd {

using Bytes = List<std::byte>;
using BytesView = std::span<const std::byte>;

// Memory that all ranks of one host see, at addresses of their own. Zero-filled when made, aligned to 64 bytes.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
};

// A message under way to or from another rank.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // True once the message is through: a received one lies in its buffer, a sent one's buffer may be used again.
  virtual bool test() = 0;
};

struct Message {
  int sender = 0;
  Bytes bytes;
};

// How the ranks reach each other: MPI, or in-process for tests. The one seam under hvd's control and data planes on
// CPU.
//
// Threads: one at a time (the holder of the progress token), after construction by the thread that joins.
// Ordering: control messages between two ranks arrive in the order sent, and so do data messages of one channel; those
// of different channels do not see each other.
// Failure: throws InternalError. allgather() and share() throw StallError when a rank does not come
// within the time limit; nothing else blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual const Topology& topology() const = 0;
  // Collective over all ranks, at start only.
  virtual std::vector<Bytes> allgather(BytesView mine, std::chrono::duration<double> limit) = 0;
  // Collective over the ranks of this host, at start only; all ask for the same size.
  virtual std::unique_ptr<SharedMemory> share(std::size_t bytes, std::chrono::duration<double> limit) = 0;

  // Memory that all ranks of this host which ask with the same key share; all ask for the same size and give the number
  // of those who will. Nobody waits: null when it is not there yet, then ask again later. The key, letters, digits and
  // dashes, must be unknown to other worlds on the machine; once all have the memory it may be used for another piece.
  // Any thread.
  virtual std::unique_ptr<SharedMemory> try_share(const std::string& key, std::size_t bytes, int members_on_host) = 0;

  // Bulk data, of any size, 0 included, that both sides know. The buffer stays valid until the transfer is through or
  // the transport gone.
  virtual std::unique_ptr<Transfer> send_data(int rank, int channel, BytesView data) = 0;
  virtual std::unique_ptr<Transfer> receive_data(int rank, int channel, std::span<std::byte> data) = 0;

  // Control messages between ranks on different hosts, of any size. The sender may forget the bytes at once.
  virtual void send_control(int rank, Bytes message) = 0;
  // True when every control message to that rank has left; no news is sent before.
  virtual bool control_idle(int rank) = 0;
  virtual std::optional<Message> poll_control() = 0;

  // Collective over all ranks, after the last message: they meet once more, so that what was made can be freed. False
  // when one does not come within a bound; then the transport and its memory must be left as they are.
  [[nodiscard]] virtual bool close() noexcept = 0;
};

}  // namespace hvd
