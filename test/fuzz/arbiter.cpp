// The root's side of the negotiation, given reports that any rank may have sent, one after the other. The first byte
// says how many ranks there are and what the root is configured to; steps follow.
#include <fmt/format.h>

#include <hvd/error.h>
#include <map>
#include <set>

#include "negotiation/report_checks.h"
#include "negotiation_steps.h"

namespace {

using namespace hvd;
using fuzz::require;
using fuzz::Step;

struct Root {
  explicit Root(int header)
      : size(fuzz::ranks_of(header)), arbiter(size, fuzz::options_of(header), fuzz::sets_of(size)) {}

  // False when the report is refused, which ends the world.
  bool take(const Step& step) {
    const int sender = step.argument % size;
    try {
      Report report = read_report(sender, std::as_bytes(std::span(step.message)));
      if (step.kind == fuzz::root_step::report_with_true_fingerprints) {
        for (Ready& ready : report.ready) {
          if (ready.request) ready.fingerprint = fingerprint(*ready.request);
        }
      }
      arbiter.accept(sender, std::move(report), now);
    } catch (const InternalError& error) {
      require(std::string_view(error.what()).starts_with(fmt::format("rank {} ", sender)), "an error names the sender");
      return false;
    }
    return true;
  }
  void plan() {
    const Plan plan = arbiter.take_plan();
    if (plan.empty()) return;
    require(plan.number == ++plans, "plans are numbered");
    const Bytes sent = encode(plan);
    require(encode(decode_plan(sent)) == sent, "a plan can be sent");
    require(!stopped || (plan.stop && plan.stop->abandon), "nothing but giving up follows the end");
    stopped = stopped || plan.stop.has_value();
    for (const Batch& batch : plan.batches) {
      require(!batch.entries.empty(), "a batch has operations");
      if (batch.change) {
        const bool with_root = !batch.change->ranks.empty() && batch.change->ranks.front() == 0;
        with_root ? static_cast<void>(sets_with_root.insert(batch.change->id))
                  : static_cast<void>(sets_with_root.erase(batch.change->id));
      } else if (batch.pair.empty() && sets_with_root.contains(batch.process_set)) {
        ++under_way[batch.process_set];
      }
    }
    for (const FailedTensor& failed : plan.failures) {
      for (const int rank : failed.ranks) require(rank >= 0 && rank < size, "what fails, fails on ranks");
    }
  }
  void finish_batch(std::uint32_t process_set) {
    if (under_way[process_set] == 0) return;
    --under_way[process_set];
    arbiter.on_batch_done(process_set);
  }
  void pass(int seconds) {
    constexpr int most_looks = 3;
    now += std::chrono::seconds(seconds);
    const auto due = [this] { return arbiter.deadline() && now >= *arbiter.deadline(); };
    for (int look = 0; look < most_looks && due(); ++look) arbiter.tick(now);
    require(!due(), "what is due is done, and not for ever");
    for (const std::string& warning : arbiter.take_warnings()) require(!warning.empty(), "a warning says something");
  }

  int size;
  Arbiter arbiter;
  TimePoint now{};
  std::uint64_t plans = 0;
  bool stopped = false;
  std::set<std::uint32_t> sets_with_root{0, 1};
  std::map<std::uint32_t, int> under_way;  // by process set
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::StepReader in(fuzz::text_of(data, size), fuzz::root_step::with_message);
  Root root(in.byte());
  while (const auto step = in.next()) {
    switch (step->kind) {
      case fuzz::root_step::plan:
        root.plan();
        break;
      case fuzz::root_step::batch_done:
        root.finish_batch(static_cast<std::uint32_t>(step->argument));
        break;
      case fuzz::root_step::time:
        root.pass(step->argument);
        break;
      default:
        if (!root.take(*step)) return 0;
    }
  }
  root.plan();
  return 0;
}
