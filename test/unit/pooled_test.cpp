#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "types/pooled.h"

namespace hvd::test {
namespace {

TEST(Pooled, BlocksInUseNeverOverlap) {
  struct Held {
    unsigned char* memory;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  std::uint64_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::size_t at = state >> 33;
    if (held.size() > 300 || (!held.empty() && at % 3 == 0)) {
      Held& one = held[at % held.size()];
      for (std::size_t i = 0; i < one.bytes; ++i) ASSERT_EQ(one.memory[i], one.mark);
      give_back_pooled(one.memory, one.bytes);
      one = held.back();
      held.pop_back();
    } else {
      const std::size_t bytes = std::size_t{1} << (at % 20) | (at >> 8) % 40;
      auto* memory = static_cast<unsigned char*>(take_pooled(bytes));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignof(std::max_align_t), 0U);
      const auto mark = static_cast<unsigned char>(round);
      std::memset(memory, mark, bytes);
      held.push_back({memory, bytes, mark});
    }
  }
  for (const Held& one : held) give_back_pooled(one.memory, one.bytes);
}

TEST(Pooled, WhatAThreadLeavesServesAnother) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory";
#endif
  constexpr std::size_t bytes = 48000;
  constexpr int threads = 50;
  std::set<void*> seen;
  for (int i = 0; i < threads; ++i) {
    std::thread([&] {
      void* memory = take_pooled(bytes);
      seen.insert(memory);
      give_back_pooled(memory, bytes);
    }).join();
  }
  EXPECT_EQ(seen.size(), 1U);
}

TEST(Pooled, WhatOneThreadTakesAnotherMayGiveBack) {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks(1000);
    for (void*& block : blocks) block = take_pooled(100);
    std::thread([&] {
      for (void* block : blocks) give_back_pooled(block, 100);
    }).join();
  }
}

}  // namespace
}  // namespace hvd::test
