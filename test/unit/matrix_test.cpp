#include "../support/steps/matrix_suite.h"

namespace hvd::test {

int size_of(const MatrixWorld& world) { return world.size; }

void run_in(const MatrixWorld& world, const Config& config,
            const std::function<std::vector<std::string>(Runtime&)>& body) {
  run_world(world.size, config, [&](Runtime& runtime) {
    for (const std::string& error : body(runtime)) ADD_FAILURE() << error;
    runtime.barrier({.name = "all are through"});  // the first to leave ends the runtime on all ranks
  });
}

INSTANTIATE_TEST_SUITE_P(InProcess, Matrix,
                         testing::Combine(testing::Values(MatrixWorld{1, false}, MatrixWorld{2, false},
                                                          MatrixWorld{3, false}, MatrixWorld{4, false},
                                                          MatrixWorld{2, true}, MatrixWorld{4, true}),
                                          testing::ValuesIn(matrix_operations)),
                         Matrix::name_of);
INSTANTIATE_TEST_SUITE_P(InProcess, Refused, testing::Values(MatrixWorld{1, false}, MatrixWorld{3, false}));

}  // namespace hvd::test
