#include <gtest/gtest.h>

#include <hvd/error.h>
#include <random>

#include "negotiation/messages.h"
#include "negotiation/wire.h"

namespace hvd {
namespace {

Report some_report() {
  Request request;
  request.name = std::string("a\"b\n\xff", 5);
  request.process_set = 7;
  request.operation = Operation::allgather;
  request.dtype = DataType::bf16;
  request.shape = Shape{3, 0, 5};
  request.reduce_op = ReduceOp::product;
  request.prescale = 0.5;
  request.postscale = 2.5;
  request.root = 3;
  request.device = Device::Kind::gpu;
  Report report;
  report.ready.push_back({.id = 0, .fingerprint = 0x123456789abcdefULL, .rows = 3, .request = request});
  report.ready.push_back({.id = 42, .fingerprint = 5, .rows = std::int64_t{1} << 40, .request = {}});
  report.leave = Leave{.reason = "called shutdown()", .at_once = true};
  return report;
}

Plan some_plan() {
  Plan plan;
  plan.names.push_back({.id = 1, .process_set = 2, .name = "weights"});
  plan.batches.push_back({.number = 9, .entries = {{.id = 1, .rows = {}}, {.id = 2, .rows = {4, 0, 6}}}});
  plan.failures.push_back({.id = 3, .ranks = {0, 2}, .failure = {ErrorCode::mismatch, "text"}});
  plan.stop = Stop{.reason = "reason", .abandon = true};
  return plan;
}

TEST(Messages, AReportComesBackAsItWas) {
  const Report report = decode_report(encode(some_report()));
  ASSERT_EQ(report.ready.size(), 2U);
  EXPECT_EQ(encode(report), encode(some_report()));
  const Request& request = *report.ready[0].request;
  EXPECT_EQ(request.name, some_report().ready[0].request->name);
  EXPECT_EQ(request.shape, (Shape{3, 0, 5}));
  EXPECT_EQ(request.device, Device::Kind::gpu);
  EXPECT_EQ(request.root, 3);
  EXPECT_FALSE(report.ready[1].request);
  EXPECT_EQ(report.ready[1].rows, std::int64_t{1} << 40);
  EXPECT_TRUE(report.leave->at_once);
}

TEST(Messages, APlanComesBackAsItWas) {
  const Plan plan = decode_plan(encode(some_plan()));
  EXPECT_EQ(encode(plan), encode(some_plan()));
  EXPECT_EQ(plan.batches[0].entries[1].rows, (std::vector<std::int64_t>{4, 0, 6}));
  EXPECT_EQ(plan.failures[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(plan.failures[0].failure.code, ErrorCode::mismatch);
  EXPECT_TRUE(plan.stop->abandon);
}

TEST(Messages, EveryCutMessageIsAnError) {
  const Bytes report = encode(some_report());
  for (std::size_t size = 0; size < report.size(); ++size) {
    EXPECT_THROW(decode_report(BytesView(report).first(size)), InternalError) << size;
  }
  const Bytes plan = encode(some_plan());
  for (std::size_t size = 0; size < plan.size(); ++size) {
    EXPECT_THROW(decode_plan(BytesView(plan).first(size)), InternalError) << size;
  }
}

TEST(Messages, R72_DamagedBytesAreAnErrorOrAMessageButNeverACrash) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = round % 2 == 0 ? encode(some_report()) : encode(some_plan());
    for (int damage = 0; damage < 3; ++damage) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try {
      round % 2 == 0 ? static_cast<void>(decode_report(bytes)) : static_cast<void>(decode_plan(bytes));
    } catch (const InternalError&) {
    }
  }
}

TEST(Messages, R71_AClaimedLengthAllocatesNothing) {
  WireWriter out;
  out.put(std::uint64_t{3'000'000'000'000});
  EXPECT_THROW(decode_report(out.take()), InternalError);
  WireWriter text;
  text.put(std::uint64_t{3'000'000'000'000});
  const Bytes bytes = text.take();
  WireReader in(bytes);
  EXPECT_THROW(in.get_text(), InternalError);
}

TEST(Messages, BytesAfterTheEndAreAnError) {
  Bytes bytes = encode(some_plan());
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode_plan(bytes), InternalError);
}

}  // namespace
}  // namespace hvd
