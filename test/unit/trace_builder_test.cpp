#include "observe/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "trace_check.h"

namespace hvd {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using test::checked_trace;
using test::events_named;

const std::chrono::steady_clock::time_point start{std::chrono::hours(1)};

constexpr std::array<Stage, 5> timed{Stage::submitted, Stage::negotiated, Stage::packed, Stage::reduced,
                                     Stage::unpacked};

// A builder and its text.
struct Trace {
  TraceBuilder builder{TraceOrigin{.rank = 3,
                                   .size = 4,
                                   .host = "node \"a\"",
                                   .pid = 77,
                                   .start = start,
                                   .wall_clock_of_start = std::chrono::system_clock::time_point(microseconds(5))}};
  std::string text;

  Trace() { builder.append_metadata(text); }
  void add(Stage stage, nanoseconds time, std::string_view name = "t", Operation operation = Operation::allreduce,
           std::string_view error = {}) {
    builder.add({.stage = stage,
                 .operation = operation,
                 .name = name,
                 .bytes = 4096,
                 .batch = stage == Stage::submitted ? 0U : 9U,
                 .time = start + time,
                 .error = error},
                text);
  }
  void add_whole(nanoseconds time, std::string_view name = "t") {
    int step = 0;
    for (const Stage stage : timed) add(stage, time + microseconds(step++), name);
    add(Stage::done, time + microseconds(step), name);
  }
  nlohmann::json parsed(nanoseconds now = std::chrono::seconds(1)) const {
    std::string whole = "[" + text;
    builder.append_unfinished(start + now, whole);
    return checked_trace(whole + "]");
  }
};

TEST(TraceBuilder, begins_with_who_and_when) {
  const nlohmann::json trace = Trace().parsed();
  ASSERT_EQ(trace.size(), 3U);
  EXPECT_EQ(events_named(trace, "process_name").at(0).at("args").at("name"), "rank 3 (host node \"a\", pid 77)");
  EXPECT_EQ(events_named(trace, "process_sort_index").at(0).at("args").at("sort_index"), 3);
  const nlohmann::json clock = events_named(trace, "hvd_clock").at(0);
  EXPECT_EQ(clock.at("pid"), 3);
  EXPECT_EQ(clock.at("args"),
            (nlohmann::json{
                {"rank", 3}, {"size", 4}, {"unix_ns_of_ts_0", "5000"}, {"monotonic_ns_of_ts_0", "3600000000000"}}));
}

TEST(TraceBuilder, shows_an_operation_as_negotiation_and_execution_with_its_phases) {
  Trace trace;
  trace.add(Stage::submitted, nanoseconds(1500));
  trace.add(Stage::negotiated, microseconds(10));
  trace.add(Stage::packed, microseconds(12));
  trace.add(Stage::reduced, microseconds(15));
  trace.add(Stage::unpacked, microseconds(16));
  trace.add(Stage::done, microseconds(17));
  const nlohmann::json parsed = trace.parsed();
  const auto span = [&](const std::string& name) {
    const auto found = events_named(parsed, name);
    EXPECT_EQ(found.size(), 1U) << name;
    return std::pair<double, double>(found.at(0).at("ts"), found.at(0).at("dur"));
  };
  EXPECT_EQ(span("NEGOTIATE_ALLREDUCE"), std::pair(1.5, 8.5));
  EXPECT_EQ(span("ALLREDUCE"), std::pair(10.0, 7.0));
  EXPECT_EQ(span("QUEUE_AND_PACK"), std::pair(10.0, 2.0));
  EXPECT_EQ(span("REDUCE"), std::pair(12.0, 3.0));
  EXPECT_EQ(span("UNPACK"), std::pair(15.0, 1.0));
  EXPECT_EQ(events_named(parsed, "ALLREDUCE").at(0).at("args"),
            (nlohmann::json{{"name", "t"}, {"bytes", 4096}, {"batch", 9}}));
  EXPECT_EQ(events_named(parsed, "thread_name").at(0).at("args").at("name"), "t");
}

TEST(TraceBuilder, gives_each_name_its_lane) {
  Trace trace;
  trace.add_whole(microseconds(0), "a");
  trace.add_whole(microseconds(0), "b");
  trace.add_whole(microseconds(100), "a");
  const auto operations = events_named(trace.parsed(), "ALLREDUCE");
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_NE(operations[0].at("tid"), operations[1].at("tid"));
  EXPECT_EQ(operations[0].at("tid"), operations[2].at("tid"));
  EXPECT_EQ(events_named(trace.parsed(), "thread_name").size(), 2U);
}

TEST(TraceBuilder, lets_the_names_beyond_its_limit_share_a_lane) {
  Trace trace;
  for (int i = 0; i < TraceBuilder::max_lanes + 100; ++i) trace.add_whole(microseconds(10 * i), std::to_string(i));
  const nlohmann::json parsed = trace.parsed();
  EXPECT_EQ(events_named(parsed, "thread_name").size(), static_cast<std::size_t>(TraceBuilder::max_lanes) + 1);
  const nlohmann::json last = events_named(parsed, "ALLREDUCE").back();
  EXPECT_EQ(last.at("tid"), TraceBuilder::max_lanes + 1);
  EXPECT_EQ(last.at("args").at("name"), std::to_string(TraceBuilder::max_lanes + 99));
}

TEST(TraceBuilder, takes_names_and_errors_of_any_bytes) {
  Trace trace;
  const std::string name = "quote \" backslash \\ newline \n tab \t escape \x1b latin \xe4 cut \xe2\x82";
  trace.add(Stage::submitted, microseconds(1), name);
  trace.add(Stage::failed, microseconds(2), name, Operation::allreduce, "because \xff \"\n");
  const nlohmann::json args = events_named(trace.parsed(), "NEGOTIATE_ALLREDUCE").at(0).at("args");
  EXPECT_EQ(args.at("name"), "quote \" backslash \\ newline \n tab \t escape \x1b latin \xef\xbf\xbd cut \xef\xbf\xbd");
  EXPECT_EQ(args.at("error"), "because \xef\xbf\xbd \"\n");
}

TEST(TraceBuilder, shows_where_an_operation_failed) {
  Trace trace;
  trace.add(Stage::submitted, microseconds(1), "early");
  trace.add(Stage::failed, microseconds(2), "early", Operation::broadcast, "stalled");
  trace.add(Stage::submitted, microseconds(1), "late", Operation::broadcast);
  trace.add(Stage::negotiated, microseconds(3), "late", Operation::broadcast);
  trace.add(Stage::failed, microseconds(5), "late", Operation::broadcast, "rank lost");
  const nlohmann::json parsed = trace.parsed();
  const auto late = events_named(parsed, "BROADCAST");
  EXPECT_EQ(late.back().at("args").at("error"), "rank lost");
  EXPECT_EQ(late.back().at("dur"), 2.0);
}

TEST(TraceBuilder, shows_a_barrier_without_inner_phases) {
  Trace trace;
  for (const Stage stage : {Stage::submitted, Stage::negotiated, Stage::done}) {
    trace.add(stage, microseconds(static_cast<int>(stage)), "b", Operation::barrier);
  }
  const nlohmann::json parsed = trace.parsed();
  EXPECT_EQ(events_named(parsed, "NEGOTIATE_BARRIER").size(), 1U);
  EXPECT_EQ(events_named(parsed, "BARRIER").size(), 1U);
  EXPECT_EQ(parsed.size(), 3U + 1U + 2U);
}

TEST(TraceBuilder, shows_what_is_still_in_flight) {
  Trace trace;
  trace.add(Stage::submitted, microseconds(1));
  nlohmann::json event = events_named(trace.parsed(microseconds(100)), "NEGOTIATE_ALLREDUCE").at(0);
  EXPECT_EQ(event.at("dur"), 99.0);
  EXPECT_EQ(event.at("args").at("unfinished"), true);
  trace.add(Stage::negotiated, microseconds(200));
  event = events_named(trace.parsed(microseconds(300)), "ALLREDUCE").at(0);
  EXPECT_EQ(event.at("dur"), 100.0);
  EXPECT_EQ(event.at("args").at("unfinished"), true);
  trace.add(Stage::done, microseconds(400));
  event = events_named(trace.parsed(microseconds(500)), "ALLREDUCE").at(0);
  EXPECT_EQ(event.at("dur"), 200.0);
  EXPECT_FALSE(event.at("args").contains("unfinished"));
}

TEST(TraceBuilder, pairs_a_submission_that_overtakes_the_end_before_it) {
  Trace trace;
  trace.add(Stage::submitted, microseconds(1));
  trace.add(Stage::negotiated, microseconds(2));
  trace.add(Stage::submitted, microseconds(11));
  trace.add(Stage::done, microseconds(10));
  trace.add(Stage::negotiated, microseconds(12));
  trace.add(Stage::done, microseconds(20));
  const nlohmann::json parsed = trace.parsed();
  const auto operations = events_named(parsed, "ALLREDUCE");
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].at("dur"), 8.0);
  EXPECT_EQ(operations[1].at("dur"), 8.0);
  EXPECT_EQ(events_named(parsed, "NEGOTIATE_ALLREDUCE").at(1).at("ts"), 11.0);
}

