#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <hvd/error.h>

#include "negotiation/report_checks.h"
#include "negotiation_world.h"

namespace hvd {
namespace {

using testing::StartsWith;

constexpr int size = 3;
constexpr auto f32 = static_cast<std::int64_t>(DataType::f32);
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 16;

Ready ready_of(Request request, std::vector<std::int64_t> extents = {}, std::uint32_t id = 0) {
  const std::uint64_t print = fingerprint(request);
  return {.id = id, .fingerprint = print, .extents = std::move(extents), .request = std::move(request)};
}

Request tensor_request(Operation operation, std::vector<Shape> shapes, int root = 0) {
  Request request = bare_request(operation, "x");
  for (const Shape& shape : shapes) request.tensors.push_back({.dtype = DataType::f32, .shape = shape});
  request.root = root;
  return request;
}

// Rank 1 of three says it; process set 1 is [0,1], set 2 is [0,2].
std::string refusal(Report report) {
  Arbiter arbiter(size, {}, ProcessSets(size, {{0, 1}, {0, 2}}));
  try {
    arbiter.accept(1, std::move(report), {});
  } catch (const InternalError& error) {
    return error.what();
  }
  return {};
}
std::string refusal(Ready ready) {
  Report report;
  report.ready.push_back(std::move(ready));
  return refusal(std::move(report));
}

TEST(ReportChecks, BytesThatAreNoReportNameTheirSender) {
  const Bytes bytes(3);
  try {
    read_report(2, bytes);
    FAIL() << "read";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "rank 2 sent no report: malformed message: it ends too early");
  }
  EXPECT_EQ(read_report(2, encode(Report{.ready = {}, .withdrawn = {}, .blocked = {}, .plans_seen = 7, .leave = {}}))
                .plans_seen,
            7U);
}

struct Described {
  const char* what;
  Ready ready;
};
void PrintTo(const Described& described, std::ostream* out) { *out << described.what; }

class ADescriptionThatCannotBe : public testing::TestWithParam<Described> {};

TEST_P(ADescriptionThatCannotBe, NamesItsSender) {
  EXPECT_THAT(refusal(GetParam().ready), StartsWith("rank 1 reported "));
  EXPECT_THAT(refusal(GetParam().ready), testing::HasSubstr(GetParam().what));
}

Ready with_fingerprint(Ready ready, std::uint64_t print) {
  ready.fingerprint = print;
  return ready;
}
Ready with_timeout(double timeout) {
  Request request = float_request("x");
  request.timeout = timeout;
  return ready_of(std::move(request));
}
Ready change(Operation operation, std::uint32_t process_set, int root) {
  Request request = bare_request(operation, "x", process_set);
  request.root = root;
  return ready_of(std::move(request), {});
}

constexpr auto no_description = "with a description that cannot be";
constexpr auto no_rows = "with rows that cannot be";
constexpr auto no_fingerprint = "with a fingerprint that is not its description's";

INSTANTIATE_TEST_SUITE_P(
    ReportChecks, ADescriptionThatCannotBe,
    testing::Values(Described{no_fingerprint, with_fingerprint(ready_of(float_request("x")), 0)},
                    Described{no_fingerprint, with_fingerprint(ready_of(float_request("x")), 1)},
                    Described{no_description, with_timeout(-1)}, Described{no_description, with_timeout(std::nan(""))},
                    Described{no_description, with_timeout(std::numeric_limits<double>::infinity())},
                    Described{no_description, change(Operation::remove_process_set, 0, 0)},
                    Described{no_description, change(Operation::remove_process_set, 0, -1)},
                    Described{no_description, change(Operation::remove_process_set, 1, 1)},
                    Described{no_description, change(Operation::add_process_set, 1, 0)},
                    Described{no_description, ready_of(tensor_request(Operation::broadcast, {Shape{1}}, size))},
                    Described{no_description, ready_of(tensor_request(Operation::allreduce, {}))},
                    Described{no_description, ready_of(tensor_request(Operation::barrier, {Shape{1}}))},
                    Described{no_description, ready_of(tensor_request(Operation::allgather, {Shape{}}), {1})},
                    Described{no_description, ready_of(tensor_request(Operation::allreduce, {Shape{huge, 8}}))},
                    Described{no_description,
                              ready_of(tensor_request(Operation::allgather, {Shape{0, huge, 8}}), {0})}));

INSTANTIATE_TEST_SUITE_P(
    Rows, ADescriptionThatCannotBe,
    testing::Values(
        Described{no_rows, ready_of(float_request("x"), {1})},
        Described{no_rows, ready_of(tensor_request(Operation::allgather, {Shape{4}}), {})},
        Described{no_rows, ready_of(tensor_request(Operation::allgather, {Shape{4}}), {-1})},
        // One such tensor could be gathered, two could not.
        Described{no_rows, ready_of(tensor_request(Operation::allgather, {Shape{1}, Shape{1}}), {huge, huge})},
        Described{no_rows, ready_of(tensor_request(Operation::alltoall, {Shape{4}}), {2, 2})},
        Described{no_rows, ready_of(tensor_request(Operation::scatter, {}, 0), {f32, 1, 4, 2, 1, 1})},
        Described{no_rows, ready_of(tensor_request(Operation::scatter, {}, 1), {})},
        Described{no_rows, ready_of(tensor_request(Operation::scatter, {}, 1), {f32, 1, -4, 2, 1, 1})},
        Described{no_rows, ready_of(tensor_request(Operation::scatter, {}, 1), {f32, 1, 4, 2, 1, 2})},
        Described{no_rows, ready_of(tensor_request(Operation::scatter, {}, 1), {f32, 3, 0, huge, 8, 0, 0, 0})},
        Described{no_rows, ready_of(bare_request(Operation::add_process_set, "x"), {2, 0})},
        Described{no_rows, ready_of(bare_request(Operation::add_process_set, "x"), {0, std::int64_t{1} << 32})}));

TEST(ReportChecks, WhatIsPossibleIsTaken) {
  EXPECT_EQ(refusal(ready_of(tensor_request(Operation::allgather, {Shape{1}, Shape{1}}), {huge / 8, huge / 8})), "");
  EXPECT_EQ(refusal(ready_of(tensor_request(Operation::scatter, {}, 1), {f32, 1, 4, 2, 1, 1})), "");
  EXPECT_EQ(refusal(ready_of(bare_request(Operation::add_process_set, "[0,2]"), {0, 2})), "");
  EXPECT_EQ(refusal(change(Operation::remove_process_set, 0, 1)), "");
  EXPECT_EQ(refusal(with_timeout(1e300)), "");
}

TEST(ReportChecks, APlanThatHasNotBeenMadeCannotHaveBeenSeen) {
  Report report;
  report.plans_seen = 1;
  EXPECT_EQ(refusal(report), "rank 1 has seen plan 1, which has not been made");
}

TEST(ReportChecks, TheDescriptionOfAnotherOperationIsNoneOfThisNumber) {
  Arbiter arbiter(size, {}, ProcessSets(size, {}));
  const auto report = [&](int rank, Ready ready) {
    Report said;
    said.ready.push_back(std::move(ready));
    arbiter.accept(rank, std::move(said), {});
  };
  for (int rank = 0; rank < size; ++rank) report(rank, ready_of(float_request("x")));
  const std::uint32_t id = arbiter.take_plan().names.at(0).id;
  report(0, ready_of(float_request("x", 5), {}, id));
  try {
    report(1, ready_of(join_request(), {}, id));
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "rank 1 reported join 'join' under the number of 'x'");
  }
}

}  // namespace
}  // namespace hvd
