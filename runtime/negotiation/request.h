#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hvd/tensor.h>
#include <hvd/types.h>

namespace hvd {

struct TensorSpec {
  DataType dtype = DataType::f32;
  Shape shape;
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  std::int64_t row_bytes() const;  // of a tensor that has rows
  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
};

// What one rank says about one operation: everything on which the ranks must agree. A group of tensors is one request.
struct Request {
  std::string name;
  std::uint32_t process_set = 0;
  Operation operation = Operation::allreduce;
  boost::container::small_vector<TensorSpec, 1> tensors;  // none where nothing moves, and of scatter
  ReduceOp reduce_op = ReduceOp::sum;
  double prescale = 1.0;
  double postscale = 1.0;
  int root = 0;  // world rank; of send/recv the sender; of remove_process_set the set
  int peer = 0;  // of send/recv the receiver
  Device::Kind device = Device::Kind::cpu;
  double timeout = 0;           // seconds; 0: the configured one
  std::uint64_t call_site = 0;  // of an unnamed operation, where that is checked

  // As new, but for the memory of its lists.
  void clear();

  // The first dimensions of the tensors are each rank's own.
  bool rows_may_differ() const {
    return operation == Operation::allgather || operation == Operation::gather || operation == Operation::alltoall;
  }
  // Which data or whose rows there are is only known once all ranks have said so: numbers of each rank travel besides.
  bool has_extents() const { return rows_may_differ() || operation == Operation::scatter; }
  bool has_root() const {
    return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
           operation == Operation::scatter;
  }
  bool changes_process_sets() const {
    return operation == Operation::add_process_set || operation == Operation::remove_process_set;
  }
  std::int64_t bytes() const;
};

// The identity of an operation, one text for what belongs together: equal on the ranks that take part.
std::string key_of(const Request& request);
void write_key(const Request& request, std::string& key);

// "float32[2, 3]" as the ranks must agree on it: a free first dimension shows as "?".
std::string describe_agreed(const Request& request);

// 64-bit digest of everything that must agree but the key. Equal requests have equal digests on every rank and in every
// process; never 0.
std::uint64_t fingerprint(const Request& request);

// Why two requests that should agree do not: which of their parts differ, in words.
struct Difference {
  const char* what;                              // "shapes differ"
  std::string (*value)(const Request& request);  // that part of a request, for messages
};
// The first difference in order of what explains most (operation before dtype and shape before scales), or nullptr.
const Difference* find_difference(const Request& a, const Request& b);

// What the root of a scatter says to the others of each tensor, as numbers that travel with the request: dtype, shape,
// rows by rank.
struct ScatterLayout {
  TensorSpec tensor;
  std::vector<std::int64_t> splits;
};
std::vector<std::int64_t> encode_scatter(std::span<const ScatterLayout> layouts);
// Throws InternalError for numbers that encode_scatter() has not made.
std::vector<ScatterLayout> decode_scatter(std::span<const std::int64_t> numbers, std::size_t ranks);

// Rows for each of the ranks: equal shares, the first ones getting one more when there is a remainder.
std::vector<std::int64_t> equal_shares(std::int64_t rows, std::size_t ranks);

}  // namespace hvd
