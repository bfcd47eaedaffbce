#include "transport/control_links.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <cstring>

namespace hvd {

namespace {

constexpr int root = 0;

Bytes framed(BytesView message) {
  const std::uint64_t length = message.size();
  Bytes frame(sizeof(length) + message.size());
  std::memcpy(frame.data(), &length, sizeof(length));
  std::ranges::copy(message, frame.begin() + sizeof(length));
  return frame;
}

}  // namespace

ControlLinks::ControlLinks(Transport& transport, HostSegment& segment, HostBells& bells)
    : transport_(transport), bells_(bells) {
  const Topology& topology = transport.topology();
  has_remote_peers_ = topology.rank() == root ? topology.host_count() > 1 : !topology.is_local(root);
  if (!topology.is_local(root)) return;
  for (const int peer : topology.ranks_on(topology.host())) {
    if (peer == topology.rank() || (topology.rank() != root && peer != root)) continue;
    const int member = topology.rank() == root ? topology.local_rank_of(peer) : topology.local_rank();
    const bool down = topology.rank() == root;
    streams_.push_back({.peer = peer,
                        .peer_local_rank = topology.local_rank_of(peer),
                        .out = down ? segment.from_leader(member) : segment.to_leader(member),
                        .in = down ? segment.to_leader(member) : segment.from_leader(member),
                        .unsent = {},
                        .arriving = {}});
  }
}

ControlLinks::Stream* ControlLinks::stream_to(int rank) {
  const auto found = std::ranges::find(streams_, rank, &Stream::peer);
  return found == streams_.end() ? nullptr : &*found;
}

void ControlLinks::send(int rank, Bytes message) {
  Stream* stream = stream_to(rank);
  if (stream == nullptr) {
    transport_.send_control(rank, std::move(message));
    return;
  }
  stream->unsent.push_back(framed(message));
  push(*stream);
}

bool ControlLinks::idle(int rank) {
  Stream* stream = stream_to(rank);
  if (stream == nullptr) return transport_.control_idle(rank);
  if (stream->unsent.empty() && stream->out.empty()) return true;
  // Asked first and looked again: what is taken in between is not missed.
  stream->out.ask_for_ring();
  return stream->unsent.empty() && stream->out.empty();
}

std::optional<Message> ControlLinks::receive() {
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    Stream& stream = streams_[(next_ + k) % streams_.size()];
    push(stream);
    if (auto message = pull(stream)) {
      next_ = (next_ + k + 1) % streams_.size();
      return message;
    }
  }
  return has_remote_peers_ ? transport_.poll_control() : std::nullopt;
}

bool ControlLinks::flush() {
  bool all = true;
  for (Stream& stream : streams_) {
    push(stream);
    all = all && stream.unsent.empty();
  }
  return all;
}

void ControlLinks::push(Stream& stream) {
  bool moved = false;
  while (!stream.unsent.empty()) {
    const Bytes& frame = stream.unsent.front();
    const std::size_t count = stream.out.write(BytesView(frame).subspan(stream.written));
    moved = moved || count > 0;
    stream.written += count;
    if (stream.written < frame.size()) {
      stream.out.ask_for_ring();
      stream.written += stream.out.write(BytesView(frame).subspan(stream.written));  // room made before the asking
      if (stream.written < frame.size()) break;
    }
    stream.unsent.pop_front();
    stream.written = 0;
  }
  if (moved) bells_.ring(stream.peer_local_rank);
}

// Room has been made: a writer that has more to say may be asleep.
void ControlLinks::ring_waiting_writer(Stream& stream) {
  if (stream.in.ring_asked()) bells_.ring(stream.peer_local_rank);
}

std::optional<Message> ControlLinks::pull(Stream& stream) {
  if (stream.in.empty()) return std::nullopt;
  auto* length = reinterpret_cast<std::byte*>(&stream.expected);
  if (stream.length_bytes < sizeof(stream.expected)) {
    stream.length_bytes +=
        stream.in.read({length + stream.length_bytes, sizeof(stream.expected) - stream.length_bytes});
    if (stream.length_bytes < sizeof(stream.expected)) return std::nullopt;
    if (stream.expected > max_message_bytes) {
      throw InternalError(fmt::format("rank {} announced a control message of {} bytes; the limit is {}", stream.peer,
                                      stream.expected, max_message_bytes));
    }
  }
  // Grown as bytes come in, so that a claimed length alone allocates nothing.
  while (stream.arrived < stream.expected) {
    constexpr std::size_t step = std::size_t{64} << 10;
    const auto wanted = std::min<std::size_t>(step, static_cast<std::size_t>(stream.expected) - stream.arrived);
    stream.arriving.resize(stream.arrived + wanted);
    const std::size_t count = stream.in.read({stream.arriving.data() + stream.arrived, wanted});
    stream.arrived += count;
    if (count == 0) {
      ring_waiting_writer(stream);
      return std::nullopt;
    }
  }
  ring_waiting_writer(stream);
  stream.arriving.resize(stream.arrived);
  Message message{.sender = stream.peer, .bytes = std::move(stream.arriving)};
  stream.arriving = {};
  stream.arrived = 0;
  stream.length_bytes = 0;
  return message;
}

}  // namespace hvd