TEST(TraceBuilder, pairs_a_submission_that_follows_its_negotiation) {
  Trace trace;
  trace.add(Stage::negotiated, microseconds(5));
  trace.add(Stage::submitted, microseconds(1));
  trace.add(Stage::done, microseconds(9));
  const nlohmann::json parsed = trace.parsed();
  EXPECT_EQ(events_named(parsed, "NEGOTIATE_ALLREDUCE").at(0).at("dur"), 4.0);
  EXPECT_EQ(events_named(parsed, "ALLREDUCE").size(), 1U);
}

TEST(TraceBuilder, stays_sane_when_any_events_are_missing) {
  for (unsigned present = 0; present < 32; ++present) {
    for (const Stage end : {Stage::done, Stage::failed, Stage::submitted}) {  // the last: no end
      Trace trace;
      for (std::size_t i = 0; i < timed.size(); ++i) {
        if ((present >> i & 1U) != 0) trace.add(timed[i], microseconds(i));
      }
      if (end != Stage::submitted) trace.add(end, microseconds(9), "t", Operation::allreduce, "text");
      trace.add_whole(microseconds(20));
      trace.add_whole(microseconds(40));
      const nlohmann::json parsed = trace.parsed();
      const auto operations = events_named(parsed, "ALLREDUCE");
      ASSERT_FALSE(operations.empty());
      EXPECT_EQ(operations.back().at("ts"), 41.0) << present;
      EXPECT_EQ(operations.back().at("dur"), 4.0) << present;
      EXPECT_FALSE(operations.back().at("args").contains("unfinished")) << present;
    }
  }
}

