// A main for targets without libFuzzer: gives the target every file of a folder, so that the corpus is a regression
// test with any compiler.
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "target.h"

namespace {

// Memory of a claimed size is an error here, too. The sanitizers reserve far more; for one of them ASAN_OPTIONS has a
// limit.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{.rlim_cur = rlim_t{512} << 20, .rlim_max = rlim_t{512} << 20};
  hvd::fuzz::require(setrlimit(RLIMIT_DATA, &limit) == 0, "the memory can be limited");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::ranges::sort(files);
  hvd::fuzz::require(!files.empty(), "the corpus is not empty");
  limit_memory();
  for (const auto& file : files) {
    std::printf("%s\n", file.filename().c_str());
    std::fflush(stdout);  // so that the last line names the file of a crash
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
}
