// The environment: lines of NAME=value, a line without "=" is a variable with an empty value.
#include <hvd/config.h>
#include <hvd/error.h>
#include <map>

#include "config/agreement.h"
#include "config/settings.h"
#include "target.h"

namespace {

constexpr std::size_t most_variables = 64;

std::map<std::string, std::string> variables_of(std::string_view text) {
  std::map<std::string, std::string> variables;
  for (const std::string_view line : hvd::fuzz::split(text, '\n', most_variables)) {
    const auto parts = hvd::fuzz::split(line, '=', 2);
    variables.emplace(parts.front(), parts.size() == 2 ? parts.back() : std::string_view());
  }
  return variables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> warnings;
  hvd::Config config;
  try {
    config = hvd::Config::from_variables(variables_of(hvd::fuzz::text_of(data, size)), warnings);
  } catch (const hvd::InvalidArgumentError&) {
    return 0;
  }
  hvd::check_config(config);  // throws for what from_variables() should have refused
  const auto record = hvd::agreement_record(config);
  hvd::fuzz::require(hvd::disagreement(std::vector{record, record}).empty(),
                     "the record of a valid config is readable");
  return 0;
}
