#include <gmock/gmock.h>
#include <mpi.h>

#include <string>

#include "all_ranks.h"
#include "time_limit.h"

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  testing::InitGoogleMock(&argc, argv);

  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  auto* all_ranks = new hvd::test::AllRanks;
  if (all_ranks->rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());  // JSON as well
  }
  // Listeners hear the end of a test in reverse order: the ranks' failures are added before the printer prints them.
  listeners.Append(all_ranks);
  listeners.Append(new hvd::test::TimeLimit("rank " + std::to_string(all_ranks->rank()) + ": "));

  const int exit_code = all_ranks->combine(RUN_ALL_TESTS());
  delete listeners.Release(all_ranks);  // its communicator must go before MPI does
  MPI_Finalize();
  return exit_code;
}
