#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/runtime.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/world.h"
#include "transport/in_process.h"

// The negotiation makes all ranks agree on sizes. Should they differ below it all the same, that is an error of the
// operation, not of the process.
namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Passes everything on, but of data messages of 20 bytes only the first 16.
class ShorteningTransport final : public Transport {
 public:
  explicit ShorteningTransport(std::unique_ptr<Transport> real) : real_(std::move(real)) {}

  const Topology& topology() const override { return real_->topology(); }
  std::vector<Bytes> allgather(BytesView mine, std::chrono::duration<double> limit) override {
    return real_->allgather(mine, limit);
  }
  std::unique_ptr<SharedMemory> share(std::size_t bytes, std::chrono::duration<double> limit) override {
    return real_->share(bytes, limit);
  }
  std::unique_ptr<SharedMemory> try_share(const std::string& key, std::size_t bytes, int members) override {
    return real_->try_share(key, bytes, members);
  }
  std::unique_ptr<Transfer> send_data(int rank, int channel, BytesView data) override {
    return real_->send_data(rank, channel, data.first(data.size() == 20 ? 16 : data.size()));
  }
  std::unique_ptr<Transfer> receive_data(int rank, int channel, std::span<std::byte> data) override {
    return real_->receive_data(rank, channel, data);
  }
  void send_control(int rank, Bytes message) override { real_->send_control(rank, std::move(message)); }
  bool control_idle(int rank) override { return real_->control_idle(rank); }
  std::optional<Message> poll_control() override { return real_->poll_control(); }
  bool close() noexcept override { return real_->close(); }

 private:
  std::unique_ptr<Transport> real_;
};

// Both ranks, each a host of its own, call this, rank 1 giving 20 bytes to rank 0.
void expect_error(const std::string& title, const std::function<void(Runtime&)>& call) {
  const auto hub = make_in_process_hub(2);
  const auto errors = run_threads(2, [&](int rank) {
    auto transport = make_in_process_transport(hub, Topology(rank, std::vector<int>{0, 1}));
    if (rank == 1) transport = std::make_unique<ShorteningTransport>(std::move(transport));
    Runtime runtime(std::move(transport), Config{});
    expect_sum_works(runtime, "before");
    const std::string what = "rank 1 sent 16 bytes to rank 0, which expected 20";
    if (rank == 0) {
      EXPECT_THAT(thrown_by<InternalError>([&] { call(runtime); }), AllOf(StartsWith(title), HasSubstr(what)));
      return;
    }
    // Its own part may be done; it hears of the other's at the latest when it goes on.
    EXPECT_THAT(thrown_by<ShutDownError>([&] {
                  call(runtime);
                  runtime.barrier();
                }),
                HasSubstr("rank 0 has left: " + what));
  });
  for (const auto& error : errors) EXPECT_EQ(text_of(error), "no error");
}

TEST(WrongSizes, R16_InABroadcastAreAnErrorOnAllRanksThatNamesRanksAndBytes) {
  expect_error("broadcast 'w': ", [](Runtime& runtime) {
    std::vector<float> values = ones(5);
    runtime.broadcast(std::span(values), {.name = "w", .root_rank = 1});
  });
}

TEST(WrongSizes, R16_InAnAllgatherAreAnErrorOnAllRanksThatNamesRanksAndBytes) {
  expect_error("allgather 'w': ", [](Runtime& runtime) {
    const std::vector<float> values = ones(5);
    static_cast<void>(runtime.allgather(std::span(values), {.name = "w"}));
  });
}

TEST(WrongSizes, R16_InAMessageAreAnErrorOnBothEndsThatNamesRanksAndBytes) {
  expect_error("send/recv 'w': ", [](Runtime& runtime) {
    std::vector<float> values = ones(5);
    if (runtime.rank() == 1) return runtime.send(std::span(values), {.name = "w", .to_rank = 0});
    runtime.recv(std::span(values), {.name = "w", .from_rank = 1});
  });
}

}  // namespace
}  // namespace hvd::test
