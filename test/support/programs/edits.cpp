#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "random_program.h"

namespace hvd::test {

namespace {

void for_each_part(RandomProgram& program, const std::function<void(Part&)>& visit) {
  for (Phase& phase : program.phases) {
    for (Stream& stream : phase.streams) {
      for (Part& part : stream) visit(part);
    }
  }
}

void for_each_step(RandomProgram& program, const std::function<void(Step&)>& visit) {
  for_each_part(program, [&](Part& part) { std::ranges::for_each(part, visit); });
  for (Phase& phase : program.phases) {
    for (Tail& tail : phase.tails) std::ranges::for_each(tail.steps, visit);
  }
}

void drop_steps(RandomProgram& program, const std::function<bool(const Step&)>& unwanted) {
  for_each_part(program, [&](Part& part) { std::erase_if(part, unwanted); });
  for (Phase& phase : program.phases) {
    for (Tail& tail : phase.tails) {
      for (std::size_t k = tail.steps.size(); k-- > 0;) {
        if (!unwanted(tail.steps[k])) continue;
        tail.steps.erase(tail.steps.begin() + static_cast<std::ptrdiff_t>(k));
        for (std::size_t& at : tail.join_at) at -= at > k ? 1U : 0U;
      }
    }
  }
}

void drop_set(RandomProgram& program, std::size_t set) {
  drop_steps(program, [set](const Step& step) { return step.set == set; });
  std::erase(program.static_sets, set);
  for (Phase& phase : program.phases) {
    std::erase(phase.added, set);
    std::erase(phase.removed, set);
    std::erase_if(phase.tails, [set](const Tail& tail) { return tail.set == set; });
  }
}

template <typename T>
void erase_at(std::vector<T>& values, int position) {
  if (!values.empty()) values.erase(values.begin() + position);
}

void drop_rank_of(Step& step, int rank) {
  const int position = step.position_of(rank);
  if (position >= 0) {
    erase_at(step.ranks, position);
    erase_at(step.rows, position);
    erase_at(step.splits, position);
    for (auto& splits : step.splits) {
      const std::int64_t lost = splits[static_cast<std::size_t>(position)];
      erase_at(splits, position);
      if (!splits.empty()) splits[0] += lost;
    }
    if (step.root >= position && step.root > 0) --step.root;
    if (step.odd >= position && step.odd > 0) --step.odd;
    if (step.size() < 2) step.mismatch = Mismatch::none;
  }
  for (int& other : step.ranks) other -= other > rank ? 1 : 0;
}

void drop_rank(RandomProgram& program, int rank) {
  if (program.ranks == 1 || rank >= program.ranks) return;
  drop_steps(program, [&](const Step& step) {
    return step.position_of(rank) >= 0 && (step.size() == 1 || step.operation == Operation::send_recv);
  });
  for_each_step(program, [rank](Step& step) { drop_rank_of(step, rank); });
  for (Phase& phase : program.phases) {
    for (Tail& tail : phase.tails) {
      const auto& ranks = program.sets[tail.set];
      const auto found = std::ranges::find(ranks, rank);
      if (found != ranks.end()) erase_at(tail.join_at, static_cast<int>(found - ranks.begin()));
    }
  }
  for (std::size_t set = 0; set < program.sets.size(); ++set) {
    auto& ranks = program.sets[set];
    std::erase(ranks, rank);
    for (int& other : ranks) other -= other > rank ? 1 : 0;
    const auto earlier = program.sets.begin() + static_cast<std::ptrdiff_t>(set);
    if (ranks.empty() || std::find(program.sets.begin(), earlier, ranks) != earlier) drop_set(program, set);
  }
  --program.ranks;
  program.hosts.clear();
}

std::int64_t small(std::int64_t size) { return std::min<std::int64_t>(size, 1); }

void make_small(Step& step) {
  if (step.rule.op == ReduceOp::adasum) return;  // is unstable then
  for (TensorSpec& tensor : step.tensors) {
    std::vector<std::int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
    std::ranges::transform(dims, dims.begin(), small);
    tensor.shape = Shape(dims);
  }
  std::ranges::transform(step.rows, step.rows.begin(), small);
  for (std::size_t position = 0; position < step.splits.size(); ++position) {
    const std::int64_t rows = step.rows.empty() ? step.tensors[0].shape[0] : step.rows[position];
    step.splits[position] = equal_shares(rows, step.size());
  }
}

void join_streams(Phase& phase) {
  for (std::size_t stream = 1; stream < phase.streams.size(); ++stream)
    phase.streams[0].insert(phase.streams[0].end(), phase.streams[stream].begin(), phase.streams[stream].end());
  if (!phase.streams.empty()) phase.streams.resize(1);
}

// "k3,17": keeps these steps alone.
void keep_steps(RandomProgram& program, const std::string& list) {
  std::set<std::uint64_t> kept;
  std::istringstream numbers(list);
  for (std::string number; std::getline(numbers, number, ',');) kept.insert(std::stoull(number));
  drop_steps(program, [&](const Step& step) { return !kept.contains(number_of(step)); });
}

void apply(RandomProgram& program, const Edit& edit) {
  if (edit[0] == 'k') return keep_steps(program, edit.substr(1));
  const int number = edit.size() > 1 ? std::stoi(edit.substr(1)) : 0;
  const auto is_meant = [number](const Step& step) { return number_of(step) == static_cast<std::uint64_t>(number); };
  switch (edit[0]) {
    case 's':
      return drop_steps(program, is_meant);
    case 'r':
      return drop_rank(program, number);
    case 'p':
      return drop_set(program, static_cast<std::size_t>(number));
    case 'j':
      if (static_cast<std::size_t>(number) < program.phases.size())
        program.phases[static_cast<std::size_t>(number)].tails.clear();
      return;
    case 'd':
      return for_each_step(program, [&](Step& step) {
        if (is_meant(step)) make_small(step);
      });
    case 'g':
      return for_each_step(program, [&](Step& step) {
        if (is_meant(step) && step.grouped && step.mismatch == Mismatch::none) step.tensors.resize(1);
      });
    case 'h':
      return program.hosts.clear();
    case 't':
      std::ranges::for_each(program.phases, join_streams);
      return;
    case 'o':
      program.shuffled = false;
      return;
    case 'x':
      program.cancels = false;
      return;
    case 'w':
      program.pauses = false;
      return;
    case 'c':
      program.chunk_bytes = Config{}.chunk_bytes;
      program.fusion_threshold = Config{}.fusion_threshold;
      program.cache_capacity = Config{}.cache_capacity;
      return;
    default:
      return;
  }
}

// What a step sends to those who have joined would be an error.
void keep_from_joined(Step& step) {
  const auto joined = [&](std::size_t position) { return step.has_joined(static_cast<int>(position)); };
  while (step.has_joined(step.root)) step.root = (step.root + 1) % static_cast<int>(step.size());
  if (step.grouped || (step.operation != Operation::scatter && step.operation != Operation::alltoall)) return;
  if (step.splits.empty()) step.splits.assign(step.size(), equal_shares(step.tensors[0].shape[0], step.size()));
  for (std::size_t sender = 0; sender < step.size(); ++sender) {
    const std::size_t keeper = step.operation == Operation::scatter ? static_cast<std::size_t>(step.root) : sender;
    for (std::size_t position = 0; position < step.size(); ++position) {
      if (joined(position) && position != keeper)
        step.splits[sender][keeper] += std::exchange(step.splits[sender][position], 0);
    }
  }
}

void settle(RandomProgram& program, Tail& tail) {
  const std::vector<int>& ranks = program.sets[tail.set];
  for (std::size_t k = 0; k < tail.steps.size(); ++k) {
    Step& step = tail.steps[k];
    step.join_average = program.join_average;
    step.joined.clear();
    for (const int rank : step.ranks) {
      const auto position = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
      step.joined.push_back(tail.join_at[position] <= k);
    }
  }
}

// Makes a program that edits may have left half right a right one.
void settle(RandomProgram& program) {
  for (Phase& phase : program.phases) {
    for (Tail& tail : phase.tails) settle(program, tail);
  }
  drop_steps(program, [](const Step& step) {
    const bool nobody = !step.joined.empty() && std::ranges::all_of(step.joined, [](bool joined) { return joined; });
    return nobody || (!step.joined.empty() && step.operation == Operation::send_recv);
  });
  for (Phase& phase : program.phases) {
    for (Tail& tail : phase.tails) std::ranges::for_each(tail.steps, keep_from_joined);
    for (Stream& stream : phase.streams) std::erase_if(stream, [](const Part& part) { return part.empty(); });
    std::erase_if(phase.streams, [](const Stream& stream) { return stream.empty(); });
  }
  for_each_step(program, [](Step& step) {
    if (step.operation == Operation::alltoall && !step.grouped && step.splits.empty() &&
        step.tensors[0].shape.rank() > 0)
      step.splits.assign(step.size(), equal_shares(step.tensors[0].shape[0], step.size()));
  });
}

}  // namespace

RandomProgram edited(RandomProgram program, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) apply(program, edit);
  settle(program);
  return program;
}

