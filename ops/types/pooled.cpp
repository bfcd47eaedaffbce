#include "types/pooled.h"

#include <memory_resource>

namespace hvd {

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HVD_ADDRESS_SANITIZER 1
#endif
#endif

// The sanitizer is to see each block's end.
std::pmr::memory_resource& pool() {
#if defined(__SANITIZE_ADDRESS__) || defined(HVD_ADDRESS_SANITIZER)
  return *std::pmr::new_delete_resource();
#else
  static auto* const the_pool = new std::pmr::synchronized_pool_resource(
      {.max_blocks_per_chunk = 256, .largest_required_pool_block = std::size_t{256} << 10});
  return *the_pool;
#endif
}

}  // namespace

void* take_pooled(std::size_t bytes) { return pool().allocate(bytes); }
void give_back_pooled(void* memory, std::size_t bytes) noexcept { pool().deallocate(memory, bytes); }

}  // namespace hvd
