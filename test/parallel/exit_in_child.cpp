#include <hvd/hvd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

// Started by mpirun. A child that was forked after init() ends in the way that the argument names; the ranks go on as
// if it had not been there (R118).
namespace {

[[noreturn]] void end_child(const std::string& how) {
  alarm(20);                                   // a hang is a failure
  if (how == "exit") std::exit(EXIT_SUCCESS);  // with exit handlers and static destructors
  if (how == "quick-exit") std::quick_exit(EXIT_SUCCESS);
  if (how == "shutdown") {
    hvd::shutdown();
    std::exit(EXIT_SUCCESS);
  }
  if (how == "exception") {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) std::exit(EXIT_FAILURE);  // what() is expected
    throw std::runtime_error("boom");
  }
  std::exit(EXIT_FAILURE);
}

bool sum_works() {
  std::vector<float> values(5, 1.0F);
  hvd::allreduce(values, {.name = "x", .op = hvd::ReduceOp::sum});
  for (const float value : values) {
    if (value != static_cast<float>(hvd::size())) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "exit";
  hvd::init();
  bool good = sum_works();
  const pid_t child = fork();
  if (child == 0) end_child(how);
  int status = 0;
  waitpid(child, &status, 0);
  const int wanted = how == "exception" ? SIGABRT : 0;
  if (status != wanted) {
    std::fprintf(stderr, "rank %d: the child ended with %d instead of %d\n", hvd::rank(), status, wanted);
    good = false;
  }
  good = sum_works() && good;
  hvd::shutdown();
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
