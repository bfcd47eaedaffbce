#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hvd {

// A stream of bytes from one rank to another through shared memory: one writer, one reader, no lock, no system call.
// Positions only grow; the ring's memory belongs to the shared segment.
class ByteRing {
 public:
  struct Header {
    alignas(64) std::atomic<std::uint64_t> written{0};
    alignas(64) std::atomic<std::uint64_t> read{0};
    alignas(64) std::atomic<std::uint32_t> writer_waits{0};
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  // `data` has a power-of-two size.
  ByteRing(Header& header, std::span<std::byte> data) : header_(&header), data_(data) {}

  // Writer: copies as much as fits and returns how much that was.
  std::size_t write(std::span<const std::byte> bytes);
  // Reader: copies at most bytes.size() of what is there and returns how much that was.
  std::size_t read(std::span<std::byte> bytes);

  bool empty() const;  // either side: the reader has taken everything in

  // Writer: asks to be rung once the reader has taken something in. Look at the ring again before sleeping.
  void ask_for_ring();
  // Reader, after reading: whether the writer has asked. Clears the request.
  bool ring_asked();

 private:
  Header* header_;
  std::span<std::byte> data_;
};

}  // namespace hvd
