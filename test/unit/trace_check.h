#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace hvd::test {

// The text as a trace: an array of events of known form, whose durations lie within or beside each other in each lane.
inline nlohmann::json checked_trace(const std::string& text) {
  nlohmann::json trace = nlohmann::json::parse(text, nullptr, false);
  EXPECT_TRUE(trace.is_array()) << text.substr(0, 2000);
  if (!trace.is_array()) return nlohmann::json::array();
  std::map<int, std::vector<std::pair<double, double>>> lanes;
  for (const auto& event : trace) {
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_TRUE(event.at("pid").is_number_integer());
    const std::string phase = event.at("ph");
    if (phase != "X") {
      EXPECT_TRUE(phase == "M" || phase == "i") << event;
      continue;
    }
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    EXPECT_GE(duration, 0.0) << event;
    lanes[event.at("tid")].emplace_back(begin, begin + duration);
  }
  constexpr double rounding = 0.002;
  for (auto& [tid, spans] : lanes) {
    std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.first < b.first || (a.first == b.first && a.second > b.second);
    });
    std::vector<double> open;
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin + rounding) open.pop_back();
      EXPECT_TRUE(open.empty() || end <= open.back() + rounding) << "lane " << tid << ": " << text;
      open.push_back(end);
    }
  }
  return trace;
}

inline std::vector<nlohmann::json> events_named(const nlohmann::json& trace, const std::string& name) {
  std::vector<nlohmann::json> found;
  std::copy_if(trace.begin(), trace.end(), std::back_inserter(found),
               [&](const auto& event) { return event.at("name") == name; });
  return found;
}

}  // namespace hvd::test
