#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "negotiation_checks.h"
#include "negotiation_world.h"

namespace hvd {

// What a rank's program does next. It submits as soon as the name is free and no join of its own forbids it.
struct Step {
  enum class Kind { submit, cancel, leave };
  Kind kind = Kind::submit;
  Request request;
  std::vector<std::int64_t> extents;
};

inline Step submits(const Request& request, std::vector<std::int64_t> extents = {}) {
  return {.kind = Step::Kind::submit, .request = request, .extents = std::move(extents)};
}
inline Step submits(const std::string& name, std::uint32_t process_set = 0) {
  return submits(float_request(name, 4, process_set));
}
inline Step joins(std::uint32_t process_set = 0) { return submits(join_request(process_set)); }
inline Step cancels(const Request& request) { return {.kind = Step::Kind::cancel, .request = request, .extents = {}}; }
inline Step cancels(const std::string& name) { return cancels(float_request(name)); }
inline Step leaves() { return {.kind = Step::Kind::leave, .request = {}, .extents = {}}; }

struct Scenario {
  std::vector<std::vector<Step>> programs;  // by rank
  std::vector<std::vector<int>> sets;
  Arbiter::Options options{.fusion_threshold = 1 << 20};
  bool piles_up = false;  // the root may take in several reports before it plans
  // Of every ending, besides what holds of each.
  std::function<void(const NegotiationWorld&)> at_end = [](const NegotiationWorld&) {};
};

struct Event {
  enum class Kind { act, report, receive, finish, plan };
  Kind kind = Kind::act;
  int rank = 0;
  friend bool operator==(const Event&, const Event&) = default;
};

// What one does does not depend on what the other does: events of unlike ranks, unless both are the root's.
inline bool commute(const Event& a, const Event& b) {
  const auto at_root = [](const Event& e) { return e.kind != Event::Kind::act && e.kind != Event::Kind::receive; };
  return a.rank != b.rank && !(at_root(a) && at_root(b));
}

// Programs, world and how far each program is. A value.
class Scene {
 public:
  explicit Scene(const Scenario& scenario)
      : scenario_(&scenario),
        world_(static_cast<int>(scenario.programs.size()), scenario.options, scenario.sets),
        next_(scenario.programs.size(), 0),
        left_(scenario.programs.size(), false) {}

  std::vector<Event> possible() const {
    std::vector<Event> events;
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (can_act(rank)) events.push_back({Event::Kind::act, rank});
      if (world_.can_report(rank)) events.push_back({Event::Kind::report, rank});
      if (world_.can_receive(rank)) events.push_back({Event::Kind::receive, rank});
    }
    if (world_.must_plan()) events.push_back({Event::Kind::plan, 0});
    if (world_.can_finish_batch()) events.push_back({Event::Kind::finish, 0});
    return events;
  }
  void happen(const Event& event) {
    switch (event.kind) {
      case Event::Kind::act:
        return act(event.rank);
      case Event::Kind::report:
        return scenario_->piles_up ? world_.hear(event.rank) : world_.report(event.rank);
      case Event::Kind::receive:
        return world_.receive(event.rank);
      case Event::Kind::finish:
        return world_.finish_batch();
      case Event::Kind::plan:
        return world_.publish();
    }
  }
  void check_ending() const {
    check_batches(world_);
    check_failures(world_);
    check_open_handles(world_, left_);
    scenario_->at_end(world_);
  }
  const NegotiationWorld& world() const { return world_; }

 private:
  const Step* step(int rank) const {
    const auto& program = scenario_->programs[static_cast<std::size_t>(rank)];
    const std::size_t next = next_[static_cast<std::size_t>(rank)];
    return next < program.size() ? &program[next] : nullptr;
  }
  bool can_act(int rank) const {
    const Step* next = step(rank);
    if (next == nullptr || world_.stop(rank) || left_[static_cast<std::size_t>(rank)]) return false;
    if (next->kind != Step::Kind::submit) return true;
    if (world_.in_flight(rank, key_of(next->request))) return false;
    if (!knows_set(rank, next->request)) return !changes_sets(rank);
    return next->request.operation == Operation::join || !has_joined(world_, rank, next->request.process_set);
  }
  bool knows_set(int rank, const Request& request) const {
    return world_.sets(rank).find(request.process_set) != nullptr;
  }
  bool changes_sets(int rank) const {
    return std::ranges::any_of(world_.handles(rank), [](const NegotiationWorld::Handle& handle) {
      return handle.open && handle.request.changes_process_sets();
    });
  }
  void act(int rank) {
    const Step& now = *step(rank);
    ++next_[static_cast<std::size_t>(rank)];
    switch (now.kind) {
      case Step::Kind::submit:
        if (knows_set(rank, now.request)) world_.submit(rank, now.request, now.extents);  // else it is refused
        return;
      case Step::Kind::cancel:
        if (world_.in_flight(rank, key_of(now.request))) world_.cancel(rank, now.request);
        return;
      case Step::Kind::leave:
        left_[static_cast<std::size_t>(rank)] = true;
        return world_.leave(rank, {.reason = "called shutdown()", .at_once = false});
    }
  }

  const Scenario* scenario_;
  NegotiationWorld world_;
  std::vector<std::size_t> next_;
  std::vector<bool> left_;
};

// Tries schedules of a scenario: every one up to the order of events that commute (sleep sets: Godefroid,
// "Partial-Order Methods for the Verification of Concurrent Systems", 1996), or random ones.
class Explorer {
 public:
  explicit Explorer(const Scenario& scenario) : scenario_(scenario) {}

  void explore(std::size_t most = 2'000'000) {
    most_ = most;
    visit(Scene(scenario_), {});
  }
  void walk(std::mt19937& random) {
    path_.clear();
    Scene scene(scenario_);
    for (auto events = scene.possible(); !events.empty(); events = scene.possible()) {
      path_.push_back(events[std::uniform_int_distribution<std::size_t>(0, events.size() - 1)(random)]);
      if (!guarded([&] { scene.happen(path_.back()); })) return;
    }
    end(scene);
  }
  std::size_t schedules() const { return schedules_; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  void visit(const Scene& scene, std::vector<Event> asleep) {
    if (testing::Test::HasFailure() || schedules_ >= most_) return;
    const auto events = scene.possible();
    if (events.empty()) return end(scene);
    for (const Event& event : events) {
      if (std::ranges::count(asleep, event) > 0) continue;
      std::vector<Event> still_asleep = asleep;
      std::erase_if(still_asleep, [&](const Event& other) { return !commute(event, other); });
      path_.push_back(event);
      Scene after = scene;
      if (guarded([&] { after.happen(event); })) visit(after, std::move(still_asleep));
      path_.pop_back();
      asleep.push_back(event);
    }
  }
  void end(const Scene& scene) {
    ++schedules_;
    evictions_ += scene.world().evictions(0);
    guarded([&] { scene.check_ending(); });
  }
  template <typename Act>
  bool guarded(const Act& act) {
    try {
      act();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (!testing::Test::HasFailure()) return true;
    if (!std::exchange(told_, true)) ADD_FAILURE() << "schedule: " << describe_path();
    return false;
  }
  std::string describe_path() const {
    std::string text;
    for (const Event& event : path_) {
      text += fmt::format(
          "{}{} ", std::vector{"act", "report", "receive", "finish", "plan"}[static_cast<std::size_t>(event.kind)],
          event.rank);
    }
    return text;
  }

  const Scenario& scenario_;
  std::vector<Event> path_;
  bool told_ = false;
  std::size_t most_ = 0;
  std::size_t schedules_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace hvd
