#include <fmt/format.h>

#include <cstring>
#include <span>
#include <vector>

#include <hvd/error.h>
#include <hvd/runtime.h>

#include "negotiation/rank_groups.h"
#include "types/digest.h"

namespace hvd {

namespace {

std::string name_of(std::span<const std::string> names, std::size_t i) {
  return i < names.size() ? fmt::format("'{}'", names[i]) : fmt::format("tensor {}", i);
}

// What this rank says of its tensors, one number each.
std::vector<std::uint64_t> digests_of(std::span<const ConstTensorView> tensors) {
  std::vector<std::uint64_t> digests;
  for (const ConstTensorView& tensor : tensors) {
    Digest digest;
    digest.add(static_cast<std::uint64_t>(tensor.dtype()));
    for (const std::int64_t dim : tensor.shape().dims()) digest.add(static_cast<std::uint64_t>(dim));
    digest.add_bytes({static_cast<const std::byte*>(tensor.data()), tensor.bytes()});
    digests.push_back(digest.value());
  }
  return digests;
}

}  // namespace

void Runtime::check_consistency(std::span<const ConstTensorView> tensors, std::span<const std::string> names,
                                ProcessSet set) {
  if (!names.empty() && names.size() != tensors.size()) {
    throw InvalidArgumentError(fmt::format("check_consistency: {} names for {} tensors", names.size(), tensors.size()));
  }
  const std::vector<std::uint64_t> mine = digests_of(tensors);
  // One row each, so that a rank with more or fewer tensors is found, too.
  const Tensor gathered = allgather(std::span<const std::uint64_t>(mine), {.name = "check_consistency.digests", .process_set = set});
  const auto count = static_cast<std::int64_t>(mine.size());
  const Tensor counts = allgather(std::span<const std::int64_t>(&count, 1), {.name = "check_consistency.count", .process_set = set});
  const std::vector<int> ranks = process_set_ranks(set);
  RankGroups numbers;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    numbers.add(ranks[i], fmt::format("{} tensors", counts.values<std::int64_t>()[i]));
  }
  if (!numbers.agree()) {
    throw MismatchError(fmt::format("check_consistency: numbers of tensors differ: {}", numbers.to_string()));
  }
  const auto all = gathered.values<std::uint64_t>();
  for (std::size_t tensor = 0; tensor < mine.size(); ++tensor) {
    RankGroups values;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      values.add(ranks[i], fmt::format("digest {:016x}", all[i * mine.size() + tensor]));
    }
    if (values.agree()) continue;
    throw MismatchError(fmt::format("check_consistency: {} {} differs: {}", name_of(names, tensor),
                                    describe(tensors[tensor].dtype(), tensors[tensor].shape()), values.to_string()));
  }
}

}  // namespace hvd
