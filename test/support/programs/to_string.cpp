#include <string>

#include "random_program.h"

namespace hvd::test {

namespace {

template <typename T>
std::string list(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

std::string line(const Step& step, const std::string& indent) {
  return indent + std::to_string(number_of(step)) + ": " + to_string(step) + "\n";
}

std::string to_string(const Phase& phase) {
  std::string text;
  if (!phase.added.empty()) text += "  add sets " + list(phase.added) + "\n";
  for (std::size_t stream = 0; stream < phase.streams.size(); ++stream) {
    text += "  thread " + std::to_string(stream) + "\n";
    for (const Part& part : phase.streams[stream]) {
      text += "    part\n";
      for (const Step& step : part) text += line(step, "      ");
    }
  }
  for (const Tail& tail : phase.tails) {
    text += "  then set " + std::to_string(tail.set) + " joins, its ranks after so many steps: " + list(tail.join_at) +
            "\n";
    for (const Step& step : tail.steps) text += line(step, "      ");
  }
  if (!phase.removed.empty()) text += "  remove sets " + list(phase.removed) + "\n";
  return text;
}

}  // namespace

std::string to_string(const RandomProgram& program) {
  std::string text =
      std::to_string(program.ranks) + " ranks, hosts of " + list(program.hosts) + ", chunk_bytes " +
      std::to_string(program.chunk_bytes) + ", fusion_threshold " + std::to_string(program.fusion_threshold) +
      ", cache_capacity " + std::to_string(program.cache_capacity) + ", join_average " +
      (program.join_average == JoinAverage::all ? "all" : "present") + (program.pauses ? ", with pauses" : "") +
      (program.shuffled ? ", shuffled" : "") + (program.cancels ? ", with cancels" : "") + "\n";
  for (std::size_t set = 0; set < program.sets.size(); ++set)
    text += "set " + std::to_string(set) + " " + list(program.sets[set]) + "\n";
  text += "at init: sets " + list(program.static_sets) + "\n";
  for (std::size_t phase = 0; phase < program.phases.size(); ++phase)
    text += "phase " + std::to_string(phase) + "\n" + to_string(program.phases[phase]);
  return text;
}

}  // namespace hvd::test
