#include <hvd/arena.h>

#include <fmt/format.h>

#include <hvd/error.h>
#include <hvd/runtime.h>
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

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
  const std::size_t left = memory().size() - used();
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.elements()), size_of(dtype), &bytes) || bytes > left) {
    throw InvalidArgumentError(
        fmt::format("arena: {} does not fit, {} of {} bytes are left", describe(dtype, shape), left, memory().size()));
  }
  if (state_ == nullptr) return {nullptr, shape, dtype};
  std::byte* data = state_->memory.data() + state_->used;
  state_->used += std::min(left, (bytes + alignment - 1) / alignment * alignment);
  return {data, shape, dtype};
}

namespace {

// What every rank says. Whoever has joined says nothing, and an arena needs all.
std::vector<std::int64_t> ask_all(Runtime& runtime, const std::string& name, std::span<const std::int64_t> mine) {
  const Tensor all = runtime.allgather(mine, {.name = name});
  const auto values = all.values<std::int64_t>();
  if (values.size() != mine.size() * static_cast<std::size_t>(runtime.size())) {
    throw InvalidArgumentError(fmt::format("{}: only {} of {} ranks take part: the others have joined", name,
                                           values.size() / mine.size(), runtime.size()));
  }
  return {values.begin(), values.end()};
}

}  // namespace

Arena Runtime::make_arena(std::size_t bytes) {
  engine_->throw_if_forked();
  // The number is agreed on as well: a call that failed on one rank alone must not shift its next ones.
  const std::array<std::int64_t, 2> mine{static_cast<std::int64_t>(bytes), engine_->next_arena()};
  const std::vector<std::int64_t> told = ask_all(*this, "arena: size and number", mine);
  std::vector<std::int64_t> sizes;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < told.size(); at += mine.size()) {
    sizes.push_back(told[at]);
    number = std::max(number, told[at + 1]);
  }
  std::string trouble;
  std::optional<detail::Engine::ArenaMemory> memory;
  try {
    memory = engine_->share_arena(static_cast<std::uint32_t>(number), sizes);
  } catch (const ShutDownError&) {
    throw;
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  const std::int64_t has_it = memory ? 1 : 0;
  const std::vector<std::int64_t> made = ask_all(*this, "arena: memory", {&has_it, 1});
  if (!memory) throw InvalidArgumentError(fmt::format("arena of {} bytes: {}", bytes, trouble));
  const auto lacking = std::ranges::find(made, 0);
  if (lacking != made.end()) {
    throw InvalidArgumentError(
        fmt::format("arena of {} bytes: rank {} has no memory for it", bytes, lacking - made.begin()));
  }
  const std::span<std::byte> part = engine_->add_arena(static_cast<std::uint32_t>(number), std::move(*memory));
  static_cast<void>(ask_all(*this, "arena: known", {&has_it, 1}));  // before anybody refers to it
  return {part.first(bytes), engine_};
}

}  // namespace hvd
