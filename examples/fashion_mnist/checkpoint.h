#pragma once

#include <torch/optim/optimizer.h>

#include <filesystem>

#include "net.h"

// Writes the net, the optimizer's state and the number of epochs trained, all or nothing: a crash leaves the old file
// or the new one. Throws std::runtime_error that names the file.
void save_checkpoint(const std::filesystem::path& path, const Net& net, const torch::optim::Optimizer& optimizer,
                     int epochs);

// Reads what save_checkpoint() wrote and returns the number of epochs. Throws std::runtime_error that names the file.
int load_checkpoint(const std::filesystem::path& path, Net& net, torch::optim::Optimizer& optimizer);
