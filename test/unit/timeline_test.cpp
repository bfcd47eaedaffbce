#include "observe/timeline.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <hvd/error.h>

#include "observe/event_buffer.h"
#include "trace_check.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using test::checked_trace;
using test::events_named;

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "timeline-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TimelineOptions options_for(const std::string& pattern) {
  TimelineOptions options;
  options.pattern = pattern;
  options.host = "here";
  return options;
}

Logger logger() { return Logger(LogLevel::warning, true, 0, 1); }

void report(Timeline& timeline, std::string_view name, Stage stage) {
  timeline.on_event({.stage = stage,
                     .operation = Operation::allreduce,
                     .name = name,
                     .bytes = 64,
                     .batch = 1,
                     .time = std::chrono::steady_clock::now(),
                     .error = {}});
}

void report_whole(Timeline& timeline, std::string_view name) {
  for (const Stage stage :
       {Stage::submitted, Stage::negotiated, Stage::packed, Stage::reduced, Stage::unpacked, Stage::done}) {
    report(timeline, name, stage);
  }
}

std::string error_from(const std::string& pattern) {
  try {
    const Timeline timeline(options_for(pattern), logger());
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(EventBuffer, counts_what_it_has_no_room_for) {
  EventBuffer buffer;
  const std::string name(EventBuffer::most_bytes / 2, 'n');
  const TensorEvent event{.stage = Stage::failed,
                          .operation = Operation::allgather,
                          .name = name,
                          .bytes = 1,
                          .batch = 2,
                          .time = {},
                          .error = "why"};
  for (int i = 0; i < 5; ++i) buffer.push(event);
  EXPECT_EQ(buffer.dropped, 3U);
  std::size_t kept = 0;
  buffer.for_each([&](const TensorEvent& copy) {
    ++kept;
    EXPECT_TRUE(copy.name == name && copy.error == "why" && copy.batch == 2U);
  });
  EXPECT_EQ(kept, 2U);
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
}

TEST(TimelinePath, puts_the_rank_where_it_is_asked_for_or_before_the_extension) {
  EXPECT_EQ(timeline_path("trace.json", 3), "trace.3.json");
  EXPECT_EQ(timeline_path("/a.b/trace", 0), "/a.b/trace.0");
  EXPECT_EQ(timeline_path("a/trace.tar.gz", 12), "a/trace.tar.12.gz");
  EXPECT_EQ(timeline_path("r{rank}/{rank}.json", 7), "r7/7.json");
}

TEST(Timeline, is_a_valid_trace_without_any_operation) {
  const Directory directory;
  { const Timeline timeline(options_for(directory / "trace.json"), logger()); }
  const nlohmann::json trace = checked_trace(contents_of(directory / "trace.0.json"));
  EXPECT_EQ(trace.size(), 3U);
  EXPECT_EQ(events_named(trace, "process_name").size(), 1U);
}

TEST(Timeline, is_valid_after_each_flush_while_temporary_events_come_and_go) {
  const Directory directory;
  Timeline timeline(options_for(directory / "{rank}.json"), logger());
  EXPECT_EQ(checked_trace(contents_of(directory / "0.json")).size(), 3U);
  const std::string long_name(5000, 'n');
  for (std::size_t round = 1; round <= 3; ++round) {
    report(timeline, long_name, Stage::submitted);
    report(timeline, "short", Stage::submitted);
    timeline.flush();
    EXPECT_EQ(events_named(checked_trace(contents_of(directory / "0.json")), "NEGOTIATE_ALLREDUCE").size(), 2 * round);
    report(timeline, long_name, Stage::failed);
    report(timeline, "short", Stage::failed);
    timeline.flush();
    const nlohmann::json trace = checked_trace(contents_of(directory / "0.json"));
    EXPECT_EQ(events_named(trace, "NEGOTIATE_ALLREDUCE").size(), 2 * round);
    for (const auto& event : events_named(trace, "NEGOTIATE_ALLREDUCE")) {
      EXPECT_FALSE(event.at("args").contains("unfinished"));
    }
  }
}

TEST(Timeline, flushes_by_itself_and_when_it_ends) {
  const Directory directory;
  const std::string path = directory / "trace.0.json";
  auto timeline = std::make_unique<Timeline>(options_for(directory / "trace.json"), logger());
  report_whole(*timeline, "first");
  while (contents_of(path).find("first") == std::string::npos) std::this_thread::sleep_for(milliseconds(5));
  report_whole(*timeline, "second \"\\\n\xff");
  timeline.reset();
  const auto operations = events_named(checked_trace(contents_of(path)), "ALLREDUCE");
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[1].at("args").at("name"), "second \"\\\n\xef\xbf\xbd");
}

TEST(Timeline, takes_events_of_several_threads) {
  const Directory directory;
  constexpr int rounds = 3000;
  {
    Timeline timeline(options_for(directory / "trace.json"), logger());
    std::vector<std::jthread> threads;
    for (const std::string name : {"a", "b", "c"}) {
      threads.emplace_back([&timeline, name] {
        for (int i = 0; i < rounds; ++i) report_whole(timeline, name);
      });
    }
    timeline.flush();
  }
  const nlohmann::json trace = checked_trace(contents_of(directory / "trace.0.json"));
  EXPECT_EQ(events_named(trace, "ALLREDUCE").size(), 3U * rounds);
  EXPECT_EQ(events_named(trace, "UNPACK").size(), 3U * rounds);
}

TEST(Timeline, replaces_an_older_trace) {
  const Directory directory;
  std::ofstream(directory / "trace.0.json") << std::string(10000, 'x');
  { const Timeline timeline(options_for(directory / "trace.json"), logger()); }
  EXPECT_EQ(checked_trace(contents_of(directory / "trace.0.json")).size(), 3U);
}

TEST(Timeline, says_why_its_file_cannot_be_written) {
  const Directory directory;
  const auto text = [](const std::string& path, const std::string& why) {
    return "cannot write the timeline '" + path + "': " + why;
  };
  EXPECT_EQ(error_from(directory / "missing/trace.json"),
            text(directory / "missing/trace.0.json", "No such file or directory"));
  EXPECT_EQ(error_from(directory / "."), text(directory / ".", "Is a directory"));
  EXPECT_EQ(error_from(directory / "missing/"), text(directory / "missing/", "Is a directory"));
  std::filesystem::create_directory(directory / "trace.0.json");
  EXPECT_EQ(error_from(directory / "trace.json"), text(directory / "trace.0.json", "Is a directory"));
  ASSERT_EQ(::mkfifo((directory / "fifo.0").c_str(), 0600), 0);
  EXPECT_EQ(error_from(directory / "fifo"), text(directory / "fifo.0", "No such device or address"));
  if (::geteuid() != 0) {  // who is root may write everywhere
    std::ofstream(directory / "kept.0.json") << "kept";
    std::filesystem::permissions(directory / "kept.0.json", std::filesystem::perms::owner_read);
    EXPECT_EQ(error_from(directory / "kept.json"), text(directory / "kept.0.json", "Permission denied"));
  }
}

TEST(Timeline, ends_with_one_warning_and_a_valid_file_when_the_disk_is_full) {
  const Directory directory;
  const std::string path = directory / "trace.0.json";
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  testing::internal::CaptureStderr();
  {
    Timeline timeline(options_for(directory / "trace.json"), logger());
    ::rlimit small = before;
    small.rlim_cur = 16 << 10;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    report_whole(timeline, "fits");
    while (contents_of(path).find("fits") == std::string::npos) std::this_thread::sleep_for(milliseconds(5));
    for (int i = 0; i < 3; ++i) {
      for (int event = 0; event < 1000; ++event) report_whole(timeline, "does not fit");
      std::this_thread::sleep_for(milliseconds(150));
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[hvd 0/1] warning: the timeline '" + path + "' ends here: File too large\n");
  EXPECT_EQ(events_named(checked_trace(contents_of(path)), "ALLREDUCE").size(), 1U);
}

TEST(Timeline, is_left_alone_by_a_forked_child) {
  const Directory directory;
  auto timeline = std::make_unique<Timeline>(options_for(directory / "trace.json"), logger());
  report_whole(*timeline, "parent's");
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    timeline.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  timeline.reset();
  EXPECT_EQ(events_named(checked_trace(contents_of(directory / "trace.0.json")), "ALLREDUCE").size(), 1U);
}

[[noreturn]] void work_until_killed_by(int signal, const std::string& pattern) {
  const ::rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  Timeline timeline(options_for(pattern), logger());
  const std::array<std::string, 3> names{"quote \"", "newline \n", "bytes \xff\\"};
  for (std::size_t i = 0;; ++i) {
    report_whole(timeline, names[i % names.size()]);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (i % 100 != 0 || contents_of(timeline_path(pattern, 0)).size() < 100000) continue;
    if (signal == SIGABRT) std::abort();
    ::kill(::getpid(), signal);
  }
}

// The text of a trace whose last write may have been cut off: without its one line that is not whole, and closed.
std::string mended(const std::string& text) {
  if (nlohmann::json::accept(text)) return text;
  std::istringstream lines(text);
  std::string whole;
  std::size_t cut = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(',')) line.pop_back();
    if (line == "[" || line == "]" || line.find_first_not_of(' ') == std::string::npos) continue;
    if (!nlohmann::json::accept(line)) {
      ++cut;
    } else {
      whole += (whole.empty() ? "" : ",\n") + line;
    }
  }
  EXPECT_LE(cut, 1U) << text.substr(text.size() - 2000);
  return "[\n" + whole + "\n]\n";
}

class TimelineDeathTest : public testing::TestWithParam<int> {};

TEST_P(TimelineDeathTest, leaves_a_file_whole_but_for_one_line_when_the_process_is_killed) {
  // The child is this program anew, for it starts a thread; it runs this test up to the line that kills it.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr auto variable = "TIMELINE_OF_KILLED_PROCESS";
  std::optional<Directory> directory;
  if (std::getenv(variable) == nullptr) {
    ::setenv(variable, (directory.emplace() / "trace.json").c_str(), 1);
  }
  const std::string pattern = std::getenv(variable);
  EXPECT_EXIT(work_until_killed_by(GetParam(), pattern), testing::KilledBySignal(GetParam()), "");
  ::unsetenv(variable);
  EXPECT_FALSE(events_named(checked_trace(mended(contents_of(timeline_path(pattern, 0)))), "ALLREDUCE").empty());
}

INSTANTIATE_TEST_SUITE_P(Signals, TimelineDeathTest, testing::Values(SIGTERM, SIGKILL, SIGABRT));

}  // namespace
}  // namespace hvd
