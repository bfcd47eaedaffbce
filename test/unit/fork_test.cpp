#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/in_process.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "../support/world.h"

namespace hvd::test {
namespace {

// What the call throws, in a child that this forks.
template <typename Call>
std::string error_in_child(const Call& call) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang ends as well
    std::string text = "no error";
    try {
      call();
    } catch (const NotInitializedError& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = std::string("another error: ") + error.what();
    }
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  close(ends[1]);
  std::string text(1000, '\0');
  const ssize_t count = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : "the child ended with " + std::to_string(status) + ": " + text;
}

TEST(Fork, R118_EveryOperationOfAChildIsRefusedAndTheParentGoesOn) {
  Config config;
  config.process_sets = {{0}};
  run_world(2, config, [](Runtime& runtime) {
    expect_sum_works(runtime, "before");
    if (runtime.rank() == 0) {
      std::vector<float> values = ones(4);
      const std::span<float> span(values);
      const auto refused = [](const auto& call) {
        EXPECT_THAT(error_in_child(call), testing::HasSubstr("not usable after fork"));
      };
      refused([&] { runtime.allreduce(span, {.name = "x"}); });
      refused([&] { runtime.reduce(span); });
      refused([&] { static_cast<void>(runtime.reduce_scatter(span)); });
      refused([&] { runtime.broadcast(span); });
      refused([&] { static_cast<void>(runtime.allgather(span)); });
      refused([&] { static_cast<void>(runtime.gather(span)); });
      refused([&] { static_cast<void>(runtime.scatter(span)); });
      refused([&] { static_cast<void>(runtime.alltoall(span)); });
      refused([&] { runtime.send(span, {.to_rank = 1}); });
      refused([&] { runtime.recv(span, {.from_rank = 1}); });
      refused([&] { runtime.barrier(); });
      refused([&] { runtime.join(); });
      refused([&] { runtime.check_consistency({}); });
      refused([&] { static_cast<void>(runtime.add_process_set({1})); });
      refused([&] { runtime.remove_process_set({1}); });
    }
    expect_sum_works(runtime, "after");
  });
}

TEST(Fork, R118_AHandleOfTheParentCannotBeWaitedForInAChild) {
  run_world(2, [](Runtime& runtime) {
    std::vector<float> values = ones(3);
    if (runtime.rank() == 1) return expect_sum_works(runtime, "x", 3);
    const Handle handle = runtime.allreduce_async(std::span(values), {.name = "x", .op = ReduceOp::sum});
    handle.wait();
    EXPECT_THAT(error_in_child([&] {
                  const Handle more = runtime.allreduce_async(std::span(values), {.name = "y"});
                  more.wait();
                }),
                testing::HasSubstr("not usable after fork"));
    EXPECT_TRUE(all_are(values, 2.0F));
  });
}

}  // namespace
}  // namespace hvd::test
