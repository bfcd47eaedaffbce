#include "negotiation/reporter.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>

namespace hvd {

namespace {

bool is_possible(const SetChange& change, const ProcessSets& sets) {
  const bool exists = sets.find(change.id) != nullptr;
  if (change.ranks.empty()) return exists && change.id != 0;
  return !exists && change.channel < ProcessSets::most_channels && std::ranges::is_sorted(change.ranks) &&
         sets.problem_with(change.ranks).empty();
}

}  // namespace

void Reporter::submit(std::uint32_t slot, const Request& request, std::uint64_t fingerprint,
                      std::vector<std::int64_t> extents) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  Slot& known = slots_[slot];
  if (known.id == 0 && !heard_of_.empty()) {
    const auto heard = heard_of_.find(key_of(request));
    if (heard != heard_of_.end()) {
      known.key = heard->first;
      known.id = heard->second;
      known.fingerprint = 0;  // of another operation
      slot_of_id_[known.id] = slot;
      heard_of_.erase(heard);
    }
  }
  Ready ready{.id = known.id, .fingerprint = fingerprint, .extents = std::move(extents), .request = {}};
  if (known.id == 0) {
    known.key = key_of(request);
    unnamed_.insert_or_assign(known.key, slot);
  }
  if (known.id == 0 || known.fingerprint != fingerprint) {
    ready.request = request;
    ++counts_.requests_sent;
  } else {
    ++counts_.requests_cached;
  }
  known.fingerprint = fingerprint;
  known.in_flight = true;
  news_.ready.push_back(std::move(ready));
}

void Reporter::withdraw(std::uint32_t slot) {
  if (slots_[slot].in_flight) withdrawn_.push_back(slot);
}

void Reporter::block(std::uint32_t slot) {
  if (slots_[slot].in_flight) blocked_.push_back(slot);
}

void Reporter::leave(Leave leave) { news_.leave = std::move(leave); }

bool Reporter::has_news() const { return !news_.ready.empty() || !has_only_readiness(); }

bool Reporter::has_only_readiness() const {
  return !acknowledges_ && !news_.leave && withdrawn_.empty() && blocked_.empty();
}

Report Reporter::take_report() {
  acknowledges_ = false;
  Report report = std::exchange(news_, {});
  news_.ready.reserve(report.ready.size());  // as much again, likely
  for (const std::uint32_t slot : std::exchange(withdrawn_, {})) report.withdrawn.push_back(reference(slot));
  for (const std::uint32_t slot : std::exchange(blocked_, {})) report.blocked.push_back(reference(slot));
  news_.plans_seen = report.plans_seen;
  return report;
}

void Reporter::learn(const Naming& naming) {
  const auto found = unnamed_.find(naming.key);
  if (found == unnamed_.end()) return;  // not submitted here: the next plan that needs it names it again
  if (naming.id == 0 || slot_of_id_.contains(naming.id)) {
    throw InternalError(fmt::format("a plan gives '{}' the number {}, which is not free", naming.key, naming.id));
  }
  slots_[found->second].id = naming.id;
  slot_of_id_[naming.id] = found->second;
  unnamed_.erase(found);
}

// What is in flight under the id goes on under its key, by which the root will name it again.
void Reporter::forget(std::uint32_t id, Outcome& outcome) {
  if (const auto description = described_.find(id); description != described_.end()) {
    heard_of_.erase(key_of(*description->second));
    described_.erase(description);
  }
  const auto found = slot_of_id_.find(id);
  if (found == slot_of_id_.end()) return;
  Slot& slot = slots_[found->second];
  slot.id = 0;
  ++counts_.evictions;
  if (slot.in_flight) {
    unnamed_.insert_or_assign(slot.key, found->second);
  } else {
    outcome.forgotten.push_back(found->second);
  }
  slot_of_id_.erase(found);
}

// The slot that is in flight under the id.
std::optional<std::uint32_t> Reporter::find(std::uint32_t id) const {
  const auto found = slot_of_id_.find(id);
  if (found == slot_of_id_.end() || !slots_[found->second].in_flight) return std::nullopt;
  return found->second;
}

