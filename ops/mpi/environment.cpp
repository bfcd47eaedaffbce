#include "mpi/environment.h"

#include <fmt/format.h>
#include <mpi.h>

#include <hvd/error.h>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "types/fork.h"

namespace hvd::mpi {

namespace {

int forks_at_init = 0;

void finalize_at_exit() {
  if (fork_count() == forks_at_init && !finalized()) MPI_Finalize();
}

// MPI deletes the attributes of MPI_COMM_SELF first of all when it is finalised (MPI 3.1, section 8.7.1).
int call_leave(MPI_Comm /*self*/, int /*key*/, void* leave, void* /*state*/) {
  reinterpret_cast<void (*)()>(leave)();
  return MPI_SUCCESS;
}

const char* name_of_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    default:
      return "MPI_THREAD_SERIALIZED";
  }
}

}  // namespace

void ensure_initialized() {
  if (finalized()) throw InvalidArgumentError("init: MPI has been finalised and cannot be used again");
  int initialized = 0;
  MPI_Initialized(&initialized);
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    MPI_Query_thread(&level);
  } else {
    // MULTIPLE, so that the program may use MPI beside hvd; hvd itself needs SERIALIZED.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    forks_at_init = fork_count();
    std::atexit(finalize_at_exit);
    std::at_quick_exit(finalize_at_exit);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw InvalidArgumentError(fmt::format(
        "init: MPI was initialised with {}, hvd's coordinator thread needs MPI_THREAD_SERIALIZED: call "
        "MPI_Init_thread(..., MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, ...), or call hvd::init() first and let "
        "it initialise MPI",
        name_of_level(level)));
  }
}

void before_finalize(void (*leave)()) {
  static const bool once = [leave] {
    int key = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_leave, &key, nullptr), "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, reinterpret_cast<void*>(leave)), "MPI_Comm_set_attr");
    return true;
  }();
  static_cast<void>(once);
}

bool finalized() {
  int done = 0;
  MPI_Finalized(&done);
  return done != 0;
}

bool launched() {
  // Open MPI and PMIx, MPICH's hydra and Intel MPI, Slurm's PMI, in this order.
  constexpr std::array variables{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD",
                                 "MPI_LOCALNRANKS"};
  return std::ranges::any_of(variables, [](const char* name) { return std::getenv(name) != nullptr; });
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw InternalError(fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

}  // namespace hvd::mpi
