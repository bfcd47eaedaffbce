#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/requests.h"

namespace hvd::detail {

// Collects what is common to all operations and words their errors.
class RequestBuilder {
 public:
  RequestBuilder(const CallContext& context, Operation kind, std::string_view name, ProcessSet set, Timeout timeout);

  Request& request() { return operation_->request; }
  const Request& request() const { return operation_->request; }
  PendingOperation& operation() { return *operation_; }
  // Of the set, to which this rank belongs.
  std::size_t rank_count() const;

  // One for each tensor, in order. `output` may be the memory of `input`, or be apart from it.
  void add(const ConstTensorView& input);
  void add(const ConstTensorView& input, const TensorView& output);
  void reduction(ReduceOp op, double prescale, double postscale);
  void root(int rank);
  void pair(int sender, int receiver);
  void need_rows() const;  // every tensor has a dimension 0

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }

  OperationPtr build();

 private:
  void check_rank(const char* what, int rank) const;
  [[noreturn]] void fail_with(const std::string& what) const;
  void check(const ConstTensorView& view, const char* what) const;

  const CallContext& context_;
  OperationPtr operation_;
  std::vector<int> ranks_;  // of a set that is not the world
};

}  // namespace hvd::detail
