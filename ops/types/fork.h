#pragma once

namespace hvd {

// Counts the forks between the program's start and this process: a child sees another number than its parent. An object
// with a thread or with links to other ranks remembers the number it was made under and keeps still under another one.
int fork_count() noexcept;

}  // namespace hvd
