#include "rounds.h"

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

std::vector<Samples> run_rounds(const World& world, const std::vector<Contender>& contenders, const Rounds& rounds,
                                const std::function<void()>& warm) {
  std::vector<Samples> samples(contenders.size());
  std::vector<double> times(static_cast<std::size_t>(rounds.repeats));
  unsigned repeat = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round <= rounds.rounds; ++round) {
    if (round > 1 && world.greatest(microseconds_since(begin)) > rounds.seconds * 1e6) break;
    if (round == 1 && warm) warm();
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      world.barrier();
      for (double& time : times) {
        contender.prepare(++repeat);
        if (rounds.in_step) world.barrier();
        const auto start = std::chrono::steady_clock::now();
        contender.run();
        time = microseconds_since(start);
        contender.check(repeat, /*all=*/&time == times.data());
      }
      world.average(times.data(), times.size());
      if (round == 0) continue;
      for (const double time : times) samples[i].add(time);
    }
  }
  return samples;
}

}  // namespace hvd::bench
