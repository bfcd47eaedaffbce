// The pattern of HVD_TIMELINE.
#include "observe/timeline.h"
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hvd::fuzz::require;
  const std::string pattern(hvd::fuzz::text_of(data, size));
  const std::string first = hvd::timeline_path(pattern, 0);
  const std::string last = hvd::timeline_path(pattern, 2147483647);
  require(!first.empty(), "there is a path");
  require(first != last, "ranks write to files of their own");
  require(first.find("{rank}") == std::string::npos, "no placeholder is left");
  return 0;
}
