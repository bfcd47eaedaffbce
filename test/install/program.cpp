// A program outside hvd's tree that uses the installed headers and library.
#include <hvd/hvd.h>

#include <cstdio>
#include <vector>

int main() {
  hvd::init();
  std::vector<float> values(1000, 1.0F);
  hvd::allreduce(values, {.name = "values", .op = hvd::ReduceOp::sum});
  const std::vector<int> ranks = hvd::allgather(std::vector<int>{hvd::rank()}, {.name = "ranks"});
  const auto size = static_cast<std::size_t>(hvd::size());
  const bool right = values == std::vector<float>(1000, static_cast<float>(size)) && ranks.size() == size;
  std::printf("rank %d of %d: %s\n", hvd::rank(), hvd::size(), right ? "right" : "wrong");
  hvd::shutdown();
  return right ? 0 : 1;
}
