#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <hvd/export.h>

namespace hvd {

enum class ErrorCode : std::uint8_t {
  internal,          // an invariant of hvd itself did not hold
  not_initialized,   // called before init() or after shutdown()
  invalid_argument,  // wrong on this rank alone: shape, dtype, root, configuration
  duplicate_name,    // the name is still in flight on this rank
  mismatch,          // ranks submitted unlike requests under one name
  stalled,           // a rank did not come within the bound
  rank_lost,         // a rank's process ended without leaving
  shut_down,         // a rank has left: it called shutdown() or is ending
  cancelled,         // withdrawn by Handle::cancel()
};
constexpr std::uint8_t error_code_count = 9;

// Base of everything hvd throws. The text names operation, tensor, ranks and values:
//   <op> '<name>' [process set S]: <what differs>: [ranks] <value>; [ranks] <value>
class HVD_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

#define HVD_DEFINE_ERROR(Name, enumerator)                                         \
  class HVD_API Name : public Error {                                              \
   public:                                                                         \
    explicit Name(const std::string& text) : Error(ErrorCode::enumerator, text) {} \
  };
HVD_DEFINE_ERROR(InternalError, internal)
HVD_DEFINE_ERROR(NotInitializedError, not_initialized)
HVD_DEFINE_ERROR(InvalidArgumentError, invalid_argument)
HVD_DEFINE_ERROR(DuplicateNameError, duplicate_name)
HVD_DEFINE_ERROR(MismatchError, mismatch)
HVD_DEFINE_ERROR(StallError, stalled)
HVD_DEFINE_ERROR(RankLostError, rank_lost)
HVD_DEFINE_ERROR(ShutDownError, shut_down)
HVD_DEFINE_ERROR(CancelledError, cancelled)
#undef HVD_DEFINE_ERROR

// An error as a value: what crosses threads and ranks before it is thrown where somebody waits.
struct Failure {
  ErrorCode code = ErrorCode::internal;
  std::string text;
};

// Throws the typed child of Error that belongs to the code.
[[noreturn]] HVD_API void throw_failure(const Failure& failure);

}  // namespace hvd
