#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hvd/error.h>

#include "transport/transport.h"

namespace hvd {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian memory");

// Appends plain values to a message.
class WireWriter {
 public:
  explicit WireWriter(std::size_t expected_bytes) { bytes_.reserve(expected_bytes); }

  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), data, data + text.size());
  }
  // Lists are preceded by their length.
  template <typename List, typename PutItem>
  void put_list(const List& list, const PutItem& put_item) {
    put(static_cast<std::uint64_t>(list.size()));
    for (const auto& item : list) put_item(item);
  }

  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads them back. Never past the end, never an allocation of a claimed size: what does not fit throws InternalError.
class WireReader {
 public:
  explicit WireReader(BytesView bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // An enumerator below `count`.
  template <typename T>
  requires std::is_enum_v<T> T get(std::uint8_t count) {
    const auto value = get<std::uint8_t>();
    if (value >= count) throw InternalError("malformed message: value out of range");
    return static_cast<T>(value);
  }
  bool get_flag() { return get<std::uint8_t>() != 0; }
  std::string get_text() {
    const BytesView text = take(get<std::uint64_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  template <typename GetItem>
  auto get_list(const GetItem& get_item) {
    return get_list<List<decltype(get_item())>>(get_item);
  }
  template <typename Into, typename GetItem>
  Into get_list(const GetItem& get_item) {
    constexpr std::uint64_t believed = 256;
    Into list;
    auto left = get<std::uint64_t>();
    list.reserve(static_cast<std::size_t>(std::min(left, believed)));
    for (; left > 0; --left) list.push_back(get_item());
    return list;
  }
  void expect_end() const {
    if (!rest_.empty()) throw InternalError("malformed message: bytes after its end");
  }

 private:
  BytesView take(std::uint64_t count) {
    if (count > rest_.size()) throw InternalError("malformed message: it ends too early");
    const BytesView taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

  BytesView rest_;
};

}  // namespace hvd
