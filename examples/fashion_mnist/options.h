#pragma once

#include <filesystem>

struct Options {
  int epochs = 3;
  int batch_size = 64;          // of each rank
  double learning_rate = 0.02;  // of one rank; n ranks take n times that
  std::uint64_t seed = 1;
  std::filesystem::path data_dir = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path checkpoint = "fashion_mnist.pt";  // empty: none
  bool resume = false;
  int max_steps = 0;  // of each epoch; 0: all
  bool no_progress = false;
  int threads = 0;  // of each rank; 0: the rank's share of the cores
};
