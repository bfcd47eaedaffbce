#include "world.h"

#include <fmt/format.h>

#include <stdexcept>

namespace hvd::bench {

namespace {

template <typename Half>
void add_halves(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  const auto* from = static_cast<const Half*>(in);
  auto* to = static_cast<Half*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = Half(static_cast<float>(to[i]) + static_cast<float>(from[i]));
}

template <typename Half>
MPI_Op half_sum() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(add_halves<Half>, /*commute=*/1, &made);
    return made;
  }();
  return op;
}

}  // namespace

World::World() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);  // hvd's threads and ours
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

World::~World() { MPI_Finalize(); }

void World::barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

void World::average(double* values, std::size_t count) const {
  MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < count; ++i) values[i] /= size_;
}

double World::greatest(double value) const {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

MpiSum mpi_sum(DataType dtype) {
  switch (dtype) {
    case DataType::f32:
      return {MPI_FLOAT, MPI_SUM};
    case DataType::f64:
      return {MPI_DOUBLE, MPI_SUM};
    case DataType::i8:
      return {MPI_INT8_T, MPI_SUM};
    case DataType::u8:
      return {MPI_UINT8_T, MPI_SUM};
    case DataType::i32:
      return {MPI_INT32_T, MPI_SUM};
    case DataType::i64:
      return {MPI_INT64_T, MPI_SUM};
    case DataType::f16:
      return {MPI_UINT16_T, half_sum<float16>()};
    case DataType::bf16:
      return {MPI_UINT16_T, half_sum<bfloat16>()};
    default:
      throw std::invalid_argument(fmt::format("no MPI sum of {}", to_string(dtype)));
  }
}

}  // namespace hvd::bench
