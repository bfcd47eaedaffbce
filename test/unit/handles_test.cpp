#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/cases.h"
#include "../support/world.h"

namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

// ---- many at once

TEST(Many, ArePairedByTheirNamesAndReducedLikeOthers) {
  run_world(3, [](Runtime& runtime) {
    std::vector<std::vector<float>> values(50);
    std::vector<ConstTensorView> inputs;
    std::vector<TensorView> outputs;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i].assign(i, static_cast<float>(runtime.rank()));
      inputs.emplace_back(std::span<const float>(values[i]));
      outputs.emplace_back(std::span<float>(values[i]));
      names.push_back(std::to_string(i));
    }
    std::vector<Handle> handles;
    runtime.allreduce_each_async(inputs, outputs, names, {.op = ReduceOp::sum}, handles);
    ASSERT_EQ(handles.size(), values.size());
    for (const Handle& handle : handles) handle.wait();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], std::vector<float>(i, 3.0F));
    runtime.barrier();
  });
}

TEST(Many, ThoseBeforeARefusedNameAreUnderWayAndTheOthersAreNot) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(3);
    const auto view = [&](std::size_t i) { return TensorView(&values[i], Shape{1}, DataType::f32); };
    const std::vector<TensorView> outputs{view(0), view(1), view(2)};
    const std::vector<ConstTensorView> inputs(outputs.begin(), outputs.end());
    std::vector<Handle> handles;
    const AllreduceOptions sum{.op = ReduceOp::sum};
    const auto submit = [&](const std::vector<std::string>& names) {
      runtime.allreduce_each_async(inputs, outputs, names, sum, handles);
    };
    EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { submit({"a"}); }), "allreduce: 3 inputs, 3 outputs and 1 names");
    EXPECT_THAT(thrown_by<InvalidArgumentError>([&] {
                  submit({"a", "b", std::string(1, '\0')});
                }),
                testing::HasSubstr("NUL"));
    EXPECT_TRUE(handles.empty());
    if (runtime.rank() == 0) {
      EXPECT_THAT(thrown_by<DuplicateNameError>([&] { submit({"a", "b", "a"}); }), StartsWith("allreduce 'a'"));
    } else {
      for (const std::size_t i : {0U, 1U}) {
        handles.push_back(runtime.allreduce_async(view(i), {.name = i == 0 ? "a" : "b", .op = ReduceOp::sum}));
      }
    }
    ASSERT_EQ(handles.size(), 2U);
    for (const Handle& handle : handles) handle.wait();
    EXPECT_EQ(values, (std::vector<float>{2.0F, 2.0F, 1.0F}));
    runtime.barrier();
  });
}

// ---- what is wrong on one rank alone

TEST(Arguments, AreCheckedAtSubmissionOnTheCallerAlone) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(6);
    const auto refused = [](const auto& call) { return thrown_by<InvalidArgumentError>(call); };
    const std::span<float> span(values);
    // One rank alone is enough: nobody waits for anybody.
    if (runtime.rank() == 1) {
      EXPECT_EQ(refused([&] { runtime.allreduce(TensorView(nullptr, Shape{3}, DataType::f32), {.name = "x"}); }),
                "allreduce 'x': input float32[3] has no memory");
      EXPECT_EQ(refused([&] { runtime.allreduce(span, TensorView(nullptr, Shape{6}, DataType::f32), {.name = "x"}); }),
                "allreduce 'x': output float32[6] has no memory");
      EXPECT_EQ(refused([&] { return runtime.allgather(ConstTensorView(nullptr, Shape{3}, DataType::u8)); }),
                "allgather: input uint8[3] has no memory");
      EXPECT_EQ(refused([&] { runtime.allreduce(span.first(4), span.last(4), {.name = "x"}); }),
                "allreduce 'x': input and output overlap in part");
      EXPECT_EQ(refused([&] { runtime.broadcast(span.last(4), span.first(4), {.name = "x", .root_rank = 1}); }),
                "broadcast 'x': input and output overlap in part");
      EXPECT_EQ(refused([&] { runtime.allreduce(span.first(4), span.first(3), {.name = "x"}); }),
                "allreduce 'x': input is float32[4], output float32[3]");
      std::vector<double> doubles(6);
      EXPECT_EQ(refused([&] { runtime.allreduce(span, std::span(doubles), {.name = "x"}); }),
                "allreduce 'x': input is float32[6], output float64[6]");
      EXPECT_EQ(refused([&] { runtime.broadcast(span, {.name = "x", .root_rank = 2}); }),
                "broadcast 'x': root rank 2 is not in 0..1");
      EXPECT_EQ(refused([&] { runtime.broadcast(span, {.name = "x", .root_rank = -1}); }),
                "broadcast 'x': root rank -1 is not in 0..1");
      EXPECT_EQ(refused([&] { runtime.barrier({.name = "x", .process_set = {3}}); }),
                "barrier 'x': process set 3 does not exist");
      EXPECT_EQ(refused([&] { return runtime.allreduce_async(span, {.process_set = {3}}); }),
                "allreduce: process set 3 does not exist");
      EXPECT_THAT(refused([&] {
                    runtime.allreduce(TensorView(values.data(), Shape{6}, DataType::f32, {Device::Kind::gpu, 1}),
                                      {.name = "x"});
                  }),
                  StartsWith("allreduce 'x': input is on gpu 1"));
      EXPECT_NE(refused([&] { runtime.allreduce(TensorView(span, Shape{7}), {.name = "x"}); }), "");
    }
    EXPECT_TRUE(all_are(values, 1.0F));
    expect_sum_works(runtime, "x");
  });
}

