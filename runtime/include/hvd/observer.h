#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include <hvd/types.h>

namespace hvd {

enum class Stage : std::uint8_t {
  submitted,   // the caller handed the tensor over
  negotiated,  // ready on all ranks and placed in a batch
  packed,      // this rank's data lies in the exchange buffers
  reduced,     // this rank's part of the arithmetic or transfer is done
  unpacked,    // the result lies in the output
  done,        // the waiter may go on
  failed,      // ended with an error instead
};

struct TensorEvent {
  Stage stage;
  Operation operation;
  std::string_view name;  // valid during the call only
  std::int64_t bytes;     // of this rank's input
  std::uint64_t batch;    // number of the batch, 0 before negotiation
  std::chrono::steady_clock::time_point time;
  std::string_view error;  // text, for Stage::failed
};

// Sees what happens to every tensor of a runtime; the timeline is one. Called from the submitting thread (submitted)
// and from the thread that drives progress (all else), two threads at once possible; must not block, throw, or call
// hvd.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const TensorEvent& event) = 0;
};

}  // namespace hvd
