# shellcheck shell=bash
# Starting ranks on this host.

# Waiting ranks give way. Open MPI counts cores its own way (no hardware threads), so --oversubscribe is for any number of
# ranks.
mpirun_args=(--bind-to none --oversubscribe)
[ "$(id -u)" != 0 ] || mpirun_args+=(--allow-run-as-root)
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

# run_ranks N PROGRAM ARGUMENT...
run_ranks() {
  mpirun "${mpirun_args[@]}" -np "$@" </dev/null
}
