#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "target.h"

namespace hvd::fuzz {

// What happens to one side of the negotiation: a byte of kind and argument, for some kinds two bytes of length and so
// many bytes of a message. Any bytes are steps.
struct Step {
  int kind = 0;
  int argument = 0;
  std::string_view message;
};

constexpr int step_kinds = 8;

inline std::string step(int kind, int argument = 0) {
  return std::string(1, static_cast<char>(static_cast<unsigned char>(kind + step_kinds * argument)));
}

inline std::string step(int kind, int argument, std::string_view message) {
  std::string text = step(kind, argument);
  text += static_cast<char>(static_cast<unsigned char>(message.size() % 256));
  text += static_cast<char>(static_cast<unsigned char>(message.size() / 256));
  return text.append(message);
}

class StepReader {
 public:
  // Steps of a kind below `with_message` have one.
  StepReader(std::string_view text, int with_message) : rest_(text), with_message_(with_message) {}

  // 0 past the end.
  int byte() {
    if (rest_.empty()) return 0;
    const int value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::optional<Step> next() {
    if (rest_.empty()) return std::nullopt;
    const int head = byte();
    Step step{.kind = head % step_kinds, .argument = head / step_kinds, .message = {}};
    if (step.kind >= with_message_) return step;
    const int low = byte();
    const auto length = static_cast<std::size_t>(low + 256 * byte());
    step.message = rest_.substr(0, length);
    rest_.remove_prefix(step.message.size());
    return step;
  }

 private:
  std::string_view rest_;
  int with_message_;
};

}  // namespace hvd::fuzz
