// The report message of the negotiation: what a rank sends to the root.
#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hvd::fuzz::round_trip(hvd::decode_report, hvd::fuzz::bytes_of(data, size));
  return 0;
}
