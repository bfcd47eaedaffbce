#pragma once

#include <cstdint>

namespace hvd::detail {

// Where the program called hvd from, so that unnamed operations, which are paired by their order alone, can be compared
// across ranks. A free function calls the runtime's member: the outermost one counts.
class CallSite {
 public:
  explicit CallSite(const void* address) : is_outermost_(current_ == nullptr) {
    if (is_outermost_) current_ = address;
  }
  ~CallSite() {
    if (is_outermost_) current_ = nullptr;
  }
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  // The outermost call's, or else this one.
  static const void* outermost(const void* address) { return current_ != nullptr ? current_ : address; }

 private:
  static inline thread_local const void* current_ = nullptr;
  bool is_outermost_;
};

// The same for one place of one program on every rank, wherever it is loaded: module and offset. Never 0.
std::uint64_t call_site_digest(const void* address);

}  // namespace hvd::detail
