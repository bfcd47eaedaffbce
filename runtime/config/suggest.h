#pragma once

#include <span>
#include <string_view>

namespace hvd {

// The candidate that `name` is most likely a misspelling of; empty when none is near (more than a third of its
// characters, past the prefix that all candidates share with it, would have to change).
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates,
                              std::string_view prefix);

}  // namespace hvd
