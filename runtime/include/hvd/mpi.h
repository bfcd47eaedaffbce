#pragma once

// The deprecated C++ bindings would ask for one more library.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <memory>

#include <hvd/config.h>
#include <hvd/runtime.h>

namespace hvd {

// As init(), over the ranks of `communicator`, which hvd duplicates and leaves alone. MPI must have been initialised
// with MPI_THREAD_SERIALIZED or more: hvd's coordinator thread makes MPI calls. With SERIALIZED the program makes none
// of its own from init() to shutdown(), and has one runtime. Throws InvalidArgumentError otherwise.
HVD_API void init(MPI_Comm communicator, const Config& config = Config::from_environment());

// A further runtime over the ranks of `communicator`; collective. It must be gone before MPI is finalised.
HVD_API std::unique_ptr<Runtime> make_runtime(MPI_Comm communicator, const Config& config = Config::from_environment());

}  // namespace hvd
