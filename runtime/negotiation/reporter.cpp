#include "negotiation/reporter.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

namespace hvd {

std::string tensor_key(std::uint32_t process_set, const std::string& name) {
  return fmt::format("{}:{}", process_set, name);
}

void Reporter::submit(std::uint32_t slot, const Request& request, std::uint64_t fingerprint) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  Slot& known = slots_[slot];
  Ready ready{.id = known.id,
              .fingerprint = fingerprint,
              .rows = request.rows_may_differ() ? request.rows() : 0,
              .request = {}};
  if (known.id == 0) unnamed_.emplace(tensor_key(request.process_set, request.name), slot);
  if (known.id == 0 || known.fingerprint != fingerprint) ready.request = request;
  known.fingerprint = fingerprint;
  known.in_flight = true;
  news_.ready.push_back(std::move(ready));
}

void Reporter::leave(Leave leave) { news_.leave = std::move(leave); }

void Reporter::learn(const Naming& naming) {
  const auto found = unnamed_.find(tensor_key(naming.process_set, naming.name));
  if (found == unnamed_.end())
    return;  // another set's, or not submitted here yet: the next plan that needs it names it again
  slots_[found->second].id = naming.id;
  slot_of_id_[naming.id] = found->second;
  unnamed_.erase(found);
}

Reporter::Slot* Reporter::find(std::uint32_t id, std::uint32_t& number) {
  const auto found = slot_of_id_.find(id);
  if (found == slot_of_id_.end() || !slots_[found->second].in_flight) return nullptr;
  number = found->second;
  return &slots_[number];
}

Reporter::Outcome Reporter::accept(Plan plan) {
  Outcome outcome;
  std::ranges::for_each(plan.names, [this](const Naming& naming) { learn(naming); });
  for (Batch& batch : plan.batches) {
    Work work{.number = batch.number, .entries = {}};
    for (BatchEntry& entry : batch.entries) {
      std::uint32_t slot = 0;
      Slot* known = find(entry.id, slot);
      if (known == nullptr) {
        throw InternalError(
            fmt::format("batch {} has tensor {}, which rank {} has not in flight", batch.number, entry.id, rank_));
      }
      known->in_flight = false;
      work.entries.push_back({.slot = slot, .rows = std::move(entry.rows)});
    }
    outcome.batches.push_back(std::move(work));
  }
  for (FailedTensor& failed : plan.failures) {
    std::uint32_t slot = 0;
    Slot* known = std::ranges::find(failed.ranks, rank_) == failed.ranks.end() ? nullptr : find(failed.id, slot);
    if (known == nullptr) continue;
    known->in_flight = false;
    outcome.failures.emplace_back(slot, std::move(failed.failure));
  }
  outcome.stop = std::move(plan.stop);
  return outcome;
}

}  // namespace hvd