// ---- handles

TEST(Handles, WaitForGivesUpAndTheOperationGoesOn) {
  std::latch gave_up(1);
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(4);
    if (runtime.rank() == 1) gave_up.wait();
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    if (runtime.rank() == 0) {
      EXPECT_FALSE(handle.wait_for(0s));
      EXPECT_FALSE(handle.wait_for(-1s));
      EXPECT_FALSE(handle.wait_for(20ms));
      EXPECT_FALSE(handle.ready());
      gave_up.count_down();
    }
    EXPECT_TRUE(handle.wait_for(40s));
    EXPECT_TRUE(handle.ready());
    EXPECT_TRUE(handle.wait_for(0s));
    EXPECT_TRUE(all_are(values, 2.0F));
  });
}

TEST(Handles, WaitForEverIsNoOverflow) {
  run_world(2, [&](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    EXPECT_TRUE(handle.wait_for(std::chrono::duration<double>::max()));
  });
}

TEST(Handles, AreCopiesOfOneOperationAndMayBeWaitedForAgain) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(4);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    const Handle copy = handle;  // NOLINT(performance-unnecessary-copy-initialization): that is the point
    copy.wait();
    handle.wait();
    handle.wait();
    EXPECT_TRUE(copy.ready());
    EXPECT_TRUE(all_are(values, 2.0F));
    const Handle gather = runtime.allgather_async(std::span<const float>(values), {.name = "y"});
    const Tensor taken = gather.take_output();
    EXPECT_EQ(taken.shape(), Shape({8}));
    EXPECT_EQ(gather.take_output().data(), nullptr) << "taken already";
    EXPECT_EQ(handle.take_output().data(), nullptr) << "has none";
  });
}

TEST(Handles, AnErrorIsTheSameAtEveryWait) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(runtime.rank() == 0 ? 1 : 2);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    const std::string text = thrown_by<MismatchError>([&] { handle.wait(); });
    EXPECT_EQ(thrown_by<MismatchError>([&] { handle.wait(); }), text);
    EXPECT_EQ(thrown_by<MismatchError>([&] { return handle.wait_for(1s); }), text);
    EXPECT_EQ(thrown_by<MismatchError>([&] { return handle.take_output(); }), text);
    EXPECT_TRUE(handle.ready());
  });
}

TEST(Handles, AnEmptyOneIsAnErrorToWaitFor) {
  const Handle empty;
  EXPECT_FALSE(empty);
  EXPECT_TRUE(empty.ready());
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { empty.wait(); }), "the handle is empty");
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return empty.wait_for(1s); }), "the handle is empty");
  EXPECT_EQ(thrown_by<InvalidArgumentError>([&] { return empty.take_output(); }), "the handle is empty");
}

TEST(Handles, DroppingOneLeavesTheOperationAlone) {
  run_world(3, [](Runtime& runtime) {
    std::vector<std::vector<float>> values(50, ones(100));
    for (std::size_t i = 0; i < values.size(); ++i) {
      static_cast<void>(
          runtime.allreduce_async(std::span(values[i]), {.name = std::to_string(i), .op = ReduceOp::sum}));
    }
    runtime.barrier();  // batches run in the order in which they became ready
    for (const auto& value : values) EXPECT_TRUE(all_are(value, 3.0F));
  });
}

TEST(Handles, BecomeReadyThoughNobodyWaits) {
  for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    Config config;
    config.test_topology = hosts;
    run_world(2, config, [](Runtime& runtime) {
      std::vector<float> values = ones(100'000);
      const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
      while (!handle.ready()) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(all_are(values, 2.0F));
    });
  }
}

// ---- observers

class Recorder : public Observer {
 public:
  struct Seen {
    Stage stage;
    Operation operation;
    std::int64_t bytes;
    std::uint64_t batch;
    Clock::time_point time;
    std::string error;
  };