// One thread reports submissions, another all else, each in order; how the two interleave is open, but for this: the
// first submission comes before its end, the second after the first's result was there and before its own end.
TEST(TraceBuilder, pairs_events_in_every_legal_order) {
  constexpr std::size_t steps = 5;  // negotiated ... done
  for (std::size_t first = 0; first < steps; ++first) {
    for (std::size_t second = std::max(first, steps - 1); second < 2 * steps; ++second) {
      Trace trace;
      for (std::size_t i = 0; i < 2 * steps; ++i) {
        if (i == first) trace.add(Stage::submitted, microseconds(0));
        if (i == second) trace.add(Stage::submitted, microseconds(5));
        const auto stage = static_cast<Stage>(i % steps + 1);
        trace.add(stage, microseconds(1 + i + (i < steps ? 0 : 1)));
      }
      const nlohmann::json parsed = trace.parsed();
      const auto negotiations = events_named(parsed, "NEGOTIATE_ALLREDUCE");
      const auto operations = events_named(parsed, "ALLREDUCE");
      ASSERT_EQ(negotiations.size(), 2U) << first << " " << second;
      ASSERT_EQ(operations.size(), 2U) << first << " " << second;
      EXPECT_EQ(negotiations[0].at("ts"), 0.0);
      EXPECT_EQ(negotiations[1].at("ts"), 5.0);
      EXPECT_EQ(operations[0].at("ts"), 1.0);
      EXPECT_EQ(operations[1].at("ts"), 7.0);
      for (const auto& event : operations) {
        EXPECT_EQ(event.at("dur"), 4.0);
        EXPECT_FALSE(event.at("args").contains("unfinished"));
      }
    }
  }
}

}  // namespace
}  // namespace hvd
