#include <hvd/error.h>

namespace hvd {

void throw_failure(const Failure& failure) {
  switch (failure.code) {
    case ErrorCode::internal:
      throw InternalError(failure.text);
    case ErrorCode::not_initialized:
      throw NotInitializedError(failure.text);
    case ErrorCode::invalid_argument:
      throw InvalidArgumentError(failure.text);
    case ErrorCode::duplicate_name:
      throw DuplicateNameError(failure.text);
    case ErrorCode::mismatch:
      throw MismatchError(failure.text);
    case ErrorCode::stalled:
      throw StallError(failure.text);
    case ErrorCode::rank_lost:
      throw RankLostError(failure.text);
    case ErrorCode::shut_down:
      throw ShutDownError(failure.text);
    case ErrorCode::cancelled:
      throw CancelledError(failure.text);
  }
  throw InternalError("unknown error code: " + failure.text);
}

}  // namespace hvd
