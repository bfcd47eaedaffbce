#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace {

constexpr std::chrono::milliseconds bar_interval{100};
constexpr std::chrono::seconds line_interval{5};
constexpr int bar_width = 30;

// mpirun gives its ranks a pseudo-terminal wherever its own output goes, so under mpirun that of the parent process
// counts.
bool writes_to_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  std::error_code ignored;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), ignored).string();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(bool shown, std::string title, std::int64_t images)
    : shown_(shown),
      terminal_(shown && writes_to_terminal()),
      title_(std::move(title)),
      images_(images),
      next_(start_) {
  if (!terminal_) next_ += line_interval;
}

Progress::~Progress() {
  if (!bar_visible_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

void Progress::update(std::int64_t images, double loss) {
  const Clock::time_point now = Clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(bar_interval) : Clock::duration(line_interval));
  const double done = static_cast<double>(images) / static_cast<double>(std::max<std::int64_t>(images_, 1));
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 1e-9);
  const std::string numbers = fmt::format("{:3.0f} %  loss {:.3f}  {:.0f} images/s  ETA {}", 100 * done, loss,
                                          static_cast<double>(images) / seconds, duration(seconds * (1 / done - 1)));
  if (terminal_) {
    const int full = std::min(bar_width, static_cast<int>(done * bar_width));
    std::fputs(fmt::format("\r{} [{:<{}}] {}\033[K", title_, std::string(static_cast<std::size_t>(full), '='),
                           bar_width, numbers)
                   .c_str(),
               stdout);
    bar_visible_ = true;
  } else {
    std::fputs(fmt::format("{}: {}\n", title_, numbers).c_str(), stdout);
  }
  std::fflush(stdout);
}
