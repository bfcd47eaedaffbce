#include "negotiation/rank_groups.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace hvd {

namespace {

// Up to here single ranks read better; above, a line of a large job would drown in them.
constexpr std::size_t most_plain_ranks = 16;

void append_run(std::string& text, int first, int last, bool ranges) {
  if (text.size() > 1) text += ',';
  text += std::to_string(first);
  if (first == last) return;
  if (ranges && last - first > 1) {
    text += '-' + std::to_string(last);
  } else {
    append_run(text, first + 1, last, ranges);
  }
}

}  // namespace

std::string format_ranks(std::span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  const bool ranges = sorted.size() > most_plain_ranks;
  std::string text = "[";
  for (auto first = sorted.begin(); first != sorted.end();) {
    auto last = first;
    while (last + 1 != sorted.end() && *(last + 1) == *last + 1) ++last;
    append_run(text, *first, *last, ranges);
    first = last + 1;
  }
  return text + ']';
}

void RankGroups::add(int rank, std::string value) { values_.insert_or_assign(rank, std::move(value)); }

bool RankGroups::agree() const {
  return std::all_of(values_.begin(), values_.end(),
                     [this](const auto& entry) { return entry.second == values_.begin()->second; });
}

std::string RankGroups::to_string() const {
  std::vector<std::pair<std::string_view, std::vector<int>>> groups;
  std::map<std::string_view, std::size_t> group_of;
  for (const auto& [rank, value] : values_) {
    const auto [entry, added] = group_of.try_emplace(value, groups.size());
    if (added) groups.emplace_back(value, std::vector<int>{});
    groups[entry->second].second.push_back(rank);
  }

  std::string text;
  for (const auto& [value, ranks] : groups) {
    if (!text.empty()) text += "; ";
    text += format_ranks(ranks);
    text += ' ';
    text += value;
  }
  return text;
}

}  // namespace hvd
