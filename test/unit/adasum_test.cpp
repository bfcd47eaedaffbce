// The coefficients of adaptive summation, and the collective, driven without a runtime.
#include "collectives/adasum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "../support/data_world.h"
#include "collectives/adasum_tree.h"

namespace hvd::test {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The definition, on the vectors themselves.
Vector adasum(std::vector<Vector> level) {
  while (level.size() > 1) {
    std::vector<Vector> above;
    for (std::size_t k = 0; k < level.size(); k += 2) {
      above.push_back(level[k]);
      if (k + 1 == level.size()) continue;
      const Vector& a = level[k];
      const Vector& b = level[k + 1];
      const double of_a = dot(a, a) == 0 ? 1 : 1 - dot(a, b) / (2 * dot(a, a));
      const double of_b = dot(b, b) == 0 ? 1 : 1 - dot(a, b) / (2 * dot(b, b));
      for (std::size_t i = 0; i < a.size(); ++i) above.back()[i] = of_a * a[i] + of_b * b[i];
    }
    level = std::move(above);
  }
  return level[0];
}

Vector coefficients(const std::vector<Vector>& vectors) {
  Vector products(pair_count(vectors.size()));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) products[pair_index(i, j)] = dot(vectors[i], vectors[j]);
  }
  return adasum_coefficients(products, vectors.size());
}

TEST(AdasumCoefficients, AddOrthogonalVectors) {
  for (std::size_t n = 1; n <= 9; ++n) {
    std::vector<Vector> vectors(n, Vector(n));
    for (std::size_t i = 0; i < n; ++i) vectors[i][i] = static_cast<double>(i) + 1;
    EXPECT_EQ(coefficients(vectors), Vector(n, 1.0));
  }
}

TEST(AdasumCoefficients, AverageParallelVectors) {
  for (const std::size_t n : {1U, 2U, 4U, 8U}) {
    EXPECT_EQ(coefficients(std::vector<Vector>(n, {3.0, -4.0})), Vector(n, 1.0 / static_cast<double>(n)));
  }
  // An odd one goes up alone and counts as much as a pair.
  EXPECT_THAT(coefficients(std::vector<Vector>(3, {1.0})), testing::ElementsAre(0.25, 0.25, 0.5));
}

TEST(AdasumCoefficients, LeaveZeroVectorsWithoutEffect) {
  EXPECT_EQ(coefficients({{0.0, 0.0}, {1.0, 2.0}})[1], 1.0);
  EXPECT_EQ(coefficients({{1.0, 2.0}, {0.0, 0.0}})[0], 1.0);
  for (const double c : coefficients({{0.0}, {0.0}, {0.0}})) EXPECT_EQ(c, 1.0);
}

TEST(AdasumCoefficients, GiveWhatTheDefinitionGives) {
  for (std::size_t n = 1; n <= 9; ++n) {
    std::vector<Vector> vectors;
    for (std::size_t i = 0; i < n; ++i) vectors.push_back(values<double>(20, n, static_cast<int>(i)));
    const Vector c = coefficients(vectors);
    const Vector expected = adasum(vectors);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      double got = 0;
      for (std::size_t i = 0; i < n; ++i) got += c[i] * vectors[i][k];
      EXPECT_NEAR(got, expected[k], 1e-12 * std::sqrt(dot(expected, expected)));
    }
  }
}

// ---- the collective

struct Case {
  std::vector<std::size_t> counts = {};
  std::vector<int> contributors = {};
  std::optional<int> root = {};
  double scale = 1.0;
  std::uint64_t seed = 0;
};

// What ranks, and unlike batches, have got for one tensor: all must be the same bits.
class SameEverywhere {
 public:
  bool add(const std::string& tensor, std::vector<std::byte> bits) {
    const std::scoped_lock lock(mutex_);
    return seen_.try_emplace(tensor, bits).first->second == bits;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::byte>> seen_;
};

template <typename T>
double as_double(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return static_cast<float>(value);
  }
}

template <typename T>
double tolerance() {
  return sizeof(T) == 8 ? 1e-12 : sizeof(T) == 4 ? 2e-5 : std::is_same_v<T, float16> ? 2e-3 : 2e-2;
}

