// Throughput of the reduction kernels by instruction set, dtype and number of sources, one thread.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cpu/reduce.h"

namespace {

using hvd::DataType;

void reduce(benchmark::State& state, hvd::cpu::Isa isa, DataType dtype) {
  hvd::cpu::use_isa(isa);
  const auto sources = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<std::vector<std::byte>> memory(sources, std::vector<std::byte>(bytes));
  std::vector<std::byte> result(bytes);
  std::vector<const std::byte*> pointers;
  for (const auto& block : memory) pointers.push_back(block.data());
  for (auto _ : state) {
    hvd::cpu::reduce({.dtype = dtype}, pointers, result.data(), bytes / size_of(dtype));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1));
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto isa : hvd::cpu::available_isas()) {
    for (const auto dtype : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::i32}) {
      const std::string name = std::string("sum/") + std::string(to_string(isa)) + "/" + std::string(to_string(dtype));
      benchmark::RegisterBenchmark(name.c_str(), reduce, isa, dtype)
          ->ArgNames({"sources", "bytes"})
          ->ArgsProduct({{2, 4, 8}, {4 << 10, 256 << 10}});
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
