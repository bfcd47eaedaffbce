#pragma once

#include <gtest/gtest.h>
#include <hvd/config.h>
#include <hvd/runtime.h>

#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "../world.h"
#include "matrix.h"

// The table as tests. A program that includes this says what its worlds are.
namespace hvd::test {

struct MatrixWorld {
  int size;  // 0: as many as there are
  bool several_hosts;
};
inline void PrintTo(const MatrixWorld& world, std::ostream* out) {
  *out << world.size << " ranks" << (world.several_hosts ? " on several hosts" : "");
}

int size_of(const MatrixWorld& world);
// Runs the body on every rank of such a world; what it returns on any of them are failures.
void run_in(const MatrixWorld& world, const Config& config,
            const std::function<std::vector<std::string>(Runtime&)>& body);

inline Config matrix_config(const MatrixWorld& world) {
  Config config;
  config.chunk_bytes = 4096;
  config.process_sets = matrix_sets(size_of(world));
  if (world.several_hosts) config.test_topology = small_hosts(size_of(world));
  return config;
}

class Matrix : public testing::TestWithParam<std::tuple<MatrixWorld, Operation>> {
 public:
  static std::string name_of(const testing::TestParamInfo<std::tuple<MatrixWorld, Operation>>& info) {
    const auto& [world, operation] = info.param;
    std::string name(to_string(operation));
    std::erase(name, '/');
    if (world.size != 0) name += "Of" + std::to_string(world.size);
    return name + (world.several_hosts ? "OnHosts" : "");
  }
};

TEST_P(Matrix, R168_EveryDtypeShapeReduceOpWayAndProcessSetGivesTheReference) {
  const auto& [world, operation] = GetParam();
  run_in(world, matrix_config(world), [op = operation](Runtime& runtime) {
    auto errors = run_matrix(runtime, op, sanitized ? 5 : 1);
    runtime.barrier();  // the first to leave would end it for who still works in a smaller set
    return errors;
  });
}

class Refused : public testing::TestWithParam<MatrixWorld> {};

TEST_P(Refused, R168_WhatADtypeLacksIsAnErrorAtSubmissionThatSaysWhatItHas) {
  run_in(GetParam(), matrix_config(GetParam()), run_refused);
}

}  // namespace hvd::test
