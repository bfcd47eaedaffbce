// The text of HVD_TEST_TOPOLOGY. The first byte is the number of ranks that have started.
#include <hvd/config.h>
#include <hvd/error.h>

#include "config/values.h"
#include "target.h"
#include "transport/topology.h"

namespace {

using hvd::fuzz::require;

void check_hosts(const std::vector<int>& counts, const std::vector<int>& hosts, int size) {
  require(std::ssize(hosts) == size, "every rank has a host");
  for (int rank = 0; rank < size; ++rank) {
    const hvd::Topology topology(rank, hosts);
    require(topology.host_count() == static_cast<int>(counts.size()), "every count is a host");
    require(topology.local_size() == counts[static_cast<std::size_t>(topology.host())], "hosts have their counts");
    require(topology.cross_rank() < topology.cross_size(), "cross ranks count from 0");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(hvd::fuzz::text_of(data + 1, size - 1));
  const int ranks = data[0];
  std::vector<std::string> warnings;
  try {
    const auto counts = hvd::Config::from_variables({{"HVD_TEST_TOPOLOGY", text}}, warnings).test_topology;
    require(hvd::parse_counts(hvd::format_counts(counts)) == counts, "counts survive being printed");
    check_hosts(counts, hvd::Topology::hosts_from_counts(counts, ranks), ranks);
  } catch (const hvd::InvalidArgumentError&) {
  }
  return 0;
}
