#include "observe/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "types/dtype_rules.h"

namespace hvd {

namespace {

constexpr std::string_view unfinished = R"("unfinished":true)";
constexpr int overflow_tid = TraceBuilder::max_lanes + 1;

// Names are opaque bytes; JSON is UTF-8.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr std::size_t index(Stage stage) { return static_cast<std::size_t>(stage); }

template <typename Flight>
auto last_time(const Flight& flight) {
  return **std::max_element(flight.at.begin(),
                            flight.at.end());  // at least one stage is there; an absent one is the least
}

// "ALLREDUCE"
std::string phase_name(Operation operation) {
  std::string name(to_string(operation));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

}  // namespace

void TraceBuilder::append_metadata(std::string& out) const {
  const auto meta = [&](std::string_view name, std::string_view args) {
    fmt::format_to(std::back_inserter(out), R"({{"name":"{}","ph":"M","pid":{},"tid":0,"args":{{{}}}}})", name,
                   origin_.rank, args);
  };
  const std::string process = fmt::format("rank {} (host {}, pid {})", origin_.rank, origin_.host, origin_.pid);
  meta("process_name", fmt::format(R"("name":{})", json_string(process)));
  out += ",\n";
  meta("process_sort_index", fmt::format(R"("sort_index":{})", origin_.rank));
  out += ",\n";
  const auto nanoseconds = [](auto since_epoch) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
  };
  // As strings: a reader that keeps numbers in doubles would round them.
  meta("hvd_clock", fmt::format(R"("rank":{},"size":{},"unix_ns_of_ts_0":"{}","monotonic_ns_of_ts_0":"{}")",
                                origin_.rank, origin_.size, nanoseconds(origin_.wall_clock_of_start.time_since_epoch()),
                                nanoseconds(origin_.start.time_since_epoch())));
}

void TraceBuilder::add(const TensorEvent& event, std::string& out) {
  Lane& lane = lane_of(event.name, out);
  Flight& flight = flight_of(lane, event, out);
  flight.bytes = event.bytes;
  flight.batch = std::max(flight.batch, event.batch);
  if (index(event.stage) < timed_stages) {
    flight.at[index(event.stage)] = event.time;
    return;
  }
  const std::string error = event.stage == Stage::failed ? R"("error":)" + json_string(event.error) : "";
  append_flight(lane, flight, event.time, error, out);
  lane.flights.pop_front();
  if (lane.tid == overflow_tid && lane.flights.empty()) lanes_.erase(lanes_.find(std::string(event.name)));
}

void TraceBuilder::append_unfinished(Time now, std::string& out) const {
  for (const auto& [name, lane] : lanes_) {
    for (const Flight& flight : lane.flights) append_flight(lane, flight, now, unfinished, out);
  }
}

void TraceBuilder::append_remark(Time time, std::string_view text, std::string& out) const {
  fmt::format_to(std::back_inserter(out),
                 ",\n"
                 R"({{"name":{},"ph":"i","s":"p","ts":{:.3f},"pid":{},"tid":0}})",
                 json_string(text), microseconds(time), origin_.rank);
}

TraceBuilder::Lane& TraceBuilder::lane_of(std::string_view name, std::string& out) {
  const auto [entry, added] = lanes_.try_emplace(std::string(name));
  Lane& lane = entry->second;
  if (!added) return lane;
  lane.quoted_name = json_string(name);
  const bool overflow = lanes_given_ == max_lanes;
  lane.tid = overflow ? overflow_tid : ++lanes_given_;
  if (overflow && overflow_named_) return lane;
  overflow_named_ = overflow;
  fmt::format_to(std::back_inserter(out),
                 ",\n"
                 R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                 origin_.rank, lane.tid, overflow ? R"_("(further tensors)")_" : lane.quoted_name);
  return lane;
}

// The flight that the event belongs to. Submissions come from another thread than the rest, so one can overtake the end
// of the operation before it, or follow its own negotiation; and events can be lost. Flights that lost their end are
// closed here.
TraceBuilder::Flight& TraceBuilder::flight_of(Lane& lane, const TensorEvent& event, std::string& out) const {
  auto& flights = lane.flights;
  const auto close_oldest = [&](std::ptrdiff_t count) {
    for (; count > 0; --count) {
      append_flight(lane, flights.front(), last_time(flights.front()), unfinished, out);
      flights.pop_front();
    }
  };
  const auto lacks = [](const Flight& flight, Stage stage) { return !flight.at[index(stage)]; };

  if (event.stage == Stage::submitted) {
    const auto negotiated_first = std::find_if(flights.begin(), flights.end(), [&](const Flight& flight) {
      return lacks(flight, Stage::submitted) && flight.at[index(Stage::negotiated)] >= event.time;
    });
    if (negotiated_first != flights.end()) return *negotiated_first;
    close_oldest(std::ssize(flights) - 1);
    return flights.emplace_back(Flight{.operation = event.operation, .at = {}});
  }

  // Only the newest can be new to negotiation; later stages and ends come in order.
  const auto fits = [&](const Flight& flight) {
    return flight.operation == event.operation &&
           (event.stage != Stage::negotiated || (&flight == &flights.back() && lacks(flight, Stage::negotiated)));
  };
  close_oldest(std::find_if(flights.begin(), flights.end(), fits) - flights.begin());
  if (flights.empty()) flights.push_back(Flight{.operation = event.operation, .at = {}});
  return flights.front();
}

void TraceBuilder::append_flight(const Lane& lane, const Flight& flight, Time end, std::string_view remark,
                                 std::string& out) const {
  const auto at = [&](Stage stage) { return flight.at[index(stage)]; };
  const std::string args =
      fmt::format(R"("name":{},"bytes":{},"batch":{})", lane.quoted_name, flight.bytes, flight.batch);
  const std::string last_args = remark.empty() ? args : fmt::format("{},{}", args, remark);
  const std::string name = phase_name(flight.operation);
  const std::string negotiation = fmt::format("NEGOTIATE_{}", name);

  std::optional<Time> begin = at(Stage::negotiated);
  if (begin) {
    if (const auto submitted = at(Stage::submitted)) {
      append_phase(lane, negotiation, *submitted, *begin, args, out);
    }
  } else if (at(Stage::submitted) && !remark.empty()) {
    append_phase(lane, negotiation, *at(Stage::submitted), end, last_args, out);
    return;
  } else {
    // No negotiation seen: the operation begins with the first thing that is known of it.
    const auto first = std::find_if(flight.at.begin(), flight.at.end(), [](const auto& t) { return t.has_value(); });
    begin = first == flight.at.end() ? end : *first;
  }
  append_phase(lane, name, *begin, end, last_args, out);

  const bool moves_only = !is_reduction(flight.operation);
  Time from = *begin;
  const std::array<std::pair<Stage, std::string_view>, 3> inner{{{Stage::packed, "QUEUE_AND_PACK"},
                                                                 {Stage::reduced, moves_only ? "TRANSFER" : "REDUCE"},
                                                                 {Stage::unpacked, "UNPACK"}}};
  for (const auto& [stage, phase] : inner) {
    const auto reached = at(stage);
    if (!reached) continue;
    // Kept inside the outer phase, or viewers cannot nest it.
    const Time to = std::clamp(*reached, from, std::max(from, end));
    append_phase(lane, phase, from, to, "", out);
    from = to;
  }
}

void TraceBuilder::append_phase(const Lane& lane, std::string_view name, Time from, Time to, std::string_view args,
                                std::string& out) const {
  const double begin = microseconds(from);
  fmt::format_to(std::back_inserter(out),
                 ",\n"
                 R"({{"name":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{{}}}}})",
                 name, begin, std::max(microseconds(to) - begin, 0.0), origin_.rank, lane.tid, args);
}

double TraceBuilder::microseconds(Time time) const {
  return std::chrono::duration<double, std::micro>(time - origin_.start).count();
}

}  // namespace hvd
