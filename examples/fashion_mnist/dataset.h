#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

// Labelled grey images in one piece of memory.
struct Dataset {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [count, rows, columns], row-major
  std::vector<std::uint8_t> labels;  // [count], below `classes`

  static constexpr std::uint8_t classes = 10;
};

// Reads a pair of gzip-compressed idx files (http://yann.lecun.com/exdb/mnist/, "the IDX file format"). Throws
// std::runtime_error that names the file for anything that is not as it should be.
Dataset read_dataset(const std::filesystem::path& images, const std::filesystem::path& labels);
