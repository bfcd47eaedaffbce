#pragma once

namespace hvd::mpi {

// Makes sure that MPI is up and may be called from hvd's coordinator thread. Initialises it if the program has not, and
// then also finalises it at exit. Throws InvalidArgumentError, with the remedy, when the program initialised it with a
// lower thread level than MPI_THREAD_SERIALIZED or has finalised it already.
void ensure_initialized();

// Calls `leave` when MPI_Finalize begins, whoever calls it, while MPI still works. Once per process.
void before_finalize(void (*leave)());

// Whether MPI calls may be made no more.
bool finalized();

// Whether a launcher has started this process as a rank. Without one, MPI is not needed.
bool launched();

// Throws InternalError with MPI's own text unless the code says success.
void check(int code, const char* call);

}  // namespace hvd::mpi
