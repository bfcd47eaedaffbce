#include "observe/timeline.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

#include <hvd/error.h>

#include "observe/event_buffer.h"
#include "observe/trace_builder.h"
#include "observe/trace_file.h"

namespace hvd {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds flush_interval{100};
constexpr std::size_t flush_bytes = std::size_t{256} << 10;

// Blocks the signals of the program's own handlers on the threads that are started meanwhile; those handlers should not
// run on the writer. Also keeps SIGXFSZ, a file at its size limit, from ending the process: there the write fails
// instead.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&signals, fault);
    pthread_sigmask(SIG_SETMASK, &signals, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::string checked_path(const TimelineOptions& options) {
  struct stat status {};
  const bool is_directory = ::stat(options.pattern.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (is_directory || options.pattern.ends_with('/')) {
    throw InvalidArgumentError(
        fmt::format("cannot write the timeline '{}': {}", options.pattern, std::generic_category().message(EISDIR)));
  }
  return timeline_path(options.pattern, options.rank);
}

TraceOrigin origin_of(const TimelineOptions& options) {
  const auto since_start =
      std::chrono::duration_cast<std::chrono::system_clock::duration>(Clock::now() - options.start);
  return {.rank = options.rank,
          .size = options.size,
          .host = options.host,
          .pid = ::getpid(),
          .start = options.start,
          .wall_clock_of_start = std::chrono::system_clock::now() - since_start};
}

std::string metadata_of(const TraceBuilder& builder) {
  std::string text;
  builder.append_metadata(text);
  return text;
}

}  // namespace

std::string timeline_path(const std::string& pattern, int rank) {
  constexpr std::string_view placeholder = "{rank}";
  const std::string number = std::to_string(rank);
  if (pattern.find(placeholder) == std::string::npos) {
    std::filesystem::path path = pattern;
    const std::string extension = path.extension().string();
    return path.replace_extension(number + extension).string();
  }
  std::string path = pattern;
  for (std::size_t at = 0; (at = path.find(placeholder, at)) != std::string::npos; at += number.size()) {
    path.replace(at, placeholder.size(), number);
  }
  return path;
}

struct Timeline::Shared {
  Shared(const TimelineOptions& options, Logger log)
      : logger(std::move(log)),
        path(checked_path(options)),
        builder(origin_of(options)),
        file(path, metadata_of(builder)) {}

  void run(const std::stop_token& stop);
  void write_news();
  void end(std::string_view why);

  const Logger logger;
  const std::string path;

  std::mutex mutex;
  std::condition_variable_any news;
  EventBuffer incoming;
  bool ended = false;

  std::mutex writing;  // taken before `mutex`
  TraceBuilder builder;
  TraceFile file;
  EventBuffer taken;
  std::string elements;
  std::string temporary;
};

void Timeline::Shared::run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "hvd-timeline");
  while (true) {
    {
      std::unique_lock lock(mutex);
      if (!news.wait(lock, stop, [&] { return !incoming.empty(); })) return;
      news.wait_for(lock, stop, flush_interval, [&] { return incoming.bytes() >= flush_bytes; });
    }
    write_news();
  }
}

void Timeline::Shared::write_news() {
  const std::lock_guard writing_lock(writing);
  try {
    {
      const std::lock_guard lock(mutex);
      if (ended || incoming.empty()) return;
      std::swap(incoming, taken);
    }
    elements.clear();
    temporary.clear();
    const Clock::time_point now = Clock::now();
    taken.for_each([&](const TensorEvent& event) { builder.add(event, elements); });
    if (taken.dropped > 0) {
      builder.append_remark(now, fmt::format("{} events dropped: the disk is too slow", taken.dropped), elements);
    }
    builder.append_unfinished(now, temporary);
    taken.clear();
    const std::string problem = file.append(elements, temporary);
    if (!problem.empty()) end(problem);
  } catch (const std::exception& exception) {
    end(exception.what());
  }
}

void Timeline::Shared::end(std::string_view why) {
  logger.warning("the timeline '{}' ends here: {}", path, why);
  const std::lock_guard lock(mutex);
  ended = true;
  incoming.clear();
}

Timeline::Timeline(const TimelineOptions& options, Logger logger)
    : shared_(std::make_unique<Shared>(options, std::move(logger))), pid_(::getpid()) {
  const SignalsBlocked blocked;
  writer_ = std::jthread([shared = shared_.get()](const std::stop_token& stop) { shared->run(stop); });
}

Timeline::~Timeline() {
  if (::getpid() != pid_) {
    writer_.detach();
    static_cast<void>(shared_.release());
    return;
  }
  writer_.request_stop();  // it writes what is left first
  writer_.join();
}

void Timeline::on_event(const TensorEvent& event) noexcept {
  Shared& shared = *shared_;
  bool wake = false;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.ended) return;
    const bool was_empty = shared.incoming.empty();
    const std::size_t before = shared.incoming.bytes();
    shared.incoming.push(event);
    wake = was_empty || (before < flush_bytes && shared.incoming.bytes() >= flush_bytes);
  }
  if (wake) shared.news.notify_one();
}

void Timeline::flush() noexcept { shared_->write_news(); }

}  // namespace hvd
