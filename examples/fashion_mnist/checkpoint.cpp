#include "checkpoint.h"

#include <fcntl.h>
#include <torch/serialize/archive.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <system_error>

namespace {

void flush_to_disk(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "open");
  const int failed = fsync(descriptor);
  const int cause = errno;
  close(descriptor);
  if (failed != 0) throw std::system_error(cause, std::generic_category(), "fsync");
}

[[noreturn]] void fail(const char* what, const std::filesystem::path& path, const std::exception& cause) {
  throw std::runtime_error(std::string(what) + " " + path.string() + ": " + cause.what());
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Net& net, const torch::optim::Optimizer& optimizer,
                     int epochs) {
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  try {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive net_archive(archive.compilation_unit());
    torch::serialize::OutputArchive optimizer_archive(archive.compilation_unit());
    net->save(net_archive);
    optimizer.save(optimizer_archive);
    archive.write("net", net_archive);
    archive.write("optimizer", optimizer_archive);
    archive.write("epochs", c10::IValue(static_cast<std::int64_t>(epochs)));
    archive.save_to(unfinished.string());
    flush_to_disk(unfinished);
    std::filesystem::rename(unfinished, path);
    flush_to_disk(path.has_parent_path() ? path.parent_path() : ".");  // the new name, too
  } catch (const std::exception& error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    fail("cannot write the checkpoint", path, error);
  }
}

int load_checkpoint(const std::filesystem::path& path, Net& net, torch::optim::Optimizer& optimizer) {
  if (!std::filesystem::exists(path)) throw std::runtime_error("no checkpoint to resume from at " + path.string());
  try {
    torch::serialize::InputArchive archive;
    torch::serialize::InputArchive net_archive;
    torch::serialize::InputArchive optimizer_archive;
    c10::IValue epochs;
    archive.load_from(path.string());
    archive.read("net", net_archive);
    archive.read("optimizer", optimizer_archive);
    archive.read("epochs", epochs);
    net->load(net_archive);
    optimizer.load(optimizer_archive);
    return static_cast<int>(epochs.toInt());
  } catch (const std::exception& error) {
    fail("cannot read the checkpoint", path, error);
  }
}
