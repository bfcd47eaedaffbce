#include "shm/byte_ring.h"

#include <algorithm>
#include <cstring>

#include "shm/bell.h"

namespace hvd {

std::size_t ByteRing::write(std::span<const std::byte> bytes) {
  const std::uint64_t written = header_->written.load(std::memory_order_relaxed);
  const std::uint64_t read = header_->read.load(std::memory_order_acquire);
  const std::size_t count = std::min(bytes.size(), data_.size() - static_cast<std::size_t>(written - read));
  if (count == 0) return 0;
  const std::size_t begin = written & (data_.size() - 1);
  const std::size_t until_end = std::min(count, data_.size() - begin);
  std::memcpy(data_.data() + begin, bytes.data(), until_end);
  std::memcpy(data_.data(), bytes.data() + until_end, count - until_end);
  header_->written.store(written + count, std::memory_order_release);
  return count;
}

std::size_t ByteRing::read(std::span<std::byte> bytes) {
  const std::uint64_t read = header_->read.load(std::memory_order_relaxed);
  const std::uint64_t written = header_->written.load(std::memory_order_acquire);
  const std::size_t count = std::min(bytes.size(), static_cast<std::size_t>(written - read));
  if (count == 0) return 0;
  const std::size_t begin = read & (data_.size() - 1);
  const std::size_t until_end = std::min(count, data_.size() - begin);
  std::memcpy(bytes.data(), data_.data() + begin, until_end);
  std::memcpy(bytes.data() + until_end, data_.data(), count - until_end);
  header_->read.store(read + count, std::memory_order_release);
  return count;
}

bool ByteRing::empty() const {
  return header_->written.load(std::memory_order_acquire) == header_->read.load(std::memory_order_acquire);
}

void ByteRing::ask_for_ring() {
  header_->writer_waits.store(1, std::memory_order_relaxed);
  store_load_barrier();
}

bool ByteRing::ring_asked() {
  store_load_barrier();
  if (header_->writer_waits.load(std::memory_order_relaxed) == 0) return false;
  header_->writer_waits.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace hvd
