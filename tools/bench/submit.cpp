#include "submit.h"

#include <fmt/format.h>

#include <hvd/hvd.h>

#include "allocations.h"

namespace hvd::bench {

void run_submit(Session& session, int tensors) {
  if (!session.peers().hvd) return session.say("submit: hvd is not among the peers");
  std::vector<std::string> names;
  std::vector<float> values(static_cast<std::size_t>(tensors));
  std::vector<Handle> handles;
  for (int i = 0; i < tensors; ++i) names.push_back(fmt::format("submit.{}", i));
  handles.reserve(names.size());

  Samples times;
  std::uint64_t allocations = 0;
  std::uint64_t submitted = 0;
  constexpr int warm_up = 20;
  const int repeats = session.quick() ? 100 : 500;
  for (int repeat = 0; repeat < warm_up + repeats; ++repeat) {
    const bool counts = repeat >= warm_up;
    handles.clear();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::span<float> tensor(&values[i], 1);
      const std::uint64_t before = allocations_here();
      const auto start = std::chrono::steady_clock::now();
      Handle handle = allreduce_async(tensor, {.name = names[i], .op = ReduceOp::average});
      const double time = microseconds_since(start);
      const std::uint64_t after = allocations_here();
      handles.push_back(std::move(handle));
      if (!counts) continue;
      times.add(time);
      allocations += after - before;
      ++submitted;
    }
    for (const Handle& handle : handles) handle.wait();
  }
  Record record = session.record("submit", sizeof(float), DataType::f32);
  record.peer = "hvd";
  record.variant = "known-name";
  set_times(record, times, 0.0);
  record.busbw_GBps.reset();
  record.counts["allocations"] =
      session.world().greatest(static_cast<double>(allocations) / static_cast<double>(submitted));
  session.add({record});
}

}  // namespace hvd::bench
