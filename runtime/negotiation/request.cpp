#include "negotiation/request.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "types/digest.h"

namespace hvd {

std::int64_t TensorSpec::row_bytes() const {
  return shape.with_rows(1).elements() * static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t Request::bytes() const {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : tensors) total += tensor.bytes();
  return total;
}

void Request::clear() {
  Request fresh;
  fresh.name.swap(name);
  fresh.tensors.swap(tensors);
  fresh.name.clear();
  fresh.tensors.clear();
  *this = std::move(fresh);
}

std::string key_of(const Request& request) {
  std::string key;
  write_key(request, key);
  return key;
}

void write_key(const Request& r, std::string& key) {
  key.clear();
  const auto out = std::back_inserter(key);
  switch (r.operation) {
    case Operation::send_recv:
      fmt::format_to(out, "{}/{}>{}:", r.process_set, r.root, r.peer);
      break;
    // Names are the user's, these are not: an allreduce named like a list of ranks is something else.
    case Operation::add_process_set:
      key += "+:";
      break;
    case Operation::remove_process_set:
      key += "-:";
      break;
    case Operation::join:
      fmt::format_to(out, "{}|join", r.process_set);
      return;
    default:
      fmt::format_to(out, "{}:", r.process_set);
  }
  key += r.name;
}

std::string describe_agreed(const Request& r) {
  constexpr std::size_t most = 4;
  std::string text = r.tensors.size() > 1 ? fmt::format("{} tensors: ", r.tensors.size()) : "";
  for (std::size_t i = 0; i < std::min(r.tensors.size(), most); ++i) {
    const TensorSpec& tensor = r.tensors[i];
    if (i > 0) text += ", ";
    if (!r.rows_may_differ() || tensor.shape.rank() == 0) {
      text += describe(tensor.dtype, tensor.shape);
      continue;
    }
    text += fmt::format("{}[?", to_string(tensor.dtype));
    for (const std::int64_t dim : tensor.shape.dims().subspan(1)) text += fmt::format(", {}", dim);
    text += "]";
  }
  return r.tensors.size() > most ? text + ", ..." : text;
}

namespace {

template <typename Enum>
std::uint64_t word(Enum value) {
  return static_cast<std::uint64_t>(value);
}

bool reduces(const Request& r) {
  return r.operation == Operation::allreduce || r.operation == Operation::reduce ||
         r.operation == Operation::reduce_scatter;
}

bool all_agree(const Request& a, const Request& b,
               bool (*agree)(const TensorSpec&, const TensorSpec&, bool free_rows)) {
  for (std::size_t i = 0; i < std::min(a.tensors.size(), b.tensors.size()); ++i) {
    if (!agree(a.tensors[i], b.tensors[i], a.rows_may_differ())) return false;
  }
  return true;
}

bool shapes_agree(const TensorSpec& a, const TensorSpec& b, bool free_rows) {
  if (!free_rows) return a.shape == b.shape;
  const std::size_t first = std::min<std::size_t>(1, a.shape.rank());
  return a.shape.rank() == b.shape.rank() &&
         std::ranges::equal(a.shape.dims().subspan(first), b.shape.dims().subspan(first));
}

bool dtypes_agree(const TensorSpec& a, const TensorSpec& b, bool /*free_rows*/) { return a.dtype == b.dtype; }

std::string group_size(const Request& r) {
  return r.tensors.size() == 1 ? "1 tensor" : fmt::format("{} tensors", r.tensors.size());
}

struct Rule {
  Difference difference;
  bool (*agree)(const Request& a, const Request& b);
};

const std::array<Rule, 11> rules{{
    {{"operations differ", [](const Request& r) { return std::string(to_string(r.operation)); }},
     [](const Request& a, const Request& b) { return a.operation == b.operation; }},
    {{"group sizes differ", group_size},
     [](const Request& a, const Request& b) { return a.tensors.size() == b.tensors.size(); }},
    {{"device differs", [](const Request& r) { return std::string(r.device == Device::Kind::cpu ? "cpu" : "gpu"); }},
     [](const Request& a, const Request& b) { return a.device == b.device; }},
    {{"dtypes differ", describe_agreed},
     [](const Request& a, const Request& b) { return all_agree(a, b, dtypes_agree); }},
    {{"shapes differ", describe_agreed},
     [](const Request& a, const Request& b) { return all_agree(a, b, shapes_agree); }},
    {{"reduce op differs", [](const Request& r) { return std::string(to_string(r.reduce_op)); }},
     [](const Request& a, const Request& b) { return !reduces(a) || a.reduce_op == b.reduce_op; }},
    {{"prescale differs", [](const Request& r) { return fmt::format("{}", r.prescale); }},
     [](const Request& a, const Request& b) { return a.prescale == b.prescale; }},
    {{"postscale differs", [](const Request& r) { return fmt::format("{}", r.postscale); }},
     [](const Request& a, const Request& b) { return a.postscale == b.postscale; }},
    {{"root rank differs", [](const Request& r) { return fmt::format("{}", r.root); }},
     [](const Request& a, const Request& b) { return a.root == b.root; }},
    {{"timeout differs", [](const Request& r) { return fmt::format("{} s", r.timeout); }},
     [](const Request& a, const Request& b) { return a.timeout == b.timeout; }},
    {{"call site differs: operations without a name are paired by their order",
      [](const Request& r) { return fmt::format("{:x}", r.call_site); }},
     [](const Request& a, const Request& b) { return a.call_site == b.call_site; }},
}};

}  // namespace

std::uint64_t fingerprint(const Request& request) {
  Digest digest;
  digest.add(word(request.operation));
  digest.add(word(request.device) | word(request.reduce_op) << 8U | std::uint64_t{request.tensors.size()} << 16U);
  for (const TensorSpec& tensor : request.tensors) {
    digest.add(word(tensor.dtype) | tensor.shape.rank() << 8U);
    const auto dims = tensor.shape.dims();
    for (std::size_t d = request.rows_may_differ() ? 1 : 0; d < dims.size(); ++d) digest.add(word(dims[d]));
  }
  // -0.0 + 0.0 is 0.0: equal scales, equal bits.
  digest.add(std::bit_cast<std::uint64_t>(request.prescale + 0.0));
  digest.add(std::bit_cast<std::uint64_t>(request.postscale + 0.0));
  digest.add(word(request.root));
  digest.add(word(request.peer));
  digest.add(std::bit_cast<std::uint64_t>(request.timeout + 0.0));
  digest.add(request.call_site);
  return digest.value();
}

const Difference* find_difference(const Request& a, const Request& b) {
  const auto broken = std::ranges::find_if(rules, [&](const Rule& rule) { return !rule.agree(a, b); });
  return broken == rules.end() ? nullptr : &broken->difference;
}

std::vector<std::int64_t> encode_scatter(std::span<const ScatterLayout> layouts) {
  std::vector<std::int64_t> numbers;
  for (const ScatterLayout& layout : layouts) {
    const auto dims = layout.tensor.shape.dims();
    numbers.push_back(static_cast<std::int64_t>(layout.tensor.dtype));
    numbers.push_back(static_cast<std::int64_t>(dims.size()));
    numbers.insert(numbers.end(), dims.begin(), dims.end());
    numbers.insert(numbers.end(), layout.splits.begin(), layout.splits.end());
  }
  return numbers;
}

std::vector<ScatterLayout> decode_scatter(std::span<const std::int64_t> numbers, std::size_t ranks) {
  std::vector<ScatterLayout> layouts;
  do {
    const bool plausible = numbers.size() >= 2 && numbers[0] >= 0 && numbers[0] < data_type_count && numbers[1] >= 1 &&
                           numbers[1] <= static_cast<std::int64_t>(Shape::max_rank) &&
                           numbers.size() >= 2 + static_cast<std::size_t>(numbers[1]) + ranks;
    if (!plausible) throw InternalError("malformed message: the root of a scatter describes no tensor");
    const auto dims = numbers.subspan(2, static_cast<std::size_t>(numbers[1]));
    const auto splits = numbers.subspan(2 + dims.size(), ranks);
    layouts.push_back({.tensor = {.dtype = static_cast<DataType>(numbers[0]), .shape = Shape(dims)},
                       .splits = {splits.begin(), splits.end()}});
    numbers = numbers.subspan(2 + dims.size() + ranks);
  } while (!numbers.empty());
  return layouts;
}

std::vector<std::int64_t> equal_shares(std::int64_t rows, std::size_t ranks) {
  const auto count = static_cast<std::int64_t>(ranks);
  std::vector<std::int64_t> shares;
  for (std::int64_t rank = 0; rank < count; ++rank) shares.push_back(rows / count + (rank < rows % count ? 1 : 0));
  return shares;
}

}  // namespace hvd
