// Each rank contributes a number, and all get the sum: mpirun -np 4 build/examples/hello
#include <hvd/hvd.h>

#include <iostream>
#include <sstream>
#include <vector>

int main() {
  hvd::init();
  std::vector<int> number{hvd::rank() + 1};
  hvd::allreduce(number, {.name = "number", .op = hvd::ReduceOp::sum});
  std::ostringstream line;  // written at once, so that the ranks' lines stay whole
  line << "rank " << hvd::rank() << " of " << hvd::size() << ": the ranks' numbers add up to " << number[0] << '\n';
  std::cout << line.str() << std::flush;
  hvd::shutdown();
}
