#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "limit/flag.h"
#include "limit/segments.h"
#include "limit/shared_window.h"

namespace hvd::bench::limit {

// A float32 sum between processes of one host whose inputs and outputs are private: as fast as we know how to write it,
// without names, negotiation or errors. What hvd's own path is measured against.
//
// Small: each rank puts its input beside a counter, and reads everybody's (one round).
// Large: in chunks, through three slots per rank. Of chunk c, rank r owns the r-th share:
//
//   copy in  chunk c+1   input, but for the own share  ->  own stage          (then `staged` says c+1)
//   reduce   chunk c     own input and all stages      ->  output and result  (then `reduced` says c)
//   copy out chunk c-1   the others' results           ->  output
//
// A stage slot is written again three chunks later, when all have reduced it: copy out of the chunk after it has waited
// for that. A result slot is written again when all have staged a later chunk, which they do after they have copied
// out.
class PackedLimit {
 public:
  // Collective; throws as SharedWindow does.
  explicit PackedLimit(MPI_Comm communicator);

  // Collective; the total count agrees on all ranks.
  void allreduce(std::span<const Segment> segments);

 private:
  struct Control;  // what a rank's part of the window starts with

  static constexpr std::size_t slots = 3;
  static constexpr std::size_t chunk = (std::size_t{1} << 20) / sizeof(float);
  static constexpr std::size_t one_shot_most = (std::size_t{64} << 10) / sizeof(float);

  Control& control(int rank) const;
  float* shot(int rank, std::uint64_t number) const;
  float* stage(int rank, std::uint64_t number) const;
  float* result(int rank, std::uint64_t number) const;
  void one_shot(const Segment& segment);
  void pipeline(std::span<const Segment> segments, std::size_t count);

  int rank_ = 0;
  int size_ = 1;
  SharedWindow window_;
  std::uint64_t shots_ = 0;   // one-shot exchanges so far
  std::uint64_t chunks_ = 0;  // chunks so far
  std::vector<const float*> sources_;
};

}  // namespace hvd::bench::limit
