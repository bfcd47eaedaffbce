#include "shm/named_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hvd/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace hvd {

namespace {

[[noreturn]] void fail(const char* call, const std::string& name, int error) {
  throw InternalError(fmt::format("{} of shared memory {}: {}", call, name, std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(value_); }
  int get() const { return value_; }

 private:
  int value_;
};

// Sits on a page of its own before the memory.
struct Header {
  static constexpr std::size_t bytes = 4096;
  std::atomic<int> attached{0};
};

class NamedMemory final : public SharedMemory {
 public:
  NamedMemory(int descriptor, std::string name, std::size_t bytes, int members, bool is_maker)
      : name_(std::move(name)), bytes_(bytes), members_(members), is_maker_(is_maker) {
    void* memory = ::mmap(nullptr, Header::bytes + bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) fail("mmap", name_, errno);
    base_ = static_cast<std::byte*>(memory);
    if (header().attached.fetch_add(1) + 1 == members_) ::shm_unlink(name_.c_str());
  }
  NamedMemory(const NamedMemory&) = delete;
  NamedMemory& operator=(const NamedMemory&) = delete;
  ~NamedMemory() override {
    if (is_maker_ && header().attached.load() < members_) ::shm_unlink(name_.c_str());
    ::munmap(base_, Header::bytes + bytes_);
  }
  std::span<std::byte> bytes() override { return {base_ + Header::bytes, bytes_}; }

 private:
  Header& header() { return *reinterpret_cast<Header*>(base_); }

  std::string name_;
  std::size_t bytes_;
  int members_;
  bool is_maker_;
  std::byte* base_ = nullptr;
};

// Takes the pages now: without room for them a later access would be a SIGBUS. Others see the size once all are there.
void allocate(int descriptor, const std::string& name, std::size_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(Header::bytes + bytes));
  if (error == 0) return;
  ::shm_unlink(name.c_str());
  if (error == ENOSPC) throw InternalError(fmt::format("/dev/shm has no room for {} bytes", bytes));
  fail("posix_fallocate", name, error);
}

}  // namespace

std::unique_ptr<SharedMemory> try_share_by_name(const std::string& key, std::size_t bytes, int members) {
  const std::string name = "/hvd-" + key;
  constexpr mode_t owner_only = 0600;
  const int made = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, owner_only);
  if (made >= 0) {
    const Descriptor descriptor(made);
    allocate(made, name, bytes);
    return std::make_unique<NamedMemory>(made, name, bytes, members, true);
  }
  if (errno != EEXIST) fail("shm_open", name, errno);
  const int opened = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, owner_only);
  if (opened < 0 && errno == ENOENT) return nullptr;  // its maker has found no room
  if (opened < 0) fail("shm_open", name, errno);
  const Descriptor descriptor(opened);
  struct stat status {};
  if (::fstat(opened, &status) != 0) fail("fstat", name, errno);
  if (status.st_size == 0) return nullptr;
  if (static_cast<std::size_t>(status.st_size) != Header::bytes + bytes) {
    throw InternalError(fmt::format("shared memory {} has {} bytes instead of {}", name,
                                    static_cast<std::size_t>(status.st_size) - Header::bytes, bytes));
  }
  return std::make_unique<NamedMemory>(opened, name, bytes, members, false);
}

}  // namespace hvd
