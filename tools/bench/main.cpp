#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>

#include "allreduce.h"
#include "idle.h"
#include "latency.h"
#include "others.h"
#include "session.h"
#include "sizes.h"
#include "step.h"
#include "submit.h"

// Benchmarks of hvd beside its peers, in one run: mpirun -np 2 hvd-bench latency

namespace hvd::bench {

namespace {

struct Options {
  std::string json;
  std::string peers = "hvd,mpi,limit";
  bool only_mpi = false;
  bool quick = false;
  LatencyOptions latency;
  std::string sizes;
  std::string min = "4";
  std::string max = "256M";
  std::string dtypes = "f32";
  std::string profile = "resnet50";
  std::string profiles = HVD_BENCH_PROFILES;
  std::string step_dtype = "f32";
  StepOptions step;
  int submit_tensors = 161;
  std::optional<double> idle_seconds;
  std::string others_sizes = "4K,1M,16M";
};

std::vector<std::size_t> sizes_of(const Options& options) {
  if (!options.sizes.empty()) return parse_sizes(options.sizes);
  if (options.quick) return parse_sizes("4,4K,64K,1M,16M,64M");
  return size_range(parse_size(options.min), parse_size(options.max), 4);
}

std::vector<DataType> dtypes_of(const std::string& text) {
  std::vector<DataType> dtypes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    dtypes.push_back(parse_dtype(std::string_view(text).substr(at, comma - at)));
    at = comma + 1;
  }
  return dtypes;
}

// A sub-command checks the user's words before anything starts, and returns what to do then.
using Work = std::function<void(Session&)>;

Work latency_work(const Options& options) {
  return [&](Session& session) { run_latency(session, options.latency); };
}

Work allreduce_work(const Options& options) {
  return [sizes = sizes_of(options), dtypes = dtypes_of(options.dtypes)](Session& session) {
    run_allreduce(session, sizes, dtypes);
  };
}

Work step_work(Options& options) {
  options.step.dtype = parse_dtype(options.step_dtype);
  return [&, profile = load_profile(options.profile, options.profiles)](Session& session) {
    run_step(session, profile, options.step);
  };
}

Work submit_work(const Options& options) {
  return [&](Session& session) { run_submit(session, options.submit_tensors); };
}

Work idle_work(const Options& options) {
  constexpr double whole = 5.0;
  constexpr double quick = 1.0;
  return [seconds = options.idle_seconds.value_or(options.quick ? quick : whole)](Session& session) {
    run_idle(session, seconds);
  };
}

Work others_work(const Options& options) {
  return [sizes = parse_sizes(options.others_sizes)](Session& session) { run_others(session, sizes); };
}

class Program {
 public:
  Program() {
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    app_.footer("Without a sub-command: all of them.");
    app_.add_option("--json", options_.json, "file for the records")->type_name("FILE");
    app_.add_option("--peer", options_.peers, "who is measured: hvd, mpi, limit (hand-written, one host)")
        ->type_name("NAME,...")
        ->capture_default_str();
    app_.add_flag("--only-mpi", options_.only_mpi, "the same as --peer mpi");
    app_.add_flag("--quick", options_.quick, "fewer sizes and rounds");
    add_latency();
    add_allreduce();
    add_step();
    add_the_rest();
  }

  CLI::App& app() { return app_; }

  std::vector<Work> work() {
    std::vector<Work> chosen;
    const bool all = app_.get_subcommands().empty();
    for (const auto& [command, make] : commands_) {
      if (all || command->parsed()) chosen.push_back(make());
    }
    return chosen;
  }

  Peers peers() const { return options_.only_mpi ? Peers{false, true, false} : parse_peers(options_.peers); }
  const Options& options() const { return options_; }

 private:
  CLI::App* add(const char* name, const char* text, std::function<Work()> make) {
    CLI::App* command = app_.add_subcommand(name, text);
    commands_.emplace_back(command, std::move(make));
    return command;
  }

  void add_latency() {
    CLI::App* command = add("latency", "time from submission to result of one small allreduce",
                            [this] { return latency_work(options_); });
    LatencyOptions& latency = options_.latency;
    command->add_option("--elements", latency.elements, "float32 elements")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    command->add_option("--repeats", latency.repeats, "operations per round")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    command->add_option("--rounds", latency.rounds, "interleaved rounds")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
  }

  void add_allreduce() {
    CLI::App* command = add("allreduce", "one tensor, by size and dtype", [this] { return allreduce_work(options_); });
    command->add_option("--min", options_.min, "smallest size")->type_name("SIZE")->capture_default_str();
    command->add_option("--max", options_.max, "greatest size; each is 4 times the one before")
        ->type_name("SIZE")
        ->capture_default_str();
    command->add_option("--sizes", options_.sizes, "these sizes instead")->type_name("SIZE,...");
    command->add_option("--dtype", options_.dtypes, "f32, f16, bf16, f64, i8, u8, i32, i64")
        ->type_name("DTYPE,...")
        ->capture_default_str();
  }

  void add_step() {
    CLI::App* command = add("step", "the gradients of one training step", [this] { return step_work(options_); });
    command->add_option("--profile", options_.profile, "name in tools/profiles, or a JSON file")->capture_default_str();
    command->add_option("--dtype", options_.step_dtype, "f32, f16, bf16, ...")->capture_default_str();
    command->add_option("--compute-ms", options_.step.compute_ms, "time of the backward pass that makes the gradients")
        ->check(CLI::Range(0.0, 60000.0))
        ->capture_default_str();
    command->add_option("--rounds", options_.step.rounds, "interleaved rounds")->check(CLI::Range(1, 1000));
  }

  void add_the_rest() {
    add("submit", "cost to the caller of submitting a known name", [this] { return submit_work(options_); })
        ->add_option("--tensors", options_.submit_tensors, "submitted in a row")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    add("idle", "messages and CPU time while nothing is to do", [this] { return idle_work(options_); })
        ->add_option("--seconds", options_.idle_seconds, "how long (default 5, with --quick 1)")
        ->check(CLI::Range(0.1, 3600.0));
    add("others", "allgather, broadcast, alltoall and reduce-scatter", [this] { return others_work(options_); })
        ->add_option("--sizes", options_.others_sizes, "bytes on each rank")
        ->type_name("SIZE,...")
        ->capture_default_str();
  }

  Options options_;
  CLI::App app_{"Measures hvd and its peers in one run; start it with mpirun.", "hvd-bench"};
  std::vector<std::pair<CLI::App*, std::function<Work()>>> commands_;
};

int usage_error(const World& world, const char* text) {
  if (world.rank() == 0) std::fprintf(stderr, "hvd-bench: %s (see --help)\n", text);
  return 2;
}

int run(const World& world, int argc, char** argv) {
  Program program;
  std::vector<Work> work;
  Peers peers;
  try {
    program.app().parse(argc, argv);
    work = program.work();
    peers = program.peers();
  } catch (const CLI::Success& success) {  // --help
    return world.rank() == 0 ? program.app().exit(success) : 0;
  } catch (const CLI::ParseError& error) {
    return usage_error(world, error.what());
  } catch (const std::invalid_argument& error) {
    return usage_error(world, error.what());
  }
  try {
    Session session(world, peers, program.options().quick);
    for (const Work& part : work) part(session);
    if (!program.options().json.empty()) session.write_json(program.options().json);
  } catch (const std::exception& error) {
    // The other ranks may wait for this one.
    std::fprintf(stderr, "hvd-bench: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}

}  // namespace

}  // namespace hvd::bench

int main(int argc, char** argv) {
  const hvd::bench::World world;
  return hvd::bench::run(world, argc, argv);
}
