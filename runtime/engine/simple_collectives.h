#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/collective.h"

namespace hvd::detail {

// What has done its work when it is agreed, as a barrier.
class Nothing final : public Collective {
 public:
  Progress step() override { return Progress::done; }
  Phase phase() const override { return Phase::started; }
};

// For tests of what watches over operations that have started.
class Hanging final : public Collective {
 public:
  Progress step() override { return Progress::waiting; }
  Phase phase() const override { return Phase::started; }
};

// One after the other.
class Sequence final : public Collective {
 public:
  using Start = std::function<std::unique_ptr<Collective>()>;
  explicit Sequence(std::vector<Start> parts) : parts_(std::move(parts)) {}

  Progress step() override {
    if (current_ == nullptr) current_ = parts_[done_]();
    const Progress progress = current_->step();
    if (progress != Progress::done) return progress;
    if (!failure_) failure_ = current_->failure();
    current_.reset();
    return ++done_ == parts_.size() ? Progress::done : Progress::advanced;
  }
  Phase phase() const override { return done_ == parts_.size() ? Phase::unpacked : Phase::started; }
  std::optional<Failure> failure() const override { return failure_; }
  bool needs_polling() const override { return current_ != nullptr && current_->needs_polling(); }

 private:
  std::vector<Start> parts_;
  std::size_t done_ = 0;
  std::optional<Failure> failure_;
  std::unique_ptr<Collective> current_;
};

}  // namespace hvd::detail
