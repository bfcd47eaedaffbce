#include "rounds.h"

#include <algorithm>
#include <numeric>

namespace hvd::bench {

Rounds rounds_for(std::size_t bytes, bool quick) {
  constexpr std::size_t kib = 1024;
  constexpr std::size_t mib = 1024 * kib;
  Rounds rounds{7, 1, bytes > 64 * kib};
  if (quick) rounds = {3, 1, rounds.in_step, quick_seconds};
  if (bytes <= 4 * kib) {
    rounds.repeats = 500;
  } else if (bytes <= 64 * kib) {
    rounds.repeats = 100;
  } else if (bytes <= mib) {
    rounds.repeats = 20;
  } else if (bytes <= 4 * mib) {
    rounds.repeats = 8;
  } else if (bytes <= 32 * mib) {
    rounds.repeats = 3;
  } else if (bytes < 256 * mib) {
    rounds.repeats = 2;
  }
  return rounds;
}

namespace {

// The times of some repeats, averaged over the ranks.
std::vector<double> measure(const World& world, const Contender& contender, int repeats, bool in_step,
                            unsigned& repeat) {
  std::vector<double> times;
  world.barrier();
  for (int i = 0; i < repeats; ++i) {
    contender.prepare(++repeat);
    if (in_step) world.barrier();
    const auto start = std::chrono::steady_clock::now();
    contender.run();
    times.push_back(microseconds_since(start));
    contender.check(repeat, /*all=*/i == 0);
  }
  world.average(times.data(), times.size());
  return times;
}

}  // namespace

std::vector<Samples> run_rounds(const World& world, const std::vector<Contender>& contenders, const Rounds& rounds,
                                const std::function<void()>& warm) {
  constexpr int warm_up = 20;
  unsigned repeat = 0;
  std::vector<int> repeats;
  const double share_us =
      rounds.seconds * 1e6 / static_cast<double>(contenders.size()) / static_cast<double>(rounds.rounds);
  for (const Contender& contender : contenders) {
    const std::vector<double> times =
        measure(world, contender, std::min(warm_up, rounds.repeats), rounds.in_step, repeat);
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    repeats.push_back(static_cast<int>(std::clamp(share_us / mean, 1.0, static_cast<double>(rounds.repeats))));
  }
  if (warm) warm();

  std::vector<Samples> samples(contenders.size());
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds.rounds; ++round) {
    if (round > 0 && world.greatest(microseconds_since(begin)) > rounds.seconds * 1e6) break;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      for (const double time : measure(world, contenders[i], repeats[i], rounds.in_step, repeat)) samples[i].add(time);
    }
  }
  return samples;
}

}  // namespace hvd::bench
