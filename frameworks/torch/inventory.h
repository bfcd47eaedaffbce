#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hvd/tensor.h>

namespace hvd::torch {

// What one rank holds under one name.
struct InventoryEntry {
  std::string name;
  DataType dtype = DataType::f32;
  Shape shape;
  std::string tied_to;  // name of an earlier entry that is the same tensor, or empty
};
using Inventory = std::vector<InventoryEntry>;

// What differs between the ranks' inventories (inventories[r] is rank r's; the order of entries does not matter); empty
// when nothing does. "rank 1 lacks 'a', 'b'; 'fc.weight': shapes differ: [0] float32[4]; [1] float32[5]"
std::string differences(std::span<const Inventory> inventories);

// Compares the inventories of all ranks in one exchange under `operation`. Throws MismatchError, "<operation>:
// <differences>", on all of them. Returns the greatest `number` that a rank gave.
std::uint64_t require_agreement(std::string_view operation, const Inventory& inventory, std::uint64_t number = 0);

}  // namespace hvd::torch
