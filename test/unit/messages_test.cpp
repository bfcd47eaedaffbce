#include <gtest/gtest.h>

#include <hvd/error.h>
#include <random>

#include "negotiation/messages.h"
#include "negotiation/wire.h"

namespace hvd {
namespace {

Request some_request() {
  Request request;
  request.name = std::string("a\"b\n\xff", 5);
  request.process_set = 7;
  request.operation = Operation::allgather;
  request.tensors.push_back({.dtype = DataType::bf16, .shape = Shape{3, 0, 5}});
  request.tensors.push_back({.dtype = DataType::c128, .shape = Shape{}});
  request.reduce_op = ReduceOp::product;
  request.prescale = 0.5;
  request.postscale = 2.5;
  request.root = 3;
  request.peer = 4;
  request.device = Device::Kind::gpu;
  request.timeout = 1.25;
  request.call_site = 0xfedcba9876543210ULL;
  return request;
}

Report some_report() {
  Report report;
  report.ready.push_back({.id = 0, .fingerprint = 0x123456789abcdefULL, .extents = {3, -1}, .request = some_request()});
  report.ready.push_back({.id = 42, .fingerprint = 5, .extents = {std::int64_t{1} << 40}, .request = {}});
  report.withdrawn.push_back({.id = 0, .key = "0:x"});
  report.blocked.push_back({.id = 8, .key = ""});
  report.plans_seen = 77;
  report.leave = Leave{.reason = "called shutdown()", .at_once = true, .code = ErrorCode::stalled, .process = "host h, pid 7"};
  return report;
}

Plan some_plan() {
  Plan plan;
  plan.number = 5;
  plan.evicted = {4, 9};
  plan.names.push_back({.id = 1, .key = "2:weights"});
  plan.descriptions.push_back({.id = 1, .request = some_request()});
  plan.batches.push_back({.number = 9,
                          .process_set = 2,
                          .pair = {},
                          .absent = {3},
                          .change = {},
                          .entries = {{.id = 1, .extents = {}}, {.id = 2, .extents = {{4, 0, 6}, {}, {1, 2, 3}}}}});
  plan.batches.push_back({.number = 10, .process_set = 0, .pair = {1, 3}, .absent = {}, .change = {}, .entries = {}});
  plan.batches.push_back({.number = 11,
                          .process_set = 0,
                          .pair = {},
                          .absent = {},
                          .change = SetChange{.id = 6, .channel = 2, .ranks = {1, 2}},
                          .entries = {}});
  plan.failures.push_back({.id = 3, .ranks = {0, 2}, .failure = {ErrorCode::mismatch, "text"}});
  plan.stop = Stop{.reason = "reason", .abandon = true, .code = ErrorCode::rank_lost};
  return plan;
}

TEST(Messages, AReportComesBackAsItWas) {
  const Report report = decode_report(encode(some_report()));
  ASSERT_EQ(report.ready.size(), 2U);
  EXPECT_EQ(encode(report), encode(some_report()));
  const Request& request = *report.ready[0].request;
  EXPECT_EQ(request.name, some_request().name);
  ASSERT_EQ(request.tensors.size(), 2U);
  EXPECT_EQ(request.tensors[0].shape, (Shape{3, 0, 5}));
  EXPECT_EQ(request.tensors[1].dtype, DataType::c128);
  EXPECT_EQ(request.device, Device::Kind::gpu);
  EXPECT_EQ(request.root, 3);
  EXPECT_EQ(request.peer, 4);
  EXPECT_EQ(request.timeout, 1.25);
  EXPECT_EQ(request.call_site, some_request().call_site);
  EXPECT_EQ(fingerprint(request), fingerprint(some_request()));
  EXPECT_FALSE(report.ready[1].request);
  EXPECT_EQ(report.ready[1].extents, (std::vector<std::int64_t>{std::int64_t{1} << 40}));
  EXPECT_EQ(report.withdrawn[0].key, "0:x");
  EXPECT_EQ(report.blocked[0].id, 8U);
  EXPECT_EQ(report.plans_seen, 77U);
  EXPECT_TRUE(report.leave->at_once);
  EXPECT_EQ(report.leave->code, ErrorCode::stalled);
  EXPECT_EQ(report.leave->process, "host h, pid 7");
}

TEST(Messages, APlanComesBackAsItWas) {
  const Plan plan = decode_plan(encode(some_plan()));
  EXPECT_EQ(encode(plan), encode(some_plan()));
  EXPECT_EQ(plan.number, 5U);
  EXPECT_EQ(plan.evicted, (List<std::uint32_t>{4, 9}));
  EXPECT_EQ(plan.names[0].key, "2:weights");
  EXPECT_EQ(key_of(plan.descriptions[0].request), key_of(some_request()));
  EXPECT_EQ(plan.batches[0].absent, std::vector<int>{3});
  EXPECT_EQ(plan.batches[0].entries[1].extents, (std::vector<std::vector<std::int64_t>>{{4, 0, 6}, {}, {1, 2, 3}}));
  EXPECT_EQ(plan.batches[1].pair, (std::vector<int>{1, 3}));
  EXPECT_EQ(plan.batches[2].change->channel, 2U);
  EXPECT_EQ(plan.batches[2].change->ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(plan.failures[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(plan.failures[0].failure.code, ErrorCode::mismatch);
  EXPECT_TRUE(plan.stop->abandon);
  EXPECT_EQ(plan.stop->code, ErrorCode::rank_lost);
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
  WireWriter out(0);
  out.put(std::uint64_t{3'000'000'000'000});
  EXPECT_THROW(decode_report(out.take()), InternalError);
  WireWriter text(0);
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
