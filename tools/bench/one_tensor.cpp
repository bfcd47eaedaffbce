#include "one_tensor.h"

#include <fmt/format.h>

#include <hvd/hvd.h>
#include <algorithm>
#include <array>

namespace hvd::bench {

namespace {

Shape one_dimension(std::size_t elements) { return Shape{static_cast<std::int64_t>(elements)}; }

}  // namespace

OneTensor::OneTensor(const World& world, std::string name, DataType dtype, std::size_t elements)
    : name_(std::move(name)),
      dtype_(dtype),
      elements_(elements),
      pattern_(dtype, world.size(), world.rank()),
      input_(bytes()),
      output_(bytes()) {}

Contender OneTensor::hvd_packed() {
  return out_of_place("hvd", "packed", [this, name = name_ + ".packed"] {
    allreduce(ConstTensorView(input_.data(), one_dimension(elements_), dtype_),
              TensorView(output_.data(), one_dimension(elements_), dtype_), {.name = name, .op = ReduceOp::sum});
  });
}

Contender OneTensor::hvd_in_place() {
  return in_place("hvd", "in-place", [this, name = name_ + ".in-place"] {
    allreduce(TensorView(output_.data(), one_dimension(elements_), dtype_), {.name = name, .op = ReduceOp::sum});
  });
}

Contender OneTensor::hvd_arena(const Arena& arena) {
  std::byte* memory = arena.memory().data();
  return in_memory(memory, "hvd", "arena", [this, memory, name = name_ + ".arena"] {
    allreduce(TensorView(memory, one_dimension(elements_), dtype_), {.name = name, .op = ReduceOp::sum});
  });
}

Contender OneTensor::hvd_async_wait() {
  return in_place("hvd", "async-wait", [this, name = name_ + ".async-wait"] {
    allreduce_async(TensorView(output_.data(), one_dimension(elements_), dtype_), {.name = name, .op = ReduceOp::sum})
        .wait();
  });
}

Contender OneTensor::hvd_async_busy() {
  return in_place("hvd", "async-busy", [this, name = name_ + ".async-busy"] {
    const Handle handle = allreduce_async(TensorView(output_.data(), one_dimension(elements_), dtype_),
                                          {.name = name, .op = ReduceOp::sum});
    while (!handle.ready()) {
    }
  });
}

Contender OneTensor::mpi() {
  return out_of_place("mpi", "two-buffers", [this, sum = mpi_sum(dtype_)] {
    MPI_Allreduce(input_.data(), output_.data(), static_cast<int>(elements_), sum.type, sum.op, MPI_COMM_WORLD);
  });
}

Contender OneTensor::mpi_in_place() {
  return in_place("mpi", "in-place", [this, sum = mpi_sum(dtype_)] {
    MPI_Allreduce(MPI_IN_PLACE, output_.data(), static_cast<int>(elements_), sum.type, sum.op, MPI_COMM_WORLD);
  });
}

Contender OneTensor::limit_packed(limit::PackedLimit& limit) {
  return out_of_place("limit", "packed", [this, &limit] {
    const std::array segments{limit::Segment{input_.floats(), output_.floats(), elements_}};
    limit.allreduce(segments);
  });
}

Contender OneTensor::limit_arena(limit::ArenaLimit& limit) {
  return in_memory(limit.values(), "limit", "arena", [this, &limit] { limit.allreduce(elements_); });
}

Contender OneTensor::out_of_place(std::string peer, std::string variant, std::function<void()> run) {
  Contender contender{std::move(peer), std::move(variant), {}, std::move(run), {}};
  contender.prepare = [this](unsigned repeat) { pattern_.fill(input_.data(), 0, elements_, repeat); };
  contender.check = [this, contender](unsigned repeat, bool all) { check(contender, output_.data(), repeat, all); };
  return contender;
}

Contender OneTensor::in_place(std::string peer, std::string variant, std::function<void()> run) {
  return in_memory(output_.data(), std::move(peer), std::move(variant), std::move(run));
}

Contender OneTensor::in_memory(void* memory, std::string peer, std::string variant, std::function<void()> run) {
  Contender contender{std::move(peer), std::move(variant), {}, std::move(run), {}};
  contender.prepare = [this, memory](unsigned repeat) { pattern_.fill(memory, 0, elements_, repeat); };
  contender.check = [this, contender, memory](unsigned repeat, bool all) { check(contender, memory, repeat, all); };
  return contender;
}

void OneTensor::check(const Contender& contender, const void* result, unsigned repeat, bool all) const {
  constexpr std::size_t some = 64;
  const auto part = [&](std::size_t begin, std::size_t count) {
    pattern_.check_sum(contender.variant, static_cast<const std::byte*>(result) + begin * size_of(dtype_), begin, count,
                       repeat);
  };
  if (all || elements_ <= 3 * some) return part(0, elements_);
  part(0, some);
  part(elements_ / 2, some);
  part(elements_ - some, some);
}

}  // namespace hvd::bench
