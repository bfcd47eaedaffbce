#include "cpu/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "reduce_cases.h"

// Every dtype with every reduce op that it has, against the scalar reference.
namespace hvd::cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // each element is dear, and one thread has no races
constexpr std::size_t source_counts[] = {1, 4, 5};
constexpr std::size_t element_counts[] = {0, 7, 1100};
#else
constexpr std::size_t source_counts[] = {1, 2, 3, 4, 5, 8};
constexpr std::size_t element_counts[] = {0, 1, 7, 64, 1000, 4097};
#endif

struct Case {
  Reduction reduction;
  std::vector<test::Array> inputs;
  test::Array expected;
  test::Array expected_of_two_hosts;  // the first rank alone, then all others
  std::size_t offset = 0;             // of addresses from alignment

  std::size_t count() const { return expected.elements(); }
  std::vector<Memory> sources() const {
    std::vector<Memory> all;
    for (const test::Array& input : inputs) all.emplace_back(input, offset == 0 ? 0 : 2 * all.size() + offset);
    return all;
  }
  Memory destination() const { return {expected.bytes().size(), offset}; }
  Memory accumulators(std::size_t at) const { return {count() * accumulator_size(reduction), at}; }
};

Case make_case(const Reduction& reduction, std::size_t ranks, std::size_t count) {
  Case c{.reduction = reduction, .inputs = {}, .expected = {}, .expected_of_two_hosts = {}};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    c.inputs.push_back(wild_array(reduction.dtype, count, rank + 1));
  }
  test::ReduceSpec spec{.op = reduction.op, .prescale = reduction.prescale, .postscale = reduction.postscale};
  c.expected = test::reduced(spec, c.inputs);
  if (ranks > 1) {
    spec.ranks_per_host = {1, static_cast<int>(ranks) - 1};
    c.expected_of_two_hosts = test::reduced(spec, c.inputs);
  }
  return c;
}

void expect(const test::Array& expected, const Memory& actual) {
  test::Array got(expected.dtype(), expected.shape());
  std::copy_n(actual.data(), got.bytes().size(), got.bytes().begin());
  EXPECT_TRUE(test::same_bits(got, expected));
}

void check_one_pass(const Case& c) {
  const std::vector<Memory> sources = c.sources();
  Memory dst = c.destination();
  reduce(c.reduction, pointers(sources), dst.data(), c.count());
  expect(c.expected, dst);
}

void check_in_place(const Case& c) {
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    std::vector<Memory> sources = c.sources();
    reduce(c.reduction, pointers(sources), sources[k].data(), c.count());
    expect(c.expected, sources[k]);
  }
}

void check_halves(const Case& c) {
  const std::vector<Memory> sources = c.sources();
  Memory accumulators = c.accumulators(c.offset + 2);
  Memory dst = c.destination();
  reduce_to_accumulators(c.reduction, pointers(sources), accumulators.data(), c.count());
  const std::byte* const source = accumulators.data();
  reduce_accumulators(c.reduction, {&source, 1}, dst.data(), c.count());
  expect(c.expected, dst);
}

void check_two_hosts(const Case& c) {
  const std::vector<Memory> sources = c.sources();
  const std::vector<const std::byte*> all = pointers(sources);
  std::vector<Memory> hosts{c.accumulators(3), c.accumulators(5)};
  reduce_to_accumulators(c.reduction, std::span(all).first(1), hosts[0].data(), c.count());
  reduce_to_accumulators(c.reduction, std::span(all).subspan(1), hosts[1].data(), c.count());
  Memory dst = c.destination();
  reduce_accumulators(c.reduction, pointers(hosts), dst.data(), c.count());
  expect(c.expected_of_two_hosts, dst);
}

void check(const Case& c) {
  check_one_pass(c);
  check_in_place(c);
  check_halves(c);
  if (c.inputs.size() > 1) check_two_hosts(c);
}

using Cell = std::tuple<DataType, ReduceOp>;

class Reduce : public EachIsa, public testing::WithParamInterface<Cell> {
 protected:
  static void check_all(double prescale, double postscale) {
    const auto [dtype, op] = GetParam();
    for (const std::size_t ranks : source_counts) {
      for (const std::size_t count : element_counts) {
        Case c = make_case(make_reduction(dtype, op, ranks, prescale, postscale), ranks, count);
        for (c.offset = 0; c.offset < 2; ++c.offset) {
          SCOPED_TRACE(testing::Message() << ranks << " sources, " << count << " elements, offset " << c.offset);
          run([&] { check(c); });
          if (HasFailure()) return;
        }
      }
    }
  }
};

class ScaledReduce : public Reduce {};

TEST_P(Reduce, HasTheBitsOfTheReferenceWithoutAScale) { check_all(1.0, 1.0); }
TEST_P(ScaledReduce, HasTheBitsOfTheReferenceWithAPrescale) { check_all(3.5, 1.0); }
TEST_P(ScaledReduce, HasTheBitsOfTheReferenceWithAPostscale) { check_all(1.0, 0.1); }
TEST_P(ScaledReduce, HasTheBitsOfTheReferenceWithBothScales) { check_all(0.3, 1.7); }

// The cells by hand: a rule that is too narrow would hide its kernels from the test.
std::vector<Cell> cells(bool scaled) {
  std::vector<Cell> all;
  for (const DataType dtype : test::all_dtypes) {
    for (const ReduceOp op : test::all_reduce_ops) {
      const bool is_bool = dtype == DataType::boolean;
      const bool is_complex = dtype == DataType::c64 || dtype == DataType::c128;
      if (dtype == DataType::f8e4m3 || dtype == DataType::f8e5m2) continue;
      if (is_bool && (scaled || op == ReduceOp::average)) continue;
      if (is_complex && (op == ReduceOp::min || op == ReduceOp::max)) continue;
      all.emplace_back(dtype, op);
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Cell>& info) {
  return std::string(to_string(std::get<0>(info.param))) + "_" + std::string(to_string(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, Reduce, testing::ValuesIn(cells(false)), name_of);
INSTANTIATE_TEST_SUITE_P(All, ScaledReduce, testing::ValuesIn(cells(true)), name_of);

}  // namespace
}  // namespace hvd::cpu
