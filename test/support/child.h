#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace hvd::test {

struct ChildResult {
  int status = 0;  // as waitpid() gives it
  bool timed_out = false;
  std::string output;  // both streams
  bool ok() const { return status == 0 && !timed_out; }
};

// Starts this program again with other arguments and waits for its end; kills it after the limit. Only the last
// `kept_bytes` of what it says are kept.
ChildResult run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit,
                     std::size_t kept_bytes = 1 << 20);

}  // namespace hvd::test
