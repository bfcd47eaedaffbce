#pragma once

#include <hvd/arena.h>

#include <cstddef>
#include <string>

#include "buffer.h"
#include "pattern.h"
#include "session.h"

namespace hvd::bench {

// One tensor to be summed, and the ways to do it. Private memory: `input` and `output`.
class OneTensor {
 public:
  OneTensor(const World& world, std::string name, DataType dtype, std::size_t elements);

  std::size_t bytes() const { return elements_ * size_of(dtype_); }

  // The contenders refer to this object and to the session's limits.
  Contender hvd_packed();                   // from input to output, blocking
  Contender hvd_in_place();                 // the same on the output alone
  Contender hvd_arena(const Arena& arena);  // in its memory
  Contender hvd_async_wait();
  Contender hvd_async_busy();  // the caller watches the handle and never enters hvd, as one that computes meanwhile
  Contender mpi();
  Contender mpi_in_place();
  // float32 only.
  Contender limit_packed(limit::PackedLimit& limit);
  Contender limit_arena(limit::ArenaLimit& limit);

 private:
  Contender out_of_place(std::string peer, std::string variant, std::function<void()> run);
  Contender in_place(std::string peer, std::string variant, std::function<void()> run);
  Contender in_memory(void* memory, std::string peer, std::string variant, std::function<void()> run);
  // Looks at the whole result, or at its ends and middle.
  void check(const Contender& contender, const void* result, unsigned repeat, bool all) const;

  std::string name_;
  DataType dtype_;
  std::size_t elements_;
  Pattern pattern_;
  Buffer input_;
  Buffer output_;
};

}  // namespace hvd::bench
