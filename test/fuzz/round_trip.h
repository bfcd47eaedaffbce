#pragma once

#include <optional>

#include <hvd/error.h>

#include "negotiation/messages.h"
#include "target.h"

namespace hvd::fuzz {

// Bytes that decode are a message, and a message survives being sent on. Those bytes need not be the ones that encode()
// makes (any byte but 0 is a true flag), so that messages are compared by what they encode to.
template <typename Decode>
void round_trip(const Decode& decode, BytesView bytes) {
  std::optional<decltype(decode(bytes))> message;
  try {
    message = decode(bytes);
  } catch (const InternalError&) {
    return;
  }
  const Bytes sent = encode(*message);
  require(encode(decode(sent)) == sent, "a decoded message decodes again to the same");
}

}  // namespace hvd::fuzz
