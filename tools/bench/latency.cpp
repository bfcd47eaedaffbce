#include "latency.h"

#include "one_tensor.h"

namespace hvd::bench {

void run_latency(Session& session, const LatencyOptions& options) {
  OneTensor tensor(session.world(), "latency", DataType::f32, static_cast<std::size_t>(options.elements));
  std::vector<Contender> contenders;
  if (session.peers().hvd) {
    contenders.push_back(tensor.hvd_in_place());
    contenders.push_back(tensor.hvd_async_wait());
    contenders.push_back(tensor.hvd_async_busy());
  }
  if (session.peers().mpi) contenders.push_back(tensor.mpi_in_place());
  if (auto* packed = session.packed_limit()) contenders.push_back(tensor.limit_packed(*packed));
  const bool quick = session.quick();
  const Rounds rounds{quick ? 3 : options.rounds, options.repeats, /*in_step=*/false, quick ? quick_seconds : 60.0};
  session.measure(session.record("latency", tensor.bytes(), DataType::f32), contenders, rounds,
                  allreduce_factor(session.world().size()));
}

}  // namespace hvd::bench
