#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hvd/config.h>

#include "types/pooled.h"

namespace hvd {

// Counts changes of what ranks send each other; ranks with unlike numbers cannot talk.
inline constexpr int wire_protocol_version = 1;

// What must be the same on all ranks, as the bytes that ranks exchange at init before anything else. The form stays
// readable across versions of hvd, so that unlike versions are a message too:
//   "hvd agreement\n", then lines "<name>=<value>\n"
List<std::byte> agreement_record(const Config& config);

// Compares the records of all ranks, by rank. Empty if they agree, else
//   "config differs: fusion_threshold: [0,1,3] 128 MiB; [2] 64 MiB | chunk_bytes: ..."
// A record that is no such text, whatever its bytes, is a difference that names its rank.
std::string disagreement(std::span<const List<std::byte>> records);

}  // namespace hvd
