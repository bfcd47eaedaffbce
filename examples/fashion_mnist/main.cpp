// Trains a small convolutional net on Fashion-MNIST with any number of ranks:
//   mpirun -np 2 --bind-to none build/examples/fashion_mnist --epochs 3
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <string>

#include <hvd/hvd.h>

#include "training.h"

namespace {

void add_options(CLI::App& app, Options& options) {
  app.option_defaults()->always_capture_default();
  app.add_option("--epochs", options.epochs, "Passes over the training set")->check(CLI::Range(1, 10000));
  app.add_option("--batch-size", options.batch_size, "Images in a step of each rank")->check(CLI::Range(1, 60000));
  app.add_option("--lr", options.learning_rate, "Learning rate of one rank")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Seed of the initial weights and of the order of the images");
  app.add_option("--data-dir", options.data_dir, "Folder of the four gzip-compressed idx files");
  app.add_option("--checkpoint", options.checkpoint, "File to write after each epoch; '' for none");
  app.add_option("--max-steps", options.max_steps, "Steps after which an epoch ends early; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options.threads, "Threads of each rank; 0: its share of the cores")
      ->check(CLI::Range(0, 4096));
  app.option_defaults()->always_capture_default(false);
  app.add_flag("--resume", options.resume, "Go on after the checkpoint's last epoch");
  app.add_flag("--no-progress", options.no_progress, "Print only a line for each epoch");
}

// libtorch adds a stack trace to its errors.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run(int argc, char** argv) {
  CLI::App app{"Trains a small convolutional net on Fashion-MNIST, on all ranks of mpirun"};
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // All ranks were given the same arguments; one of them tells.
    std::ostringstream nowhere;
    const bool tell = hvd::rank() == 0;
    return app.exit(error, tell ? std::cout : nowhere, tell ? std::cerr : nowhere) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  return train(options) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = EXIT_FAILURE;
  try {
    hvd::init();
    exit_code = run(argc, argv);
  } catch (const FailedElsewhere&) {
    // The rank that failed has told.
  } catch (const std::exception& error) {
    std::cerr << "fashion_mnist: " + first_line(error.what()) + '\n';
  }
  hvd::shutdown();
  return exit_code;
}
