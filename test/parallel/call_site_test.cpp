#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvd/hvd.h>

#include <functional>
#include <span>
#include <vector>

#include "../support/world.h"

// Where operations without a name are called from is compared between processes, whose code lies at unlike addresses.
namespace hvd::test {
namespace {

using Submit = std::function<Handle()>;

void expect_order_is_checked(std::vector<float>& a, std::vector<float>& b, const Submit& submit_a,
                             const Submit& submit_b) {
  Config config;
  config.check = CheckLevel::comm;
  hvd::init(config);
  const int size = hvd::size();
  for (int round = 0; round < 3; ++round) {
    a.assign(2, 1.0F);
    b.assign(2, 5.0F);
    const Handle first = submit_a();
    const Handle second = submit_b();
    first.wait();
    second.wait();
    EXPECT_TRUE(all_are(a, static_cast<float>(size)) && all_are(b, 5.0F * static_cast<float>(size)));
  }
  if (size > 1) {
    a.assign(2, 1.0F);
    const bool first_rank = hvd::rank() == 0;
    const Handle first = first_rank ? submit_a() : submit_b();
    const Handle second = first_rank ? submit_b() : submit_a();
    for (const Handle& handle : {first, second})
      EXPECT_THAT(thrown_by<MismatchError>([&] { handle.wait(); }), testing::HasSubstr("call site differs"));
    EXPECT_TRUE(all_are(a, 1.0F)) << "values were mixed";
  }
  hvd::shutdown();
}

TEST(CallSites, R24_AnotherOrderWithoutNamesIsAnErrorAndTheSameOrderIsNot) {
  std::vector<float> a(2);
  std::vector<float> b(2);
  expect_order_is_checked(
      a, b, [&] { return hvd::allreduce_async(std::span(a), {.op = ReduceOp::sum}); },
      [&] { return hvd::allreduce_async(std::span(b), {.op = ReduceOp::sum}); });
}

// Through the templates for vectors, which must not hide where they are called from.
TEST(CallSites, R24_CallsWithVectorsAreToldApart) {
  Config config;
  config.check = CheckLevel::comm;
  hvd::init(config);
  std::vector<float> a(2, 1.0F);
  std::vector<float> b(2, 5.0F);
  Handle first;
  Handle second;
  if (hvd::rank() == 0) {
    first = hvd::allreduce_async(a);
    second = hvd::allreduce_async(b);
  } else {
    first = hvd::allreduce_async(b);
    second = hvd::allreduce_async(a);
  }
  for (const Handle& handle : {first, second}) {
    if (hvd::size() == 1) {
      handle.wait();
    } else {
      EXPECT_THAT(thrown_by<MismatchError>([&] { handle.wait(); }), testing::HasSubstr("call site differs"));
    }
  }
  hvd::shutdown();
}

}  // namespace
}  // namespace hvd::test
