#pragma once

#include <memory>
#include <string>

#include <hvd/config.h>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"
#include "engine/batch.h"

namespace hvd::detail {

struct LaunchOptions {
  JoinAverage join_average = JoinAverage::all;
  CheckLevel check = CheckLevel::local;
  std::string test_hang_op;  // "name:rank"
};

// Makes the collective that does a batch, allocating results whose sizes are known by now. The stream is that of the
// batch's process set.
std::unique_ptr<Collective> launch(ExecutableBatch& batch, ChunkStream& stream, const LaunchOptions& options);

}  // namespace hvd::detail
