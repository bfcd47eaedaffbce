#include "inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include <hvd/hvd.h>

#include "negotiation/rank_groups.h"

namespace hvd::torch {

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t most_reported = 20;  // a wholly different model is told by its first differences

template <typename T>
void put(Bytes& bytes, T value) {
  std::array<std::uint8_t, sizeof(T)> raw{};
  std::memcpy(raw.data(), &value, sizeof(T));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void put(Bytes& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
}

Bytes serialize(const Inventory& inventory, std::uint64_t number) {
  Bytes bytes;
  put(bytes, number);
  put(bytes, static_cast<std::uint64_t>(inventory.size()));
  for (const InventoryEntry& entry : inventory) {
    put(bytes, entry.name);
    put(bytes, entry.tied_to);
    put(bytes, entry.dtype);
    put(bytes, static_cast<std::uint64_t>(entry.shape.rank()));
    for (const std::int64_t dim : entry.shape.dims()) put(bytes, dim);
  }
  return bytes;
}

// Reads what serialize() wrote, one rank after the other.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::uint64_t read(Inventory& inventory) {
    const auto number = take<std::uint64_t>();
    for (auto count = take<std::uint64_t>(); count > 0; --count) {
      InventoryEntry entry;
      entry.name = take_text();
      entry.tied_to = take_text();
      entry.dtype = take<DataType>();
      std::vector<std::int64_t> dims(std::min<std::uint64_t>(take<std::uint64_t>(), Shape::max_rank));
      for (std::int64_t& dim : dims) dim = take<std::int64_t>();
      entry.shape = Shape(dims);
      inventory.push_back(std::move(entry));
    }
    return number;
  }

 private:
  std::span<const std::uint8_t> take_bytes(std::uint64_t count) {
    if (count > rest_.size()) throw InternalError("the exchange of tensor names ended early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  template <typename T>
  T take() {
    T value{};
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string take_text() {
    const auto bytes = take_bytes(take<std::uint64_t>());
    return {bytes.begin(), bytes.end()};
  }

  std::span<const std::uint8_t> rest_;
};

std::string describe_entry(const InventoryEntry& entry) {
  return describe(entry.dtype, entry.shape) +
         (entry.tied_to.empty() ? "" : fmt::format(" tied to '{}'", entry.tied_to));
}

std::string_view what_differs(const std::vector<const InventoryEntry*>& entries) {
  const auto differ = [&](auto&& get) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto* entry) { return get(*entry) != get(*entries[0]); });
  };
  if (differ([](const InventoryEntry& entry) { return entry.dtype; })) return "dtypes differ";
  if (differ([](const InventoryEntry& entry) { return entry.shape; })) return "shapes differ";
  return differ([](const InventoryEntry& entry) { return entry.tied_to; }) ? "ties differ" : "";
}

}  // namespace

std::string differences(std::span<const Inventory> inventories) {
  std::map<std::string_view, std::vector<const InventoryEntry*>> by_name;  // null where the rank lacks it
  for (std::size_t rank = 0; rank < inventories.size(); ++rank) {
    for (const InventoryEntry& entry : inventories[rank]) {
      auto& entries = by_name.try_emplace(entry.name, inventories.size(), nullptr).first->second;
      entries[rank] = &entry;
    }
  }

  std::map<std::vector<int>, std::vector<std::string>> lacking;  // names by the ranks that lack them
  std::vector<std::string> unlike;
  for (const auto& [name, entries] : by_name) {
    std::vector<int> ranks;
    RankGroups values;
    for (std::size_t rank = 0; rank < entries.size(); ++rank) {
      if (entries[rank] == nullptr) {
        ranks.push_back(static_cast<int>(rank));
      } else {
        values.add(static_cast<int>(rank), describe_entry(*entries[rank]));
      }
    }
    if (!ranks.empty()) {
      lacking[ranks].push_back(fmt::format("'{}'", name));
    } else if (!values.agree()) {
      unlike.push_back(fmt::format("'{}': {}: {}", name, what_differs(entries), values.to_string()));
    }
  }

  std::vector<std::string> parts;
  for (auto& [ranks, names] : lacking) {
    const std::size_t more = names.size() > most_reported ? names.size() - most_reported : 0;
    names.resize(names.size() - more);
    parts.push_back(fmt::format(
        "{} {}{}",
        ranks.size() == 1 ? fmt::format("rank {} lacks", ranks[0]) : fmt::format("ranks {} lack", format_ranks(ranks)),
        fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  for (std::size_t k = 0; k < std::min(unlike.size(), most_reported); ++k) parts.push_back(std::move(unlike[k]));
  if (unlike.size() > most_reported) parts.push_back(fmt::format("and {} more", unlike.size() - most_reported));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::uint64_t require_agreement(std::string_view operation, const Inventory& inventory, std::uint64_t number) {
  const Bytes gathered = allgather(serialize(inventory, number), {.name = fmt::format("{}.inventory", operation)});
  std::vector<Inventory> inventories(static_cast<std::size_t>(size()));
  Reader reader(gathered);
  std::uint64_t greatest = 0;
  for (Inventory& each : inventories) greatest = std::max(greatest, reader.read(each));
  const std::string text = differences(inventories);
  if (!text.empty()) throw MismatchError(fmt::format("{}: {}", operation, text));
  return greatest;
}

}  // namespace hvd::torch
