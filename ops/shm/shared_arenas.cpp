#include "shm/shared_arenas.h"

#include <hvd/error.h>

#include <algorithm>

namespace hvd {

SharedArenas::~SharedArenas() {
  for (auto& arena : arenas_) delete arena.load(std::memory_order_relaxed);
}

std::span<std::byte> SharedArenas::Arena::part(std::size_t local_rank) const {
  return memory->bytes().subspan(begins[local_rank], begins[local_rank + 1] - begins[local_rank]);
}

std::span<std::byte> SharedArenas::add(std::uint32_t arena, std::unique_ptr<SharedMemory> memory,
                                       std::vector<std::size_t> begins) {
  auto made = std::make_unique<const Arena>(Arena{.memory = std::move(memory), .begins = std::move(begins)});
  const std::span<std::byte> mine = made->part(local_rank_);
  arenas_.at(arena).store(made.release(), std::memory_order_release);
  count_.store(std::max(count_.load(std::memory_order_relaxed), arena + 1), std::memory_order_release);
  return mine;
}

std::optional<SharedArenas::Place> SharedArenas::find(const std::byte* data, std::size_t bytes) const {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  for (std::uint32_t number = 0; number < count; ++number) {
    const Arena* arena = arenas_[number].load(std::memory_order_acquire);
    if (arena == nullptr) continue;
    const std::span<std::byte> mine = arena->part(local_rank_);
    if (data >= mine.data() && data + bytes <= mine.data() + mine.size()) {
      return Place{.arena = number, .offset = static_cast<std::uint64_t>(data - mine.data())};
    }
  }
  return std::nullopt;
}

std::byte* SharedArenas::at(const Place& place, std::size_t bytes, int local_rank) const {
  const Arena* arena = place.arena < most ? arenas_[place.arena].load(std::memory_order_acquire) : nullptr;
  if (arena == nullptr) throw InternalError("a rank of this host refers to an arena that this one has not");
  const std::span<std::byte> part = arena->part(static_cast<std::size_t>(local_rank));
  if (place.offset > part.size() || bytes > part.size() - place.offset) {
    throw InternalError("a rank of this host refers to memory outside its arena");
  }
  return part.data() + place.offset;
}

}  // namespace hvd
