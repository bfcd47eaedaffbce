// A program that has initialised MPI itself, with the thread level named by its argument, before it calls hvd::init().

#include <hvd/error.h>
#include <hvd/hvd.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  ++failures;
}

void use_hvd() {
  hvd::init();
  std::vector<float> values(3, 1.0F);
  hvd::allreduce(values, {.op = hvd::ReduceOp::sum});
  expect(values == std::vector<float>(3, static_cast<float>(hvd::size())), "the sum is right");
  hvd::shutdown();
}

void expect_refusal(const std::string& level) {
  try {
    hvd::init();
    expect(false, "init() refuses " + level);
  } catch (const hvd::InvalidArgumentError& error) {
    const std::string text = error.what();
    expect(text.find(level) != std::string::npos, "the error names the level: " + text);
    expect(text.find("MPI_THREAD_SERIALIZED") != std::string::npos, "the error names the remedy: " + text);
  }
  expect(!hvd::is_initialized(), "a refused init() leaves hvd uninitialised");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int> levels{{"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
                                          {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
                                          {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
                                          {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}};
  if (argc != 2 || !levels.contains(argv[1])) {
    std::fprintf(stderr, "usage: thread_level MPI_THREAD_...\n");
    return EXIT_FAILURE;
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, levels.at(argv[1]), &provided);
  for (int round = 0; round < 2; ++round) {
    if (provided >= MPI_THREAD_SERIALIZED) {
      use_hvd();
    } else {
      expect_refusal(argv[1]);
    }
    int sum = 1;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == size, "the program's own MPI works");
  }
  MPI_Finalize();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