// What a rank hears of as one that has joined it knows by number from then on, as if it had submitted it. Told once to
// all ranks of the set: one that has not joined yet may be next.
void Reporter::hear_of(Description& description, const List<Batch>& batches) {
  const bool concerned = std::ranges::any_of(batches, [&](const Batch& batch) {
    const ProcessSets::Set* set = sets_.find(batch.process_set);
    return set != nullptr && position_in(set->ranks, rank_) && !batch.absent.empty() &&
           std::ranges::count(batch.entries, description.id, &BatchEntry::id) > 0;
  });
  if (!concerned) return;
  const auto request = std::make_shared<const Request>(std::move(description.request));
  described_[description.id] = request;
  if (!slot_of_id_.contains(description.id)) heard_of_[key_of(*request)] = description.id;
}

// What was to be said about it would be taken for the next round's.
void Reporter::end(std::uint32_t slot) {
  slots_[slot].in_flight = false;
  std::erase(withdrawn_, slot);
  std::erase(blocked_, slot);
}

// Nothing when the batch does not concern this rank.
std::optional<Reporter::Work> Reporter::take_on(Batch& batch) {
  const ProcessSets::Set* set = sets_.find(batch.process_set);
  const bool concerned = batch.pair.empty() ? set != nullptr && position_in(set->ranks, rank_).has_value()
                                            : std::ranges::count(batch.pair, rank_) > 0;
  if (!concerned) return std::nullopt;
  if (batch.entries.empty()) throw InternalError(fmt::format("batch {} has no operations", batch.number));
  if (batch.change && !is_possible(*batch.change, sets_)) {
    throw InternalError(
        fmt::format("batch {} makes a change of process set {} that cannot be", batch.number, batch.change->id));
  }
  const bool absent = std::ranges::count(batch.absent, rank_) > 0;
  Work work{.number = batch.number,
            .process_set = batch.process_set,
            .absent = std::move(batch.absent),
            .change = {},
            .entries = {}};
  if (batch.change) {
    if (batch.change->ranks.empty()) {
      sets_.remove(batch.change->id);
    } else {
      sets_.insert(batch.change->id, {.ranks = batch.change->ranks, .channel = batch.change->channel});
    }
    work.change = std::move(batch.change);
  }
  work.entries.reserve(batch.entries.size());
  for (BatchEntry& entry : batch.entries) {
    const auto slot = find(entry.id);
    const auto description = described_.find(entry.id);
    if (absent && description != described_.end()) {
      work.entries.push_back({.slot = 0, .absent = description->second, .extents = std::move(entry.extents)});
      continue;
    }
    if (absent || !slot) {
      throw InternalError(
          fmt::format("batch {} has operation {}, which rank {} has not in flight", batch.number, entry.id, rank_));
    }
    end(*slot);
    work.entries.push_back({.slot = *slot, .absent = nullptr, .extents = std::move(entry.extents)});
  }
  return work;
}

Reporter::Outcome Reporter::accept(Plan plan) {
  Outcome outcome;
  news_.plans_seen = plan.number;
  acknowledges_ = acknowledges_ || !plan.evicted.empty();
  for (const std::uint32_t id : plan.evicted) forget(id, outcome);
  for (const Naming& naming : plan.names) learn(naming);
  for (Description& description : plan.descriptions) hear_of(description, plan.batches);
  for (Batch& batch : plan.batches) {
    if (auto work = take_on(batch)) outcome.batches.push_back(std::move(*work));
  }
  for (FailedTensor& failed : plan.failures) {
    if (std::ranges::count(failed.ranks, rank_) == 0) continue;
    const auto slot = find(failed.id);
    if (!slot) continue;
    end(*slot);
    outcome.failures.emplace_back(*slot, std::move(failed.failure));
  }
  outcome.stop = std::move(plan.stop);
  return outcome;
}

}  // namespace hvd
