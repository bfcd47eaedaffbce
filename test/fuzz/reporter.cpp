// A rank's side of the negotiation, given plans of any content while it has operations in flight. The first byte says
// how many ranks there are and which one this is; steps follow.
#include <hvd/error.h>
#include <algorithm>
#include <map>

#include "negotiation/reporter.h"
#include "negotiation_steps.h"

namespace {

using namespace hvd;
using fuzz::require;

// Keeps the slots as the table of operations does.
struct Rank {
  Rank(int number, int ranks) : reporter(number, fuzz::sets_of(ranks)), operations(fuzz::submissions(number, ranks)) {}

  const fuzz::Submission& operation(int argument) const {
    return operations[static_cast<std::size_t>(argument) % operations.size()];
  }
  void submit(const fuzz::Submission& operation) {
    const auto [entry, is_new] = slots.try_emplace(key_of(operation.request), 0);
    if (is_new) {
      const auto unused = std::ranges::find(used, false);
      entry->second = static_cast<std::uint32_t>(unused - used.begin());
      if (unused == used.end()) {
        used.emplace_back();
        in_flight.emplace_back();
      }
      used[entry->second] = true;
    }
    if (in_flight[entry->second]) return;
    in_flight[entry->second] = true;
    reporter.submit(entry->second, operation.request, fingerprint(operation.request), operation.extents);
  }
  // Of what is in flight; else there is no handle to ask for it.
  std::optional<std::uint32_t> slot_of(const fuzz::Submission& operation) const {
    const auto entry = slots.find(key_of(operation.request));
    if (entry == slots.end() || !in_flight[entry->second]) return std::nullopt;
    return entry->second;
  }
  void report() {
    if (!reporter.has_news()) return;
    const Bytes sent = encode(reporter.take_report());
    require(encode(decode_report(sent)) == sent, "a report can be sent");
  }
  void end(std::uint32_t slot) {
    require(slot < in_flight.size() && in_flight[slot], "what ends was in flight");
    in_flight[slot] = false;
  }
  // False when the plan is refused, which ends the world.
  bool take(std::string_view message) {
    Reporter::Outcome outcome;
    try {
      outcome = reporter.accept(decode_plan(std::as_bytes(std::span(message))));
    } catch (const InternalError&) {
      return false;
    }
    for (const std::uint32_t slot : outcome.forgotten) {
      require(slot < used.size() && used[slot] && !in_flight[slot], "what is forgotten was known, and is over");
      used[slot] = false;
      std::erase_if(slots, [slot](const auto& entry) { return entry.second == slot; });
    }
    for (const Reporter::Work& work : outcome.batches) {
      require(!work.entries.empty(), "a batch has operations");
      for (const Reporter::Entry& entry : work.entries) {
        if (!entry.absent) end(entry.slot);
      }
    }
    for (const auto& [slot, failure] : outcome.failures) end(slot);
    return true;
  }

  Reporter reporter;
  std::vector<fuzz::Submission> operations;
  std::map<std::string, std::uint32_t> slots;  // by key
  std::vector<bool> used;                      // by slot
  std::vector<bool> in_flight;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::StepReader in(fuzz::text_of(data, size), fuzz::rank_step::with_message);
  const int header = in.byte();
  const int ranks = fuzz::ranks_of(header);
  Rank rank(header / 2 % ranks, ranks);
  while (const auto step = in.next()) {
    const fuzz::Submission& operation = rank.operation(step->argument);
    const auto slot = rank.slot_of(operation);
    switch (step->kind) {
      case fuzz::rank_step::plan:
        if (!rank.take(step->message)) return 0;
        break;
      case fuzz::rank_step::submit:
        rank.submit(operation);
        break;
      case fuzz::rank_step::withdraw:
        if (slot) rank.reporter.withdraw(*slot);
        break;
      case fuzz::rank_step::block:
        if (slot) rank.reporter.block(*slot);
        break;
      case fuzz::rank_step::leave:
        rank.reporter.leave({.reason = "called shutdown()", .at_once = step->argument % 2 == 1});
        break;
      default:
        rank.report();
    }
  }
  rank.report();
  return 0;
}
