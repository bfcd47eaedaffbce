#pragma once

#include <cstdint>
#include <optional>

#include <hvd/error.h>

#include "types/pooled.h"

namespace hvd {

enum class Progress : std::uint8_t { waiting, advanced, done };

// Which phases of a collective are through on this rank; only grows.
enum class Phase : std::uint8_t { started, packed, reduced, unpacked };

// A collective under way, resumable: each step() does at most one phase of one chunk and never blocks, so that whoever
// drives it answers the negotiation in between. All ranks of a set start the same collectives in the same order.
class Collective {
 public:
  virtual ~Collective() = default;
  // One for each batch.
  static void* operator new(std::size_t bytes) { return take_pooled(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { give_back_pooled(memory, bytes); }
  // advanced: something was done, call again. waiting: other ranks must come first; their progress rings this rank's
  // bell, unless it comes by message: between hosts, or where needs_polling().
  virtual Progress step() = 0;
  virtual Phase phase() const = 0;
  // Once done: what has gone wrong, alike on all ranks.
  virtual std::optional<Failure> failure() const { return std::nullopt; }
  // Waits for messages even from ranks of this host: call step() now and then without being rung.
  virtual bool needs_polling() const { return false; }
};

}  // namespace hvd