  void on_event(const TensorEvent& event) override {
    const std::scoped_lock lock(mutex_);
    seen_[std::string(event.name)].push_back(
        {event.stage, event.operation, event.bytes, event.batch, event.time, std::string(event.error)});
  }
  std::map<std::string, std::vector<Seen>> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(seen_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Seen>> seen_;
};

// submitted, negotiated, then what there was of packed, reduced and unpacked in this order, then done; or failed after
// submitted.
void expect_legal(const std::string& name, const std::vector<Recorder::Seen>& events) {
  SCOPED_TRACE("operation '" + name + "'");
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.front().stage, Stage::submitted);
  EXPECT_EQ(events.front().batch, 0U);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].stage, events[i].stage);
    EXPECT_LE(events[i - 1].time, events[i].time);
    EXPECT_EQ(events[i].operation, events[0].operation);
    EXPECT_EQ(events[i].bytes, events[0].bytes);
  }
  if (events.back().stage == Stage::failed) {
    EXPECT_EQ(events.size(), 2U);
    EXPECT_NE(events.back().error, "");
    return;
  }
  EXPECT_EQ(events.back().stage, Stage::done);
  EXPECT_EQ(events[1].stage, Stage::negotiated);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i].batch, events[1].batch);
    EXPECT_GT(events[i].batch, 0U);
    EXPECT_EQ(events[i].error, "");
  }
}

TEST(Observers, SeeTheStagesOfEveryOperationInOrder) {
  Config hosts;
  hosts.test_topology = {2, 1};
  for (const Config& config : {Config{}, hosts}) {
    Program program(3, config.test_topology);
    for (int i = 0; i < 20; ++i) {
      program.allreduce(DataType::f32, {i * i}, ReduceOp::sum, i % 2 == 0);
      program.broadcast(DataType::f64, {7 * i}, i % 3, false);
      program.allgather(DataType::i8, {1, 3}, {i, 0, 2});
    }
    run_world(3, config, [&](Runtime& runtime) {
      const auto recorder = std::make_shared<Recorder>();
      runtime.add_observer(recorder);
      run_together(runtime, program.cases());
      runtime.barrier({.name = "the end"});
      std::vector<float> wrong = ones(runtime.rank() == 0 ? 1 : 2);
      const std::string text =
          thrown_by<MismatchError>([&] { runtime.allreduce(std::span(wrong), {.name = "wrong"}); });

      const auto seen = recorder->take();
      EXPECT_EQ(seen.size(), program.cases().size() + 2);
      for (const auto& [name, events] : seen) expect_legal(name, events);
      for (const Case& c : program.cases()) {
        const auto& events = seen.at(c.name);
        EXPECT_EQ(events[0].operation, c.operation);
        EXPECT_EQ(events[0].bytes,
                  static_cast<std::int64_t>(c.inputs[static_cast<std::size_t>(runtime.rank())].bytes().size()));
      }
      EXPECT_EQ(seen.at("the end").front().operation, Operation::barrier);
      EXPECT_EQ(seen.at("wrong").back().stage, Stage::failed);
      EXPECT_EQ(seen.at("wrong").back().error, text);
    });
  }
}

TEST(Observers, SeeAnOperationWithoutANameUnderOneName) {
  run_world(2, [&](Runtime& runtime) {
    const auto recorder = std::make_shared<Recorder>();
    runtime.add_observer(recorder);
    std::vector<float> values = ones(3);
    runtime.allreduce(std::span(values));
    runtime.barrier();
    const auto seen = recorder->take();
    EXPECT_EQ(seen.size(), 2U);
    for (const auto& [name, events] : seen) expect_legal(name, events);
  });
}

TEST(Observers, SeeNothingOfASubmissionThatWasRefused) {
  std::latch refused(1);
  run_world(2, [&](Runtime& runtime) {
    const auto recorder = std::make_shared<Recorder>();
    runtime.add_observer(recorder);
    std::vector<float> values = ones(3);
    if (runtime.rank() == 1) refused.wait();
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x"});
    if (runtime.rank() == 0) {
      EXPECT_NE(thrown_by<DuplicateNameError>([&] { runtime.allreduce(std::span(values), {.name = "x"}); }), "");
      EXPECT_NE(
          thrown_by<InvalidArgumentError>([&] { runtime.broadcast(std::span(values), {.name = "y", .root_rank = 9}); }),
          "");
      refused.count_down();
    }
    handle.wait();
    const auto seen = recorder->take();
    EXPECT_EQ(seen.size(), 1U);
    for (const auto& [name, events] : seen) expect_legal(name, events);
  });
}

TEST(Observers, TwoSeeTheSame) {
  run_world(2, [&](Runtime& runtime) {
    const auto one = std::make_shared<Recorder>();
    const auto two = std::make_shared<Recorder>();
    runtime.add_observer(one);
    runtime.add_observer(two);
    expect_sum_works(runtime, "x");
    EXPECT_EQ(one->take().at("x").size(), two->take().at("x").size());
  });
}

}  // namespace
}  // namespace hvd::test