template <typename T>
Job adasum_job(DataSet& set, const Case& given, std::shared_ptr<SameEverywhere> same = nullptr) {
  auto state = std::make_shared<std::vector<std::vector<T>>>();
  const Participants participants(set.members.topology, given.contributors, given.root);
  const auto start = [&set, given, state, participants]() -> std::unique_ptr<Collective> {
    FusedInput input;
    FusedOutput output;
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      state->push_back(values<T>(given.counts[t], given.seed, set.rank(), given.counts[t]));
    }
    for (auto& tensor : *state) {  // in place
      if (participants.contributes(set.rank())) input.append(bytes_of(tensor), tensor.size() * sizeof(T));
      if (participants.takes(set.rank())) output.append(bytes_of(tensor), tensor.size() * sizeof(T));
    }
    const cpu::Reduction reduction{.dtype = data_type_of<T>, .prescale = given.scale, .postscale = 2.0};
    return std::make_unique<Adasum>(set.stream, participants, reduction, given.counts, std::move(input),
                                    std::move(output));
  };
  const auto check = [&set, given, state, participants, same] {
    for (std::size_t t = 0; t < given.counts.size(); ++t) {
      const auto mine = values<T>(given.counts[t], given.seed, set.rank(), given.counts[t]);
      const std::vector<T>& got = (*state)[t];
      if (!participants.takes(set.rank())) {
        ASSERT_TRUE(same_bytes(got, mine));
        continue;
      }
      std::vector<Vector> inputs;
      for (const int rank : given.contributors) {
        inputs.emplace_back();
        for (const T value : values<T>(given.counts[t], given.seed, rank, given.counts[t])) {
          inputs.back().push_back(as_double(value) * given.scale);
        }
      }
      const Vector expected = adasum(inputs);
      double largest = 1;
      for (const double value : expected) largest = std::max(largest, std::abs(2 * value));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(as_double(got[i]), 2 * expected[i], tolerance<T>() * largest)
            << "seed " << given.seed << ", tensor " << t << "[" << i << "] on rank " << set.rank();
      }
      const auto bits = std::as_bytes(std::span(got));
      if (same) {
        EXPECT_TRUE(same->add(std::to_string(got.size()), {bits.begin(), bits.end()}))
            << given.counts[t] << " elements";
      }
    }
  };
  return {start, check};
}

class AdasumData : public testing::TestWithParam<std::vector<int>> {};

TEST_P(AdasumData, R48_CombinesEachTensorOfAnyNumberOfContributors) {
  for (const std::size_t chunk_bytes : {std::size_t{128}, std::size_t{1024}}) {
    run_two_sets(GetParam(), chunk_bytes, 29, [](DataSet& set, std::mt19937& random) {
      for (int round = 0; round < data_rounds; ++round) {
        Case given{.seed = random()};
        for (std::size_t left = 1 + below(random, 3); left > 0; --left) given.counts.push_back(some_count(random));
        const int root = round % set.size();
        given.contributors = some_ranks(random, set.size(), root);
        if (below(random, 4) == 0) given.root = root;
        if (below(random, 2) == 0) given.scale = 0.25;
        switch (below(random, 4)) {
          case 0:
            set.jobs.push_back(adasum_job<float16>(set, given));
            break;
          case 1:
            set.jobs.push_back(adasum_job<bfloat16>(set, given));
            break;
          case 2:
            set.jobs.push_back(adasum_job<double>(set, given));
            break;
          default:
            set.jobs.push_back(adasum_job<float>(set, given));
        }
      }
    });
  }
}

TEST_P(AdasumData, GivesTheSameBitsOnAllRanksWhateverIsFused) {
  const auto same = std::make_shared<SameEverywhere>();
  with_data_ranks(GetParam(), [&](Transport& transport, HostBells& bells) {
    DataSet set(transport, bells, all_members(transport.topology()), 512);
    std::vector<int> all = set.members.ranks;
    const std::vector<std::vector<std::size_t>> batches{{1, 77, 1000, 300}, {1000, 1}, {300, 77}, {77}, {1, 300, 1000}};
    for (const auto& counts : batches) {
      set.jobs.push_back(adasum_job<float>(set, {.counts = counts, .contributors = all, .seed = 5}, same));
    }
    run_jobs({&set}, transport.topology(), bells);
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, AdasumData, testing::ValuesIn(data_topologies()),
                         [](const auto& info) { return name_of_hosts(info.param); });

}  // namespace
}  // namespace hvd::test
