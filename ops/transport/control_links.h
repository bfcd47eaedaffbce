#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "shm/host_bells.h"
#include "shm/host_segment.h"
#include "transport/transport.h"

namespace hvd {

// Whole control messages between the root (rank 0) and every other rank: over rings in the host's segment within the
// root's host, over the transport from other hosts. Progress token only; nothing blocks.
class ControlLinks {
 public:
  // Longest message that is believed; a longer one is an InternalError that names the sender.
  static constexpr std::uint64_t max_message_bytes = std::uint64_t{1} << 30;

  ControlLinks(Transport& transport, HostSegment& segment, HostBells& bells);

  // Root: any other rank. Others: the root only.
  void send(int rank, Bytes message);
  // True when that rank has taken in all that was sent to it; if not, this rank is rung when it has.
  bool idle(int rank);
  // The next message, from anybody. Also moves on what is half sent.
  std::optional<Message> receive();
  // Moves on what is half sent; true when all that was sent through memory lies in the rings.
  bool flush();

 private:
  struct Stream {
    int peer;
    int peer_local_rank;
    ByteRing out;
    ByteRing in;
    std::deque<Bytes, Pooled<Bytes>> unsent;  // framed; the first one may be partly written
    std::size_t written = 0;
    std::uint64_t expected = 0;    // frame length being read
    std::size_t length_bytes = 0;  // of the 8 length bytes, how many are in
    Bytes arriving;
    std::size_t arrived = 0;
  };

  void push(Stream& stream);
  std::optional<Message> pull(Stream& stream);
  void ring_waiting_writer(Stream& stream);
  Stream* stream_to(int rank);

  Transport& transport_;
  HostBells& bells_;
  std::vector<Stream> streams_;  // root: by local rank - 1; others on the root's host: one
  std::size_t next_ = 0;         // fairness: where receive() looks first
  bool has_remote_peers_ = false;
};

}  // namespace hvd
