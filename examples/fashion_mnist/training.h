#pragma once

#include <exception>

#include "options.h"

// Thrown where training ends because another rank failed, which says why.
struct FailedElsewhere : std::exception {
  const char* what() const noexcept override { return "training failed on another rank"; }
};

// Trains and reports on rank 0. False when the ranks' weights are not equal in the end.
bool train(const Options& options);
