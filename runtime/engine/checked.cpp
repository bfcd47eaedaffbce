#include "engine/checked.h"

#include <fmt/format.h>

#include <span>

#include "negotiation/rank_groups.h"
#include "types/digest.h"

namespace hvd::detail {

Progress Checked::step() {
  if (collective_ == nullptr) {  // one step later, so that observers see the result first
    start_comparison();
    return Progress::advanced;
  }
  const Progress progress = collective_->step();
  if (compares_) {
    if (progress == Progress::done) compare();
    return progress;
  }
  phase_ = collective_->phase();
  if (progress != Progress::done) return progress;
  phase_ = Phase::unpacked;
  collective_.reset();
  return Progress::advanced;
}

void Checked::start_comparison() {
  compares_ = true;
  const auto ranks = static_cast<std::size_t>(stream_.topology().size());
  const int me = stream_.topology().rank();
  std::vector<std::size_t> blocks(ranks);
  for (const int rank : participants_.contributors()) blocks[static_cast<std::size_t>(rank)] = sizeof(std::uint64_t);
  digests_.resize(ranks);
  std::vector<FusedOutput> outputs(ranks);
  FusedInput input;
  if (participants_.contributes(me)) {
    Digest digest;
    const FusedOutput results = results_();
    results.for_each_part(0, results.bytes(), [&](std::byte* memory, std::size_t count, std::size_t /*at*/) {
      digest.add_bytes({memory, count});
    });
    mine_ = digest.value();
    input.append(reinterpret_cast<const std::byte*>(&mine_), sizeof(mine_));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      outputs[rank].append(reinterpret_cast<std::byte*>(&digests_[rank]), blocks[rank]);
    }
  }
  collective_ =
      std::make_unique<Allgather>(stream_, participants_, std::move(blocks), std::move(input), std::move(outputs));
}

void Checked::compare() {
  RankGroups groups;
  for (const int rank : participants_.contributors()) {
    groups.add(stream_.world_rank(rank), fmt::format("digest {:016x}", digests_[static_cast<std::size_t>(rank)]));
  }
  if (!groups.agree()) failure_ = Failure{ErrorCode::mismatch, "results differ: " + groups.to_string()};
}

}  // namespace hvd::detail
