#pragma once

#include "engine/pending_operation.h"

namespace hvd::detail {

// A fresh operation, in the memory of one that nobody holds any more, if there is one: what it has allocated for names
// and lists serves again, so that submitting a known name allocates nothing. Any thread.
OperationPtr take_operation();

}  // namespace hvd::detail
