#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <hvd/config.h>
#include <hvd/error.h>

#include "config/settings.h"
#include "config/suggest.h"
#include "observe/log.h"

namespace hvd {

namespace {

constexpr std::string_view prefix = "HVD_";
constexpr std::string_view alias_prefix = "HOROVOD_";

using Variables = std::map<std::string, std::string>;

void apply(const Setting& setting, std::string_view variable, const Variables& variables, Config& config) {
  if (variable.empty()) return;
  const auto found = variables.find(std::string(variable));
  if (found == variables.end()) return;
  const std::string problem = set_from_text(setting, found->second, config);
  if (!problem.empty()) throw InvalidArgumentError(fmt::format("{}: '{}' {}", variable, found->second, problem));
}

void warn_of_unknown(const Variables& variables, std::vector<std::string>& warnings) {
  std::vector<std::string_view> known;
  for (const Setting& setting : settings()) {
    if (!setting.variable.empty()) known.push_back(setting.variable);
  }
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(prefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_name(name, known, prefix);
    warnings.push_back(nearest.empty() ? fmt::format("unknown variable {}", name)
                                       : fmt::format("unknown variable {}; did you mean {}?", name, nearest));
  }
}

}  // namespace

Config Config::from_variables(const std::map<std::string, std::string>& variables, std::vector<std::string>& warnings) {
  Config config;
  // In this order HVD_* wins over HOROVOD_*.
  for (const Setting& setting : settings()) apply(setting, setting.alias, variables, config);
  if (config.timeline == "DYNAMIC") {
    // Horovod's word for a trace that code starts later; as a file name it would surprise.
    warnings.emplace_back("HOROVOD_TIMELINE: 'DYNAMIC' is not supported; no timeline is written");
    config.timeline.clear();
  }
  for (const Setting& setting : settings()) apply(setting, setting.variable, variables, config);
  warn_of_unknown(variables, warnings);
  return config;
}

Config Config::from_environment() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !(text.starts_with(prefix) || text.starts_with(alias_prefix))) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  std::vector<std::string> warnings;
  Config config = from_variables(variables, warnings);
  const Logger logger(config.log_level, config.log_hide_time);
  for (const std::string& warning : warnings) logger.warning("{}", warning);
  return config;
}

}  // namespace hvd
