#include "observe/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <hvd/error.h>

namespace hvd {

namespace {

constexpr std::string_view closing = "\n]\n";

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void throw_unusable(const std::string& path, std::string_view why) {
  throw InvalidArgumentError(fmt::format("cannot write the timeline '{}': {}", path, why));
}

}  // namespace

TraceFile::TraceFile(const std::string& path, std::string_view first_elements) {
  // O_NONBLOCK: a FIFO without a reader is an error and not a wait.
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0) throw_unusable(path, reason(errno));
  struct stat status {};
  std::string problem;
  if (::fstat(descriptor_, &status) != 0) {
    problem = reason(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = "not a regular file";
  } else {
    problem = append(fmt::format("[\n{}", first_elements), "");
  }
  if (!problem.empty()) {
    ::close(descriptor_);
    throw_unusable(path, problem);
  }
}

TraceFile::~TraceFile() { ::close(descriptor_); }

std::string TraceFile::append(std::string_view elements, std::string_view temporary) {
  const std::int64_t end = end_ + static_cast<std::int64_t>(elements.size());
  std::string text;
  text.reserve(elements.size() + temporary.size() + closing.size());
  text.append(elements).append(temporary);
  // Blanks over what is left of longer temporary elements; cutting the file off would be a second step.
  const std::int64_t left = size_ - end_ - static_cast<std::int64_t>(text.size() + closing.size());
  if (left > 0) text.append(static_cast<std::size_t>(left), ' ');
  text.append(closing);

  std::string problem = write_at(text, end_);
  if (problem.empty()) {
    size_ = end_ + static_cast<std::int64_t>(text.size());
    end_ = end;
  } else if (size_ > 0) {
    // These bytes are the file's already, so that a full disk does not keep them from being overwritten.
    const std::int64_t whole = end_ + static_cast<std::int64_t>(closing.size());
    if (write_at(closing, end_).empty() && ::ftruncate(descriptor_, whole) == 0) size_ = whole;
  }
  return problem;
}

std::string TraceFile::write_at(std::string_view text, std::int64_t offset) const {
  while (!text.empty()) {
    const ::ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return reason(errno);
    if (written == 0) return reason(ENOSPC);
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

}  // namespace hvd
