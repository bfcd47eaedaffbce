#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

// A file with a JSON array that is whole after every append, so that it can be read however the process ends. Each
// append is one write over the array's closing bracket. (A process killed in the midst of that write may cut it off;
// then one line is not whole, and the bracket may be missing: each element has a line to itself, so that the rest is
// found.)
class TraceFile {
 public:
  // Creates or empties the file and writes the first elements, of which there is at least one. Throws
  // InvalidArgumentError with the path and the system's reason.
  TraceFile(const std::string& path, std::string_view first_elements);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Appends elements, each with ",\n" before it. `temporary` ones follow them until the next append replaces them.
  // Returns what went wrong, or nothing; after a failure the file is again as it was after the last success, less what
  // was temporary.
  std::string append(std::string_view elements, std::string_view temporary);

 private:
  std::string write_at(std::string_view text, std::int64_t offset) const;

  int descriptor_ = -1;
  std::int64_t end_ = 0;   // of the elements that stay
  std::int64_t size_ = 0;  // of the file
};

}  // namespace hvd
