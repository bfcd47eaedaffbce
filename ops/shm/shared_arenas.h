#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/transport.h"

namespace hvd {

// Memory for tensors that all ranks of this host see: what lies in it is reduced where it is, without a copy. Each
// arena has a part for every rank. Made by any thread, one at a time, and kept to the end; looked up without a lock.
class SharedArenas {
 public:
  static constexpr std::uint32_t most = 256;

  // Bytes `offset` of a rank's part of an arena.
  struct Place {
    std::uint32_t arena = 0;
    std::uint64_t offset = 0;
  };

  explicit SharedArenas(int local_rank) : local_rank_(static_cast<std::size_t>(local_rank)) {}
  ~SharedArenas();
  SharedArenas(const SharedArenas&) = delete;
  SharedArenas& operator=(const SharedArenas&) = delete;

  // begins[r]: of the part of local rank r; one more for the end. Equal on all ranks, as is the number (below `most`).
  // Returns this rank's part.
  std::span<std::byte> add(std::uint32_t arena, std::unique_ptr<SharedMemory> memory, std::vector<std::size_t> begins);
  // Where this memory lies in this rank's part of an arena, if it does.
  std::optional<Place> find(const std::byte* data, std::size_t bytes) const;
  // The same place of another rank. Throws InternalError when there is none.
  std::byte* at(const Place& place, std::size_t bytes, int local_rank) const;

 private:
  struct Arena {
    std::unique_ptr<SharedMemory> memory;
    std::vector<std::size_t> begins;
    std::span<std::byte> part(std::size_t local_rank) const;
  };

  std::size_t local_rank_;
  std::atomic<std::uint32_t> count_{0};  // of the numbers in use, the highest plus one
  std::array<std::atomic<const Arena*>, most> arenas_{};
};

}  // namespace hvd
