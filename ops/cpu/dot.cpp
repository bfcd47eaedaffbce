#include "cpu/dot.h"

#include <cassert>

#include "cpu/kernel_table.h"

namespace hvd::cpu {

double dot(DataType dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  const DotKernel kernel = active_kernels().dot[static_cast<std::size_t>(dtype)];
  assert(kernel != nullptr);
  return kernel(a, b, count);
}

}  // namespace hvd::cpu
