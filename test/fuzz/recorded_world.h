#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "negotiation/arbiter.h"
#include "negotiation/reporter.h"
#include "negotiation_steps.h"

namespace hvd::fuzz {

// A world that negotiates as it should, and writes down what happens to its root and to one of its ranks as the targets
// of the two read it.
class RecordedWorld {
 public:
  RecordedWorld(int header, int observed)
      : size_(ranks_of(header)),
        observed_(observed),
        arbiter_(size_, options_of(header), sets_of(size_)),
        root_steps_(1, static_cast<char>(header)),
        rank_steps_(1, static_cast<char>(header % 2 + 2 * observed)) {
    for (int rank = 0; rank < size_; ++rank)
      ranks_.push_back({Reporter(rank, sets_of(size_)), submissions(rank, size_)});
  }

  void submit(int rank, std::size_t operation) {
    const Submission& submission = at(rank).submissions[operation];
    at(rank).reporter.submit(slot_of(rank, operation), submission.request, fingerprint(submission.request),
                             submission.extents);
    note(rank, rank_step::submit, operation);
  }
  // On all ranks that take part.
  void submit(std::size_t operation) {
    const Submission& submission = ranks_.front().submissions[operation];
    const ProcessSets sets = sets_of(size_);
    const auto& by = submission.by.empty() ? sets.find(submission.request.process_set)->ranks : submission.by;
    for (const int rank : by) submit(rank, operation);
  }
  void withdraw(int rank, std::size_t operation) {
    at(rank).reporter.withdraw(slot_of(rank, operation));
    note(rank, rank_step::withdraw, operation);
  }
  void block(int rank, std::size_t operation) {
    at(rank).reporter.block(slot_of(rank, operation));
    note(rank, rank_step::block, operation);
  }
  void leave(int rank) {
    at(rank).reporter.leave({.reason = "called shutdown()"});
    note(rank, rank_step::leave, 0);
  }
  void pass(int seconds) {
    now_ += std::chrono::seconds(seconds);
    arbiter_.tick(now_);
    root_steps_ += step(root_step::time, seconds);
    plan();
  }
  // Until nobody has anything to say.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < size_; ++rank) {
        if (!at(rank).reporter.has_news()) continue;
        const Bytes report = encode(at(rank).reporter.take_report());
        arbiter_.accept(rank, decode_report(report), now_);
        // So what is changed in a description gets past the check of its fingerprint.
        root_steps_ += step(root_step::report_with_true_fingerprints, rank, text_of(report));
        note(rank, rank_step::report, 0);
        plan();
        moved = true;
      }
    }
  }

  const std::string& root_steps() const { return root_steps_; }
  const std::string& rank_steps() const { return rank_steps_; }

 private:
  struct Rank {
    Reporter reporter;
    std::vector<Submission> submissions;
  };

  static std::string_view text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::uint32_t slot_of(int rank, std::size_t operation) {
    const auto& all = at(rank).submissions;
    const auto key = [](const Submission& submission) { return key_of(submission.request); };
    return static_cast<std::uint32_t>(std::ranges::find(all, key(all[operation]), key) - all.begin());
  }
  void note(int rank, rank_step::Kind kind, std::size_t operation) {
    if (rank == observed_) rank_steps_ += step(kind, static_cast<int>(operation));
  }
  // Until there is none; every batch runs at once.
  void plan() {
    for (Plan plan = arbiter_.take_plan(); !plan.empty(); plan = arbiter_.take_plan()) {
      root_steps_ += step(root_step::plan);
      const Bytes sent = encode(plan);
      rank_steps_ += step(rank_step::plan, 0, text_of(sent));
      for (Rank& rank : ranks_) rank.reporter.accept(decode_plan(sent));
      for (const Batch& batch : plan.batches) {
        if (!batch.pair.empty() || batch.change || batch.process_set == 2) continue;  // the root has no part in set 2
        arbiter_.on_batch_done(batch.process_set);
        root_steps_ += step(root_step::batch_done, static_cast<int>(batch.process_set));
      }
    }
  }

  int size_;
  int observed_;
  Arbiter arbiter_;
  std::vector<Rank> ranks_;
  TimePoint now_{};
  std::string root_steps_;
  std::string rank_steps_;
};

// Worlds that come by everything that operations can meet with.
inline std::vector<RecordedWorld> recorded_worlds() {
  std::vector<RecordedWorld> worlds;
  const auto world = [&](int header, int observed) -> RecordedWorld& { return worlds.emplace_back(header, observed); };
  const std::size_t count = submissions(0, least_ranks).size();

  // Each operation alone, twice; in a world of four, where the second time is told by numbers.
  for (std::size_t operation = 0; operation < count; ++operation) {
    RecordedWorld& alone = world(1, 1);
    alone.submit(operation);
    alone.settle();
    if (operation >= process_sets_from) continue;  // what it makes or removes is there, or is not
    alone.submit(operation);
    alone.settle();
  }

  RecordedWorld& evicting = world(2 + 16, 2);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t operation = 1; operation < joins_from; ++operation) evicting.submit(operation);
    evicting.settle();
  }

  RecordedWorld& unlike = world(0, 1);
  for (const int rank : {0, 1, 2}) unlike.submit(rank, rank == 1 ? 1 : 0);
  unlike.settle();

  RecordedWorld& joined = world(2, 0);
  joined.submit(0, joins_from);
  joined.settle();
  for (const std::size_t operation : {0U, 2U, 6U, 9U, 8U}) {  // the last one's root has joined, whose join that ends
    for (const int rank : {1, 2}) joined.submit(rank, operation);
    joined.settle();
  }
  joined.submit(joins_from);
  joined.settle();

  RecordedWorld& stalled = world(4 + 8, 0);
  stalled.submit(0, 0);
  stalled.submit(1, 2);
  stalled.settle();
  stalled.block(0, 0);
  stalled.block(1, 2);
  stalled.settle();
  for (int look = 0; look < 3; ++look) stalled.pass(20);

  RecordedWorld& doomed = world(0, 0);
  doomed.submit(0, process_sets_from);
  doomed.submit(1, process_sets_from + 1);
  doomed.block(0, process_sets_from);
  doomed.block(1, process_sets_from + 1);
  doomed.settle();
  doomed.pass(3);

  RecordedWorld& cancelled = world(0, 1);
  cancelled.submit(1, 0);
  cancelled.settle();
  cancelled.withdraw(1, 0);
  cancelled.settle();

  RecordedWorld& left = world(0, 1);
  left.submit(1, 0);
  left.leave(2);
  left.settle();
  return worlds;
}

}  // namespace hvd::fuzz
