#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

extern char** environ;

namespace hvd::test {

namespace {

using Clock = std::chrono::steady_clock;

pid_t spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<std::string> words{"/proc/self/exe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start a child process");
  return child;
}

}  // namespace

ChildResult run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit, std::size_t kept_bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const pid_t child = spawn(arguments, ends[1]);
  close(ends[1]);

  ChildResult result;
  const auto deadline = Clock::now() + limit;
  std::array<char, 65536> buffer{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd readable{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, static_cast<int>(std::clamp<long long>(left, 0, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && !result.timed_out) {
      result.timed_out = true;
      kill(child, SIGKILL);
      break;
    }
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    if (count <= 0) break;
    result.output.append(buffer.data(), static_cast<std::size_t>(count));
    if (result.output.size() > 2 * kept_bytes) result.output.erase(0, result.output.size() - kept_bytes);
  }
  close(ends[0]);
  waitpid(child, &result.status, 0);
  return result;
}

}  // namespace hvd::test
