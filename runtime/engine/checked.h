#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/allgather.h"
#include "collectives/collective.h"
#include "collectives/fused_view.h"

namespace hvd::detail {

// A collective whose result is the same on all contributors, and then a comparison of digests of it: a difference is a
// failure on all of them that names the ranks. Costs a pass over the result and 8 bytes from everyone to everyone.
class Checked final : public Collective {
 public:
  using Results = std::function<FusedOutput()>;

  Checked(ChunkStream& stream, Participants participants, std::unique_ptr<Collective> collective, Results results)
      : stream_(stream),
        participants_(std::move(participants)),
        collective_(std::move(collective)),
        results_(std::move(results)) {}

  Progress step() override;
  Phase phase() const override { return phase_; }
  std::optional<Failure> failure() const override { return failure_; }

 private:
  void start_comparison();
  void compare();

  ChunkStream& stream_;
  Participants participants_;
  std::unique_ptr<Collective> collective_;  // under way
  Results results_;
  Phase phase_ = Phase::started;
  bool compares_ = false;
  std::uint64_t mine_ = 0;
  std::vector<std::uint64_t> digests_;  // by position
  std::optional<Failure> failure_;
};

}  // namespace hvd::detail
