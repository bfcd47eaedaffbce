#include <hvd/arena.h>

#include <fmt/format.h>

#include <hvd/error.h>
#include <hvd/runtime.h>
#include <algorithm>

#include "engine/engine.h"

namespace hvd {

struct Arena::State {
  std::span<std::byte> memory;
  std::shared_ptr<detail::Engine> owner;
  std::size_t used = 0;
};

Arena::Arena(std::span<std::byte> memory, std::shared_ptr<detail::Engine> owner)
    : state_(std::make_shared<State>(State{.memory = memory, .owner = std::move(owner)})) {}

std::span<std::byte> Arena::memory() const { return state_ == nullptr ? std::span<std::byte>() : state_->memory; }
std::size_t Arena::used() const { return state_ == nullptr ? 0 : state_->used; }
void Arena::clear() {
  if (state_ != nullptr) state_->used = 0;
}

TensorView Arena::allocate(const Shape& shape, DataType dtype) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  const std::size_t left = memory().size() - used();
  if (bytes > left) {
    throw InvalidArgumentError(fmt::format("arena: {} needs {} bytes, {} of {} are left", describe(dtype, shape), bytes,
                                           left, memory().size()));
  }
  if (state_ == nullptr) return {nullptr, shape, dtype};
  std::byte* data = state_->memory.data() + state_->used;
  state_->used += std::min(left, (bytes + alignment - 1) / alignment * alignment);
  return {data, shape, dtype};
}

Arena Runtime::make_arena(std::size_t bytes) {
  engine_->throw_if_forked();
  const auto number = engine_->next_arena();
  // The parts' sizes, and at last whether all ranks have the memory: none uses it before.
  const auto tell = [&](const char* what, std::int64_t value) {
    const std::string name = fmt::format("arena {}: {}", number, what);
    const Tensor all = allgather(std::span<const std::int64_t>(&value, 1), {.name = name});
    const auto values = all.values<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  const std::vector<std::int64_t> sizes = tell("bytes", static_cast<std::int64_t>(bytes));
  std::string trouble;
  std::span<std::byte> mine;
  try {
    mine = engine_->share_arena(number, sizes);
  } catch (const ShutDownError&) {
    throw;
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::vector<std::int64_t> made = tell("made", trouble.empty() ? 1 : 0);
  if (!trouble.empty()) throw InvalidArgumentError(fmt::format("arena of {} bytes: {}", bytes, trouble));
  const auto lacking = std::ranges::find(made, 0);
  if (lacking != made.end()) {
    throw InvalidArgumentError(
        fmt::format("arena of {} bytes: rank {} has no memory for it", bytes, lacking - made.begin()));
  }
  return {mine.first(bytes), engine_};
}

}  // namespace hvd
