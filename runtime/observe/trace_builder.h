#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <hvd/observer.h>

namespace hvd {

// What one trace file says about where it comes from. `start` is ts 0; ranks that share it have traces that fit
// together.
struct TraceOrigin {
  int rank = 0;
  int size = 1;
  std::string host;
  int pid = 0;
  std::chrono::steady_clock::time_point start;
  std::chrono::system_clock::time_point wall_clock_of_start;
};

// Turns what happens to tensors into Chrome trace events, as text: JSON objects, one a line. Pure; the caller
// serialises.
//
// One process per rank, one thread ("lane") per tensor name. In a lane, per operation:
//
//   |-- NEGOTIATE_ALLREDUCE --|----------------- ALLREDUCE -----------------|
//                             |- QUEUE_AND_PACK -|- REDUCE -|- UNPACK -|
//   submitted             negotiated          packed     reduced   unpacked done
//
// All are complete events ("X": a beginning and a duration), so no begin can lack its end. A stage that did not happen
// leaves out its phase; an operation that failed has args.error on its last outer phase.
class TraceBuilder {
 public:
  // Names beyond this many share one lane.
  static constexpr int max_lanes = 4096;

  explicit TraceBuilder(TraceOrigin origin) : origin_(std::move(origin)) {}

  // What the file starts with.
  void append_metadata(std::string& out) const;
  // Takes one event in; what is thereby complete is appended, each event with ",\n" before it.
  void add(const TensorEvent& event, std::string& out);
  // The operations that are still in flight, as if they ended now, with args.unfinished; for the end of the file only.
  void append_unfinished(std::chrono::steady_clock::time_point now, std::string& out) const;
  // A remark at a point in time, across all lanes.
  void append_remark(std::chrono::steady_clock::time_point time, std::string_view text, std::string& out) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t timed_stages = static_cast<std::size_t>(Stage::done);  // those before the end

  struct Flight {
    Operation operation;
    std::int64_t bytes = 0;
    std::uint64_t batch = 0;
    std::array<std::optional<Time>, timed_stages> at;
  };
  struct Lane {
    int tid = 0;
    std::string quoted_name;
    // More than one only for a moment: the waiter of one may submit the next before the first's end is reported.
    std::deque<Flight> flights;
  };

  Lane& lane_of(std::string_view name, std::string& out);
  Flight& flight_of(Lane& lane, const TensorEvent& event, std::string& out) const;
  void append_flight(const Lane& lane, const Flight& flight, Time end, std::string_view remark, std::string& out) const;
  void append_phase(const Lane& lane, std::string_view name, Time from, Time to, std::string_view args,
                    std::string& out) const;
  double microseconds(Time time) const;

  TraceOrigin origin_;
  std::unordered_map<std::string, Lane> lanes_;
  int lanes_given_ = 0;
  bool overflow_named_ = false;
};

}  // namespace hvd
