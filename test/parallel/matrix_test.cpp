#include "../support/steps/matrix_suite.h"

#include <hvd/hvd.h>
#include <mpi.h>

namespace hvd::test {

int size_of(const MatrixWorld& /*world*/) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void run_in(const MatrixWorld& /*world*/, const Config& config,
            const std::function<std::vector<std::string>(Runtime&)>& body) {
  hvd::init(config);
  for (const std::string& error : body(hvd::runtime())) ADD_FAILURE() << error;
  hvd::shutdown();
}

INSTANTIATE_TEST_SUITE_P(OverMpi, Matrix,
                         testing::Combine(testing::Values(MatrixWorld{0, false}, MatrixWorld{0, true}),
                                          testing::ValuesIn(matrix_operations)),
                         Matrix::name_of);
INSTANTIATE_TEST_SUITE_P(OverMpi, Refused, testing::Values(MatrixWorld{0, false}));

}  // namespace hvd::test
