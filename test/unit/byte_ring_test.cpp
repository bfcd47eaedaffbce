#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "shm/byte_ring.h"

namespace hvd {
namespace {

class ByteRings : public testing::Test {
 protected:
  std::size_t write(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(sent_++);
    const std::size_t written = ring.write(bytes);
    sent_ -= count - written;
    return written;
  }
  std::size_t read(std::size_t count) {
    std::vector<std::byte> bytes(count);
    const std::size_t got = ring.read(bytes);
    for (std::size_t i = 0; i < got; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(received_++));
    return got;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(16);
  ByteRing::Header header;
  ByteRing ring{header, memory};

 private:
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
};

TEST_F(ByteRings, TakesWhatFitsAndGivesWhatIsThere) {
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(read(4), 0U);
  EXPECT_EQ(write(10), 10U);
  EXPECT_EQ(write(10), 6U);
  EXPECT_EQ(write(1), 0U);
  EXPECT_EQ(read(3), 3U);
  EXPECT_EQ(write(10), 3U);
  EXPECT_EQ(read(100), 16U);
  EXPECT_TRUE(ring.empty());
}

TEST_F(ByteRings, KeepOrderThroughEveryPositionOfTheEnd) {
  std::mt19937 random(3);
  for (int round = 0; round < 10000; ++round) {
    write(random() % 17);
    read(random() % 17);
  }
}

TEST_F(ByteRings, CarryAStreamBetweenTwoThreads) {
  constexpr std::size_t total = 200000;
  std::jthread writer([&] {
    for (std::size_t done = 0; done < total;) {
      const std::size_t written = write(std::min<std::size_t>(7, total - done));
      done += written;
      if (written == 0) std::this_thread::yield();
    }
  });
  for (std::size_t done = 0; done < total;) {
    const std::size_t got = read(5);
    done += got;
    if (got == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(ring.empty());
}

TEST_F(ByteRings, TheWriterIsRungOnceAfterItHasAsked) {
  EXPECT_FALSE(ring.ring_asked());
  ring.ask_for_ring();
  EXPECT_TRUE(ring.ring_asked());
  EXPECT_FALSE(ring.ring_asked());
}

}  // namespace
}  // namespace hvd
