#include "dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

// The sets have 47 million bytes; more is no idx file of theirs, and nothing is allocated for it.
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) fail("cannot be opened");
    gzbuffer(file_.get(), 1U << 17U);
  }

  // The sizes of the `dimensions` dimensions, from the header.
  std::vector<std::int64_t> read_sizes(std::uint8_t dimensions) {
    constexpr std::uint8_t type_uint8 = 8;
    const auto magic = read_bytes(4);
    if (magic[0] != 0 || magic[1] != 0) fail("is not an idx file");
    if (magic[2] != type_uint8 || magic[3] != dimensions) {
      fail("is not an idx file of bytes with " + std::to_string(dimensions) +
           (dimensions == 1 ? " dimension" : " dimensions"));
    }
    std::vector<std::int64_t> sizes;
    std::int64_t total = 1;
    for (int k = 0; k < dimensions; ++k) {
      std::int64_t size = 0;  // big-endian
      for (const std::uint8_t byte : read_bytes(4)) size = size << 8 | byte;
      sizes.push_back(size);
      if (size == 0) fail("has no data");
      if (size > most_bytes / total) fail("is larger than 1 GiB by its header");
      total *= size;
    }
    return sizes;
  }

  std::vector<std::uint8_t> read_bytes(std::int64_t count) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
    const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(count));
    if (got < 0) fail(std::string("is damaged: ") + error_text());
    if (got != count) fail("ends early");
    return bytes;
  }

  void expect_end() {
    std::array<std::uint8_t, 1> byte{};
    const int got = gzread(file_.get(), byte.data(), 1);
    if (got < 0) fail(std::string("is damaged: ") + error_text());
    if (got != 0) fail("goes on after its last element");
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  const char* error_text() {
    int code = 0;
    return gzerror(file_.get(), &code);
  }
  [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(path_.string() + " " + what); }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace

Dataset read_dataset(const std::filesystem::path& images, const std::filesystem::path& labels) {
  Dataset data;
  IdxFile image_file(images);
  const auto sizes = image_file.read_sizes(3);
  data.count = sizes[0];
  data.rows = sizes[1];
  data.columns = sizes[2];
  data.pixels = image_file.read_bytes(data.count * data.rows * data.columns);
  image_file.expect_end();

  IdxFile label_file(labels);
  if (label_file.read_sizes(1)[0] != data.count) {
    throw std::runtime_error(labels.string() + " does not have one label for each image of " + images.string());
  }
  data.labels = label_file.read_bytes(data.count);
  label_file.expect_end();
  if (*std::max_element(data.labels.begin(), data.labels.end()) >= Dataset::classes) {
    throw std::runtime_error(labels.string() + " has a label above " + std::to_string(Dataset::classes - 1));
  }
  return data;
}
