#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "target.h"
#include "transport/control_links.h"

namespace hvd::fuzz {

// The far end of one control stream: writes whatever it likes, and knows what the near end must make of it.
class RingPeer {
 public:
  RingPeer(int rank, ByteRing to_links, ByteRing from_links)
      : rank_(rank), to_links_(to_links), from_links_(from_links) {}

  // As much as fits into the ring.
  void write(BytesView bytes) {
    const std::size_t count = to_links_.write(bytes);
    written_.insert(written_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  }
  // Takes in at most `most` bytes of what the links have sent.
  void drain(std::size_t most) {
    Bytes got(most);
    got.resize(from_links_.read(got));
    require(got.size() <= expected_.size() && std::equal(got.begin(), got.end(), expected_.begin()),
            "what was sent arrives in order");
    expected_.erase(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(got.size()));
  }

  // The links were told to send this.
  void expect(BytesView message) {
    const std::uint64_t length = message.size();
    const auto prefix = std::as_bytes(std::span(&length, 1));
    expected_.insert(expected_.end(), prefix.begin(), prefix.end());
    expected_.insert(expected_.end(), message.begin(), message.end());
  }
  // The links have handed out this as a message of the peer.
  void check(const Message& message) {
    require(written_.size() >= sizeof(std::uint64_t) && announced() == message.bytes.size(), "a message is one frame");
    written_.erase(written_.begin(), written_.begin() + sizeof(std::uint64_t));
    require(written_.size() >= message.bytes.size() &&
                std::equal(message.bytes.begin(), message.bytes.end(), written_.begin()),
            "a message is what was written");
    written_.erase(written_.begin(), written_.begin() + static_cast<std::ptrdiff_t>(message.bytes.size()));
  }
  // What the peer has written next cannot be a message.
  bool is_at_fault() const {
    return written_.size() >= sizeof(std::uint64_t) && announced() > ControlLinks::max_message_bytes;
  }
  // How an error that is this peer's fault begins.
  std::string accused() const { return "rank " + std::to_string(rank_) + " announced "; }
  int rank() const { return rank_; }

 private:
  std::uint64_t announced() const {
    std::byte bytes[sizeof(std::uint64_t)];
    std::copy_n(written_.begin(), sizeof(bytes), bytes);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes, sizeof(length));
    return length;
  }

  int rank_;
  ByteRing to_links_;
  ByteRing from_links_;
  std::deque<std::byte> written_;   // and not yet handed out
  std::deque<std::byte> expected_;  // sent by the links and not yet drained
};

}  // namespace hvd::fuzz
