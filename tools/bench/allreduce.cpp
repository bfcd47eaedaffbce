#include "allreduce.h"

#include <fmt/format.h>

#include <hvd/hvd.h>

#include <algorithm>

#include "one_tensor.h"
#include "sizes.h"

namespace hvd::bench {

namespace {

std::vector<Contender> contenders_of(Session& session, OneTensor& tensor, DataType dtype, const Arena& hvd_arena,
                                     limit::ArenaLimit* arena) {
  std::vector<Contender> contenders;
  if (session.peers().hvd) {
    contenders.push_back(tensor.hvd_packed());
    contenders.push_back(tensor.hvd_arena(hvd_arena));
  }
  if (session.peers().mpi) {
    contenders.push_back(tensor.mpi());
    contenders.push_back(tensor.mpi_in_place());
  }
  if (dtype != DataType::f32) return contenders;
  if (auto* packed = session.packed_limit()) contenders.push_back(tensor.limit_packed(*packed));
  if (arena != nullptr) contenders.push_back(tensor.limit_arena(*arena));
  return contenders;
}

}  // namespace

void run_allreduce(Session& session, const std::vector<std::size_t>& sizes, const std::vector<DataType>& dtypes) {
  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  const Arena hvd_arena = session.peers().hvd ? make_arena(most + sizeof(double)) : Arena();
  for (const DataType dtype : dtypes) {
    limit::ArenaLimit* arena = dtype == DataType::f32 ? session.arena_limit(most / sizeof(float) + 1) : nullptr;
    for (const std::size_t size : sizes) {
      const std::size_t elements = std::max<std::size_t>(size / size_of(dtype), 1);
      OneTensor tensor(session.world(), fmt::format("allreduce.{}.{}", short_name(dtype), elements), dtype, elements);
      session.measure(session.record("allreduce", tensor.bytes(), dtype),
                      contenders_of(session, tensor, dtype, hvd_arena, arena),
                      rounds_for(tensor.bytes(), session.quick()), allreduce_factor(session.world().size()));
    }
  }
}

}  // namespace hvd::bench
