// A program that ends without hvd::shutdown(), in the way named by its argument; its exit code is 0 all the same.

#include <hvd/hvd.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::vector<float> values(100'000, 1.0F);

// Destroyed after hvd has left: calls are refused, nothing crashes.
struct LateCaller {
  ~LateCaller() {
    try {
      hvd::barrier();
      std::fprintf(stderr, "hvd is still there after the exit handlers\n");
      std::_Exit(EXIT_FAILURE);
    } catch (const hvd::Error&) {
      hvd::shutdown();
    }
  }
};
const LateCaller late_caller;

void work() {
  hvd::allreduce(values, {.name = "x", .op = hvd::ReduceOp::sum});
  if (values[0] != static_cast<float>(hvd::size())) std::_Exit(EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 2 ? argv[1] : "";
  if (how == "own-mpi" || how == "own-mpi-in-flight") {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  }
  hvd::init();
  work();
  if (how == "return") return EXIT_SUCCESS;
  if (how == "exit-in-thread") std::thread([] { std::exit(EXIT_SUCCESS); }).join();
  if (how == "in-flight") {
    static_cast<void>(hvd::allreduce_async(values, {.name = "y"}));
    std::exit(EXIT_SUCCESS);
  }
  if (how == "quick-exit") std::quick_exit(EXIT_SUCCESS);
  if (how == "own-mpi") {
    MPI_Finalize();
    return EXIT_SUCCESS;
  }
  if (how == "own-mpi-in-flight") {
    static_cast<void>(hvd::allreduce_async(values, {.name = "y"}));
    MPI_Finalize();
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr,
               "usage: exit_without_shutdown return|exit-in-thread|in-flight|quick-exit|own-mpi|own-mpi-in-flight\n");
  return EXIT_FAILURE;
}
