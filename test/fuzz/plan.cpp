// The plan message of the negotiation: what the root sends to all ranks.
#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hvd::fuzz::round_trip(hvd::decode_plan, hvd::fuzz::bytes_of(data, size));
  return 0;
}
