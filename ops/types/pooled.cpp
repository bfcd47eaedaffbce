#include "types/pooled.h"

#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace hvd {

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HVD_ADDRESS_SANITIZER 1
#endif
#endif
// The sanitizer is to see each block's end.
#if defined(__SANITIZE_ADDRESS__) || defined(HVD_ADDRESS_SANITIZER)
constexpr std::size_t largest = 0;
#else
constexpr std::size_t largest = std::size_t{256} << 10;  // what is larger comes from the heap
#endif

struct Block {
  Block* next;
};

// Blocks of one size, a power of two.
struct Shelf {
  Block* first = nullptr;
  std::uint32_t count = 0;

  void put(void* memory) {
    first = ::new (memory) Block{first};
    ++count;
  }
  void* take() {
    --count;
    return std::exchange(first, first->next);
  }
};

constexpr std::size_t smallest = 16;
constexpr std::size_t shelf_count = std::bit_width((std::size_t{256} << 10) / smallest);

std::size_t shelf_for(std::size_t bytes) {
  return bytes <= smallest ? 0 : static_cast<std::size_t>(std::bit_width((bytes - 1) / smallest));
}
std::size_t block_bytes(std::size_t shelf) { return smallest << shelf; }

// A thread keeps as many blocks of a size, and fetches or hands on half of them at once: what one thread takes another
// one may give back.
constexpr std::uint32_t kept = 16;

struct Store {
  std::mutex mutex;
  std::array<Shelf, shelf_count> shelves;
};

Store& store() {
  static auto* const the_store = new Store;
  return *the_store;
}

void move(Shelf& from, Shelf& to, std::uint32_t count) {
  for (; count > 0 && from.first != nullptr; --count) to.put(from.take());
}

// Usable to the very end of a thread: nothing in it is destroyed.
struct Cache {
  std::array<Shelf, shelf_count> shelves;
  bool open = false;
  bool closed = false;
};
thread_local Cache cache;

// At the end of a thread its blocks go to the others; what it still takes and gives back then goes there directly.
struct Closing {
  ~Closing() {
    const std::scoped_lock lock(store().mutex);
    for (std::size_t i = 0; i < shelf_count; ++i) move(cache.shelves[i], store().shelves[i], cache.shelves[i].count);
    cache.open = false;
    cache.closed = true;
  }
  void begin() const { cache.open = true; }
};
thread_local const Closing closing;

// This thread's, once it is in use.
bool cache_is_open() {
  if (!cache.open && !cache.closed) closing.begin();
  return cache.open;
}

void* take_from_store(std::size_t index) {
  Shelf& shelf = cache.shelves[index];
  {
    const std::scoped_lock lock(store().mutex);
    move(store().shelves[index], shelf, cache.closed ? 1 : kept / 2);
  }
  return shelf.first != nullptr ? shelf.take() : ::operator new(block_bytes(index));
}

void give_to_store(std::size_t index, std::uint32_t count) {
  const std::scoped_lock lock(store().mutex);
  move(cache.shelves[index], store().shelves[index], count);
}

}  // namespace

void* take_pooled(std::size_t bytes) {
  if (bytes > largest) return ::operator new(bytes);
  const std::size_t index = shelf_for(bytes);
  return cache_is_open() && cache.shelves[index].first != nullptr ? cache.shelves[index].take()
                                                                  : take_from_store(index);
}

void give_back_pooled(void* memory, std::size_t bytes) noexcept {
  if (bytes > largest) return ::operator delete(memory);
  const std::size_t index = shelf_for(bytes);
  Shelf& shelf = cache.shelves[index];
  shelf.put(memory);
  if (!cache_is_open()) {
    give_to_store(index, 1);
  } else if (shelf.count > kept) {
    give_to_store(index, kept / 2);
  }
}

}  // namespace hvd
