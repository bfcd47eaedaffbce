#include <hvd/in_process.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "../steps/running_step.h"
#include "../world.h"
#include "random_program.h"

namespace hvd::test {

namespace {

// What the ranks tell each other beside the runtime.
class Board {
 public:
  void note(std::string error) {
    const std::scoped_lock lock(mutex_);
    errors_.push_back(std::move(error));
  }
  // All ranks must say the same about a thing.
  void say(const std::string& thing, const std::string& text) {
    const std::scoped_lock lock(mutex_);
    const auto [place, is_new] = said_.emplace(thing, text);
    if (!is_new && place->second != text)
      errors_.push_back(thing + ": ranks learn different things: \"" + place->second + "\" and \"" + text + "\"");
  }
  bool failed() {
    const std::scoped_lock lock(mutex_);
    return !errors_.empty();
  }
  std::vector<std::string> take() { return std::move(errors_); }

 private:
  std::mutex mutex_;
  std::vector<std::string> errors_;
  std::map<std::string, std::string> said_;
};

class RankRun {
 public:
  RankRun(const RandomProgram& program, Runtime& runtime, Board& board)
      : program_(program), runtime_(runtime), board_(board), sets_(program.sets.size()) {
    for (std::size_t i = 0; i < program.static_sets.size(); ++i)
      sets_[program.static_sets[i]] = {static_cast<std::uint32_t>(i + 1)};
  }

  void run() {
    for (const Phase& phase : program_.phases) {
      for (const std::size_t set : phase.added) add(set);
      run_streams(phase);
      for (const Tail& tail : phase.tails) run_tail(tail, "join " + std::to_string(joins_++));
      for (const std::size_t set : phase.removed) runtime_.remove_process_set(sets_[set]);
    }
    runtime_.barrier();  // the first to leave would end it for who still works in a smaller set
  }

 private:
  // Different on every rank, the same in every run.
  Dice dice(std::uint64_t salt) const {
    return Dice((program_.seed * 64 + static_cast<std::uint64_t>(runtime_.rank())) * 1024 + salt);
  }

  void add(std::size_t set) {
    std::vector<int> ranks = program_.sets[set];
    if (runtime_.rank() % 2 == 1) std::ranges::reverse(ranks);  // in any order
    sets_[set] = runtime_.add_process_set(ranks);
    board_.say("set " + std::to_string(set), std::to_string(sets_[set].id));
    if (runtime_.process_set_ranks(sets_[set]) != program_.sets[set])
      board_.note("set " + std::to_string(set) + " has other ranks than it was made with");
  }

  void run_streams(const Phase& phase) {
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number < phase.streams.size(); ++number)
      threads.emplace_back([&, number] { run_guarded(phase.streams[number], number); });
    if (!phase.streams.empty()) run_guarded(phase.streams[0], 0);
    for (std::thread& thread : threads) thread.join();
  }

  void run_guarded(const Stream& stream, std::size_t number) {
    try {
      run_stream(stream, dice(number));
    } catch (const std::exception& error) {
      board_.note("rank " + std::to_string(runtime_.rank()) + " threw " + error.what());
    }
  }

  void pause(Dice& dice) const {
    if (program_.pauses && dice.chance(6)) std::this_thread::sleep_for(std::chrono::microseconds(dice.pick(0, 200)));
  }

  void run_stream(const Stream& stream, Dice dice) {
    std::vector<RunningStep> in_flight;
    for (const Part& part : stream) {
      std::vector<RunningStep> running = mine(part);
      if (program_.shuffled) shuffle(running, dice);
      for (RunningStep& step : running) {
        step.start(runtime_, sets_[step.step().set]);
        if (program_.cancels && dice.chance(5)) step.submit_again_if_withdrawn(runtime_, sets_[step.step().set]);
        pause(dice);
      }
      std::ranges::move(running, std::back_inserter(in_flight));
      if (program_.shuffled) shuffle(in_flight, dice);
      for (int count = dice.pick(0, static_cast<int>(in_flight.size())); count > 0; --count) {
        finish(in_flight.back());
        in_flight.pop_back();
      }
    }
    for (RunningStep& step : in_flight) finish(step);
  }

  void run_tail(const Tail& tail, const std::string& name) {
    const auto& ranks = program_.sets[tail.set];
    const auto found = std::ranges::find(ranks, runtime_.rank());
    if (found == ranks.end()) return;
    const std::size_t join_at = tail.join_at[static_cast<std::size_t>(found - ranks.begin())];
    std::vector<Step> part(tail.steps.begin(), tail.steps.begin() + static_cast<std::ptrdiff_t>(join_at));
    std::vector<RunningStep> running = mine(part);
    for (RunningStep& step : running) step.start(runtime_, sets_[step.step().set]);
    const Handle join = runtime_.join_async({.process_set = sets_[tail.set]});
    Dice own = dice(100 + joins_);
    shuffle(running, own);
    for (RunningStep& step : running) finish(step);
    board_.say("the last rank of " + name, std::to_string(join.last_joined_rank()));
  }

  std::vector<RunningStep> mine(const std::vector<Step>& steps) const {
    std::vector<RunningStep> running;
    for (const Step& step : steps) {
      if (step.position_of(runtime_.rank()) >= 0) running.emplace_back(step, runtime_.rank());
    }
    return running;
  }

  static void shuffle(std::vector<RunningStep>& steps, Dice& dice) {
    for (std::size_t i = steps.size(); i > 1; --i)
      std::swap(steps[i - 1], steps[static_cast<std::size_t>(dice.pick(0, static_cast<int>(i) - 1))]);
  }

  void finish(RunningStep& step) {
    std::string error = step.finish();
    if (!error.empty()) board_.note("step " + std::to_string(number_of(step.step())) + ": " + error);
    if (!step.error().empty()) board_.say("the error of step " + std::to_string(number_of(step.step())), step.error());
  }

  const RandomProgram& program_;
  Runtime& runtime_;
  Board& board_;
  std::vector<ProcessSet> sets_;
  std::uint64_t joins_ = 0;
};

}  // namespace

std::vector<std::string> run(const RandomProgram& program, std::chrono::seconds limit) {
  Board board;
  InProcessWorld world(program.ranks);
  const auto errors = run_threads(
      program.ranks,
      [&](int rank) {
        const std::unique_ptr<Runtime> runtime = world.join(rank, program.config());
        RankRun(program, *runtime, board).run();
      },
      limit);
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank] != nullptr) board.note("rank " + std::to_string(rank) + " threw " + text_of(errors[rank]));
  }
  return board.take();
}

}  // namespace hvd::test