std::vector<Edit> shortened(const RandomProgram& program, const std::vector<Edit>& edits) {
  RandomProgram result = edited(program, edits);
  std::string kept;
  for_each_step(result,
                [&](const Step& step) { kept += (kept.empty() ? "k" : ",") + std::to_string(number_of(step)); });
  if (kept.empty()) return edits;
  std::vector<Edit> fewer{kept};
  std::ranges::copy_if(edits, std::back_inserter(fewer), [](const Edit& edit) { return edit[0] != 's'; });
  return to_string(edited(program, fewer)) == to_string(result) ? fewer : edits;
}

std::vector<std::vector<Edit>> possible_edits(const RandomProgram& program) {
  RandomProgram copy = program;
  std::vector<Edit> steps;
  for_each_step(copy, [&](Step& step) { steps.push_back("s" + std::to_string(number_of(step))); });
  std::vector<std::vector<Edit>> groups;
  for (std::size_t length = (steps.size() + 1) / 2; length > 0; length = length == 1 ? 0 : (length + 1) / 2) {
    for (std::size_t first = 0; first < steps.size(); first += length) {
      const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(first);
      groups.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, steps.size() - first)));
    }
  }
  const auto each = [&](char kind, std::size_t least, std::size_t end) {
    for (std::size_t number = least; number < end; ++number) groups.push_back({kind + std::to_string(number)});
  };
  each('j', 0, program.phases.size());
  for (int rank = program.ranks - 1; rank >= 0 && program.ranks > 1; --rank)
    groups.push_back({"r" + std::to_string(rank)});
  each('p', 1, program.sets.size());
  for (const char* kind : {"t", "h", "o", "x", "w", "c"}) groups.push_back({kind});
  if (steps.size() <= 30) {
    for (const Edit& step : steps) groups.push_back({"g" + step.substr(1)});
    for (const Edit& step : steps) groups.push_back({"d" + step.substr(1)});
  }
  return groups;
}

}  // namespace hvd::test
