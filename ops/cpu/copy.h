#pragma once

#include <cstddef>

namespace hvd::cpu {

// As memcpy, around the caches: for memory that is not looked at again before much else has been. Saves reading it
// first, and leaves what the caches hold.
void copy_past_caches(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace hvd::cpu
