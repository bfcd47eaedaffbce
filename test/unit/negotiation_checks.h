#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "negotiation_world.h"

namespace hvd {

// What holds of a world in which nothing can happen any more, whatever has happened.

inline std::string describe_ran(const NegotiationWorld::Ran& ran) {
  std::string text = std::to_string(ran.number) + ": set " + std::to_string(ran.process_set);
  for (const int rank : ran.absent) text += " without " + std::to_string(rank);
  for (std::size_t i = 0; i < ran.keys.size(); ++i) {
    text += " " + ran.keys[i] + " " + std::to_string(ran.prints[i]);
    for (const auto& of_rank : ran.extents[i]) {
      for (const std::int64_t rows : of_rank) text += "," + std::to_string(rows);
    }
  }
  return text;
}

// The members of a set, and the two ranks of messages, ran the same batches in the same order.
inline void check_batches(const NegotiationWorld& world) {
  std::vector<std::map<std::uint32_t, std::vector<std::string>>> by_set(static_cast<std::size_t>(world.size()));
  std::map<std::string, std::vector<std::vector<std::string>>> by_pair;
  for (int rank = 0; rank < world.size(); ++rank) {
    std::map<std::string, std::vector<std::string>> paired;
    std::uint64_t last = 0;
    for (const auto& ran : world.ran(rank)) {
      EXPECT_GT(ran.number, last) << "rank " << rank;
      last = ran.number;
      auto& group = ran.paired ? paired[ran.keys.front()] : by_set[static_cast<std::size_t>(rank)][ran.process_set];
      group.push_back(describe_ran(ran));
    }
    for (const auto& [key, batches] : paired) by_pair[key].push_back(batches);
  }
  for (const auto& [id, set] : world.sets(0).all()) {
    const auto& expected = by_set[static_cast<std::size_t>(set.ranks.front())][id];
    for (const int rank : set.ranks) {
      EXPECT_EQ(by_set[static_cast<std::size_t>(rank)][id], expected) << "rank " << rank << ", set " << id;
    }
  }
  for (const auto& [key, batches] : by_pair) {
    ASSERT_EQ(batches.size(), 2U) << key;
    EXPECT_EQ(batches[0], batches[1]) << key;
  }
}

// Each failure that a plan tells a rank of has ended one of its operations. What was cancelled is over, nothing else
// is.
inline void check_failures(const NegotiationWorld& world) {
  for (int rank = 0; rank < world.size(); ++rank) {
    std::size_t failed = 0;
    for (const auto& handle : world.handles(rank)) {
      EXPECT_FALSE(handle.open && handle.cancelled) << "rank " << rank << ' ' << handle.request.name;
      if (!handle.failure) continue;
      EXPECT_TRUE(handle.cancelled || handle.failure->code != ErrorCode::cancelled) << handle.failure->text;
      const bool stopped = world.stop(rank) && handle.failure->text == world.stop(rank)->reason;
      failed += stopped ? 0 : 1;
      EXPECT_NE(handle.failure->code, ErrorCode::internal) << handle.failure->text;
    }
    EXPECT_EQ(failed, world.failures_told(rank)) << "rank " << rank;
  }
}

inline bool has_joined(const NegotiationWorld& world, int rank, std::uint32_t process_set) {
  for (const auto& [id, set] : world.sets(rank).all()) {
    if (world.in_flight(rank, key_of(join_request(id))) && world.sets(rank).contains(id, process_set)) return true;
  }
  return false;
}

// What is still open waits for a rank that has neither submitted it nor joined nor left.
inline void check_open_handles(const NegotiationWorld& world, const std::vector<bool>& left) {
  bool any_open = false;
  bool any_left = false;
  for (int rank = 0; rank < world.size(); ++rank) {
    any_left = any_left || left[static_cast<std::size_t>(rank)];
    EXPECT_EQ(world.stop(rank).has_value(), world.stop(0).has_value());
    for (const auto& handle : world.handles(rank)) {
      if (!handle.open) continue;
      any_open = true;
      const Request& request = handle.request;
      const std::string key = key_of(request);
      const auto* set = world.sets(rank).find(request.process_set);
      ASSERT_NE(set, nullptr) << "rank " << rank << " waits in " << key << ", whose process set is no more";
      std::vector<int> participants = set->ranks;
      if (request.operation == Operation::send_recv) participants = {request.root, request.peer};
      bool lacks_one = false;
      for (const int other : participants) {
        const bool counts = world.in_flight(other, key) || has_joined(world, other, request.process_set);
        lacks_one = lacks_one || !counts;
        EXPECT_TRUE(counts || !left[static_cast<std::size_t>(other)])
            << "rank " << rank << " waits in " << key << " for rank " << other << ", which has left";
      }
      EXPECT_TRUE(lacks_one) << "rank " << rank << " waits in " << key << " though all ranks are there";
    }
  }
  EXPECT_FALSE(any_open && world.stop(0));
  EXPECT_TRUE(any_open || !any_left || world.stop(0)) << "a rank has left, nothing is open, and nobody stops";
}

}  // namespace hvd
