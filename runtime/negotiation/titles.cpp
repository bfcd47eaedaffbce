#include "negotiation/titles.h"

#include <fmt/format.h>

#include <optional>

namespace hvd {

std::string title(const OperationState& state) {
  const std::string set = state.process_set == 0 ? "" : fmt::format(" process set {}", state.process_set);
  std::optional<Operation> operation;
  for (const std::uint64_t print : state.reported) {
    if (print == 0) continue;
    const Operation said = state.said.at(print).operation;
    if (operation && *operation != said) return fmt::format("'{}'{}", state.name, set);
    operation = said;
  }
  return operation ? fmt::format("{} '{}'{}", to_string(*operation), state.name, set)
                   : fmt::format("'{}'{}", state.name, set);
}

std::string departure(int rank, const Leave& leave) {
  return leave.process.empty() ? fmt::format("rank {} has left: {}", rank, leave.reason)
                               : fmt::format("rank {} ({}) left: {}", rank, leave.process, leave.reason);
}

}  // namespace hvd
