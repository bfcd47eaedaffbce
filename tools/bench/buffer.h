#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace hvd::bench {

// Private memory as frameworks hand it out: aligned to a cache line, its pages touched.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, alignment))), bytes_(bytes) {
    std::memset(data_.get(), 0, bytes);
  }
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  float* floats() const { return reinterpret_cast<float*>(data()); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_;
};

}  // namespace hvd::bench
