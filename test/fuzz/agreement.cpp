// The records that ranks exchange at init. The input is one record a rank, with NUL bytes between them.
#include <algorithm>

#include "config/agreement.h"
#include "target.h"

namespace {

using Record = hvd::List<std::byte>;

constexpr std::size_t most_ranks = 8;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hvd::fuzz::require;
  std::vector<Record> records;
  for (const std::string_view text : hvd::fuzz::split(hvd::fuzz::text_of(data, size), '\0', most_ranks)) {
    const auto bytes = std::as_bytes(std::span(text));
    records.emplace_back(bytes.begin(), bytes.end());
  }
  const std::string differences = hvd::disagreement(records);
  require(differences.empty() || differences.starts_with("config differs: "), "a difference is told as one");

  // Whatever a record says, a copy of it can differ from it by being unreadable only.
  const std::string of_copies = hvd::disagreement(std::vector<Record>(2, records.front()));
  const bool readable = of_copies.empty();
  require(readable || of_copies.find("[0,1] sent no readable configuration") != std::string::npos,
          "equal records agree or are unreadable");
  const bool all_equal = std::ranges::all_of(records, [&](const Record& r) { return r == records.front(); });
  if (all_equal) require(differences.empty() == readable, "equal records of any number of ranks agree if two do");
  return 0;
}
