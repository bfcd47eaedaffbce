#pragma once

#include <cstdint>
#include <string>

#include <hvd/observer.h>
#include <hvd/tensor.h>
#include <hvd/types.h>

namespace hvd {

// What one rank says about one operation: everything on which the ranks must agree.
struct Request {
  std::string name;
  std::uint32_t process_set = 0;
  Operation operation = Operation::allreduce;
  DataType dtype = DataType::f32;
  Shape shape;
  ReduceOp reduce_op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  int root = 0;
  Device::Kind device = Device::Kind::cpu;

  // Ranks agree on all of this but, in allgather, on the first dimension.
  bool rows_may_differ() const { return operation == Operation::allgather; }
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
};

// "float32[2, 3]" as the ranks must agree on it: a free first dimension shows as "?".
std::string describe_agreed(const Request& request);

// 64-bit digest of everything that must agree but the name and set, which are the tensor's identity. Equal requests
// have equal digests on every rank and in every process; never 0.
std::uint64_t fingerprint(const Request& request);

// Why two requests that should agree do not: which of their parts differ, in words.
struct Difference {
  const char* what;                              // "shapes differ"
  std::string (*value)(const Request& request);  // that part of a request, for messages
};
// The first difference in order of what explains most (operation before dtype and shape before scales), or nullptr.
const Difference* find_difference(const Request& a, const Request& b);

}  // namespace hvd
