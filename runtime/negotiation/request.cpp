#include "negotiation/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace hvd {

std::string describe_agreed(const Request& r) {
  if (!r.rows_may_differ() || r.shape.rank() == 0) return describe(r.dtype, r.shape);
  std::string text = fmt::format("{}[?", to_string(r.dtype));
  for (const std::int64_t dim : r.shape.dims().subspan(1)) text += fmt::format(", {}", dim);
  return text + "]";
}

namespace {

// FNV-1a over 64-bit words with a final avalanche (splitmix64): small, the same everywhere, and enough against
// accidents.
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ ^= word;
    state_ *= 0x100000001b3ULL;
    state_ ^= state_ >> 29U;
  }
  std::uint64_t value() const {
    std::uint64_t x = state_;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    x ^= x >> 31U;
    return x == 0 ? 1 : x;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

template <typename Enum>
std::uint64_t word(Enum value) {
  return static_cast<std::uint64_t>(value);
}

bool reduces(const Request& r) { return r.operation == Operation::allreduce; }

bool shapes_agree(const Request& a, const Request& b) {
  if (!a.rows_may_differ()) return a.shape == b.shape;
  return a.shape.rank() == b.shape.rank() &&
         std::ranges::equal(a.shape.dims().subspan(std::min<std::size_t>(1, a.shape.rank())),
                            b.shape.dims().subspan(std::min<std::size_t>(1, b.shape.rank())));
}

struct Rule {
  Difference difference;
  bool (*agree)(const Request& a, const Request& b);
};

const std::array<Rule, 8> rules{{
    {{"operations differ", [](const Request& r) { return std::string(to_string(r.operation)); }},
     [](const Request& a, const Request& b) { return a.operation == b.operation; }},
    {{"device differs", [](const Request& r) { return std::string(r.device == Device::Kind::cpu ? "cpu" : "gpu"); }},
     [](const Request& a, const Request& b) { return a.device == b.device; }},
    {{"dtypes differ", describe_agreed}, [](const Request& a, const Request& b) { return a.dtype == b.dtype; }},
    {{"shapes differ", describe_agreed}, shapes_agree},
    {{"reduce op differs", [](const Request& r) { return std::string(to_string(r.reduce_op)); }},
     [](const Request& a, const Request& b) { return !reduces(a) || a.reduce_op == b.reduce_op; }},
    {{"prescale differs", [](const Request& r) { return fmt::format("{}", r.prescale); }},
     [](const Request& a, const Request& b) { return a.prescale == b.prescale; }},
    {{"postscale differs", [](const Request& r) { return fmt::format("{}", r.postscale); }},
     [](const Request& a, const Request& b) { return a.postscale == b.postscale; }},
    {{"root rank differs", [](const Request& r) { return fmt::format("{}", r.root); }},
     [](const Request& a, const Request& b) { return a.operation != Operation::broadcast || a.root == b.root; }},
}};

}  // namespace

std::uint64_t fingerprint(const Request& request) {
  Digest digest;
  digest.add(word(request.operation));
  digest.add(word(request.dtype) | word(request.device) << 8U | word(request.reduce_op) << 16U |
             request.shape.rank() << 24U);
  const auto dims = request.shape.dims();
  for (std::size_t d = request.rows_may_differ() ? 1 : 0; d < dims.size(); ++d) digest.add(word(dims[d]));
  // -0.0 + 0.0 is 0.0: equal scales, equal bits.
  digest.add(std::bit_cast<std::uint64_t>(request.prescale + 0.0));
  digest.add(std::bit_cast<std::uint64_t>(request.postscale + 0.0));
  digest.add(word(request.root));
  return digest.value();
}

const Difference* find_difference(const Request& a, const Request& b) {
  const auto broken = std::ranges::find_if(rules, [&](const Rule& rule) { return !rule.agree(a, b); });
  return broken == rules.end() ? nullptr : &broken->difference;
}

}  // namespace hvd
