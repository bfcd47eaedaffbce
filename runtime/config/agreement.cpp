#include "config/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "config/settings.h"
#include "negotiation/rank_groups.h"

#ifndef HVD_VERSION
#error "the build defines HVD_VERSION as a string"
#endif

namespace hvd {

namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view header = "hvd agreement\n";
constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::size_t most_values = 256;

bool printable(char c) { return c >= 0x20 && c < 0x7f; }

// Nothing when the bytes are not a record.
std::optional<Values> parse_record(std::span<const std::byte> record) {
  std::string_view text(reinterpret_cast<const char*>(record.data()), record.size());
  if (text.size() > most_bytes || !text.starts_with(header)) return std::nullopt;
  text.remove_prefix(header.size());
  Values values;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || values.size() == most_values) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0 || !std::all_of(line.begin(), line.end(), printable)) {
      return std::nullopt;
    }
    values.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return values;
}

}  // namespace

List<std::byte> agreement_record(const Config& config) {
  std::string text = fmt::format("{}version={}\nwire_protocol={}\n", header, HVD_VERSION, wire_protocol_version);
  for (const Setting& setting : settings()) {
    if (setting.must_agree) text += fmt::format("{}={}\n", setting.field, value_text(setting, config));
  }
  List<std::byte> record(text.size());
  std::memcpy(record.data(), text.data(), text.size());
  return record;
}

std::string disagreement(std::span<const List<std::byte>> records) {
  std::vector<std::string> names;  // as they first come up, so that messages list them in the order of the record
  std::map<int, std::map<std::string, std::string>> values_of;
  std::vector<int> unreadable;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int rank = static_cast<int>(i);
    auto values = parse_record(records[i]);
    if (!values) {
      unreadable.push_back(rank);
      continue;
    }
    auto& of_rank = values_of[rank];
    for (auto& [name, value] : *values) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      of_rank.insert_or_assign(std::move(name), std::move(value));
    }
  }

  std::string differences;
  const auto append = [&](const std::string& difference) {
    differences += (differences.empty() ? "config differs: " : " | ") + difference;
  };
  if (!unreadable.empty()) {
    append(format_ranks(unreadable) + " sent no readable configuration (another version of hvd?)");
  }
  for (const std::string& name : names) {
    RankGroups groups;
    for (const auto& [rank, values] : values_of) {
      const auto found = values.find(name);
      groups.add(rank, found == values.end() ? "unknown" : found->second);
    }
    if (!groups.agree()) append(name + ": " + groups.to_string());
  }
  return differences;
}

}  // namespace hvd
