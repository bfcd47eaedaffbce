#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "transport/transport.h"

namespace hvd {

// Memory that processes of one machine share through a POSIX name, "/hvd-<key>": the first to ask makes it, the last of
// `members` to ask takes the name away again. Null while the first is still making it. Throws InternalError when there
// is no room for it. A maker that gives its memory up before everybody has come takes the name away, too.
std::unique_ptr<SharedMemory> try_share_by_name(const std::string& key, std::size_t bytes, int members);

}  // namespace hvd
