#include <algorithm>
#include <atomic>
#include <cassert>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu/kernel_table.h"
#include "cpu/reduce.h"

namespace hvd::cpu {

namespace {

#if defined(__x86_64__)
// Not among the names that every compiler's __builtin_cpu_supports knows.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && has_f16c(); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

const KernelTable& table_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return avx512::kernels;
    case Isa::avx2:
      return avx2::kernels;
#endif
    default:
      return generic::kernels;
  }
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{available_isas().back()};
  return isa;
}

}  // namespace

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::generic};
#if defined(__x86_64__)
  if (has_avx2()) {
    isas.push_back(Isa::avx2);
  }
  if (has_avx512()) {
    isas.push_back(Isa::avx512);
  }
#endif
  return isas;
}

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return "generic";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown instruction set";
}

Isa active_isa() { return active().load(std::memory_order_relaxed); }

void use_isa(Isa isa) {
  [[maybe_unused]] const std::vector<Isa> isas = available_isas();
  assert(std::find(isas.begin(), isas.end(), isa) != isas.end());
  active().store(isa, std::memory_order_relaxed);
}

const KernelTable& active_kernels() { return table_of(active_isa()); }

}  // namespace hvd::cpu
