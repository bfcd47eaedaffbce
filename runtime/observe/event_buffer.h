#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/observer.h>

namespace hvd {

// Copies of events, in order. Their texts lie one after the other in one string, so that a buffer that has been used
// before takes as much again without allocating. Not for several threads at once.
struct EventBuffer {
  // What a disk that does not keep up may cost in memory, about; further events are only counted.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;

  struct Entry {
    TensorEvent event;  // its texts are filled in by for_each
    std::size_t name_size;
    std::size_t error_size;
  };
  std::vector<Entry> entries;
  std::string texts;
  std::size_t dropped = 0;

  std::size_t bytes() const { return entries.size() * sizeof(Entry) + texts.size(); }
  bool empty() const { return entries.empty() && dropped == 0; }

  void push(const TensorEvent& event) noexcept {
    const std::size_t before = texts.size();
    if (bytes() >= most_bytes) {
      ++dropped;
      return;
    }
    try {
      texts.append(event.name).append(event.error);
      entries.push_back({event, event.name.size(), event.error.size()});
    } catch (const std::exception&) {  // out of memory
      texts.resize(before);
      ++dropped;
    }
  }

  // In the order in which they were pushed.
  template <typename Function>
  void for_each(Function function) const {
    std::string_view rest = texts;
    for (const Entry& entry : entries) {
      TensorEvent event = entry.event;
      event.name = rest.substr(0, entry.name_size);
      event.error = rest.substr(entry.name_size, entry.error_size);
      rest.remove_prefix(entry.name_size + entry.error_size);
      function(event);
    }
  }

  void clear() {
    entries.clear();
    texts.clear();
    dropped = 0;
  }
};

}  // namespace hvd
