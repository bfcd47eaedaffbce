#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <hvd/observer.h>

#include "observe/log.h"

namespace hvd {

// The file of one rank: every "{rank}" in the pattern stands for the rank; without one the rank goes before the
// extension, trace.json -> trace.0.json.
std::string timeline_path(const std::string& pattern, int rank);

struct TimelineOptions {
  std::string pattern;
  int rank = 0;
  int size = 1;
  std::string host;
  // ts 0 of the trace. The ranks of one host may share it, for the clock is the host's; traces of several hosts are put
  // side by side by the wall-clock time of ts 0 that each file tells.
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

// Writes a Chrome trace (chrome://tracing, Perfetto), one file per rank; TraceBuilder has the layout, TraceFile what
// can be relied on when the process is killed. A thread of its own formats and writes, every 100 ms or 256 KiB while
// there is news; without news it sleeps. At the first failure to write, a full disk say, the timeline warns once and
// ends.
class Timeline final : public Observer {
 public:
  // Throws InvalidArgumentError with path and reason when the file cannot be written.
  Timeline(const TimelineOptions& options, Logger logger);
  ~Timeline() override;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Any thread. Copies the event and no more.
  void on_event(const TensorEvent& event) noexcept override;
  // Writes what has been seen so far.
  void flush() noexcept;

 private:
  struct Shared;

  // Out of line, and left behind in a forked child: there the thread does not exist and its locks may be held for ever.
  std::unique_ptr<Shared> shared_;
  std::jthread writer_;
  int pid_;
};

}  // namespace hvd
