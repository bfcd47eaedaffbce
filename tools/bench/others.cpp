#include "others.h"

#include <hvd/hvd.h>
#include <algorithm>

#include "buffer.h"
#include "pattern.h"

namespace hvd::bench {

namespace {

// One size: `share` float32 elements for each rank on each rank.
class Others {
 public:
  Others(Session& session, std::size_t bytes)
      : session_(session),
        ranks_(static_cast<std::size_t>(session.world().size())),
        share_(std::max<std::size_t>(bytes / sizeof(float) / ranks_, 1)),
        pattern_(DataType::f32, session.world().size(), session.world().rank()),
        input_(share_ * ranks_ * sizeof(float)),
        output_(input_.bytes()) {}

  void run() {
    const int ranks = session_.world().size();
    compare("allgather", allgather_factor(ranks), hvd_allgather(), mpi_allgather());
    compare("broadcast", 1.0, hvd_broadcast(), mpi_broadcast());
    compare("alltoall", allgather_factor(ranks), hvd_alltoall(), mpi_alltoall());
    compare("reduce_scatter", allgather_factor(ranks), hvd_reduce_scatter(), mpi_reduce_scatter());
  }

 private:
  using Check = std::function<void(unsigned repeat, const std::byte* result)>;

  void compare(const char* what, double factor, Contender ours, Contender theirs) {
    std::vector<Contender> contenders;
    if (session_.peers().hvd) contenders.push_back(std::move(ours));
    if (session_.peers().mpi) contenders.push_back(std::move(theirs));
    for (Contender& contender : contenders) contender.variant = what;
    const Record base = session_.record("others", input_.bytes(), DataType::f32);
    session_.measure(base, contenders, rounds_for(input_.bytes(), session_.quick()), factor);
  }

  // All ways read `filled` elements of the input; the result is where `run` has left it.
  Contender contender(const char* peer, std::size_t filled, std::function<void()> run, Check check) {
    return {peer, "", [this, filled](unsigned repeat) { pattern_.fill(input_.data(), 0, filled, repeat); },
            [this, run = std::move(run)] {
              result_ = output_.data();
              run();
            },
            [this, check = std::move(check)](unsigned repeat, bool /*all*/) { check(repeat, result_); }};
  }
  void keep(Tensor tensor) {
    kept_ = std::move(tensor);
    result_ = static_cast<const std::byte*>(kept_.data());
  }

  std::span<const float> input(std::size_t elements) const { return {input_.floats(), elements}; }
  std::size_t all() const { return share_ * ranks_; }
  int mpi_share() const { return static_cast<int>(share_); }

  // Rank after rank, each one's elements from `first` on.
  Check one_from_each(std::size_t first) const {
    return [this, first](unsigned repeat, const std::byte* result) {
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        pattern_.check_values_of(static_cast<int>(rank), "others", result + rank * share_ * sizeof(float), first,
                                 share_, repeat);
      }
    };
  }
  Check root_values() const {
    return [this](unsigned repeat, const std::byte* /*result*/) {
      pattern_.check_values_of(0, "broadcast", input_.data(), 0, all(), repeat);
    };
  }
  Check own_share_of_sum() const {
    return [this](unsigned repeat, const std::byte* result) {
      pattern_.check_sum("reduce_scatter", result, own_first(), share_, repeat);
    };
  }
  std::size_t own_first() const { return share_ * static_cast<std::size_t>(session_.world().rank()); }

  Contender hvd_allgather() {
    return contender(
        "hvd", share_, [this] { keep(allgather(ConstTensorView(input(share_)), {.name = "others.allgather"})); },
        one_from_each(0));
  }
  Contender mpi_allgather() {
    return contender(
        "mpi", share_,
        [this] {
          MPI_Allgather(input_.data(), mpi_share(), MPI_FLOAT, output_.data(), mpi_share(), MPI_FLOAT, MPI_COMM_WORLD);
        },
        one_from_each(0));
  }
  Contender hvd_broadcast() {
    return contender(
        "hvd", all(),
        [this] { broadcast(TensorView(std::span(input_.floats(), all())), {.name = "others.broadcast"}); },
        root_values());
  }
  Contender mpi_broadcast() {
    return contender(
        "mpi", all(), [this] { MPI_Bcast(input_.data(), static_cast<int>(all()), MPI_FLOAT, 0, MPI_COMM_WORLD); },
        root_values());
  }
  Contender hvd_alltoall() {
    return contender(
        "hvd", all(), [this] { keep(alltoall_async(input(all()), {.name = "others.alltoall"}).take_output()); },
        one_from_each(own_first()));
  }
  Contender mpi_alltoall() {
    return contender(
        "mpi", all(),
        [this] {
          MPI_Alltoall(input_.data(), mpi_share(), MPI_FLOAT, output_.data(), mpi_share(), MPI_FLOAT, MPI_COMM_WORLD);
        },
        one_from_each(own_first()));
  }
  Contender hvd_reduce_scatter() {
    return contender(
        "hvd", all(),
        [this] {
          keep(reduce_scatter(ConstTensorView(input(all())), {.name = "others.reduce_scatter", .op = ReduceOp::sum}));
        },
        own_share_of_sum());
  }
  Contender mpi_reduce_scatter() {
    return contender(
        "mpi", all(),
        [this] {
          MPI_Reduce_scatter_block(input_.data(), output_.data(), mpi_share(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        },
        own_share_of_sum());
  }

  Session& session_;
  std::size_t ranks_;
  std::size_t share_;
  Pattern pattern_;
  Buffer input_;
  Buffer output_;
  const std::byte* result_ = nullptr;
  Tensor kept_;  // what hvd has allocated for the last result
};

}  // namespace

void run_others(Session& session, const std::vector<std::size_t>& sizes) {
  for (const std::size_t size : sizes) Others(session, size).run();
}

}  // namespace hvd::bench
