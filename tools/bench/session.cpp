#include "session.h"

#include <fmt/format.h>

#include <hvd/hvd.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sizes.h"

namespace hvd::bench {

Peers parse_peers(std::string_view text) {
  Peers peers{false, false, false};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, comma - at);
    if (name != "hvd" && name != "mpi" && name != "limit") {
      throw std::invalid_argument(fmt::format("--peer: '{}' is none of hvd, mpi and limit", name));
    }
    peers.hvd |= name == "hvd";
    peers.mpi |= name == "mpi";
    peers.limit |= name == "limit";
    at = comma + 1;
  }
  return peers;
}

Session::Session(const World& world, Peers peers, bool quick) : world_(world), peers_(peers), quick_(quick) {
  if (peers_.hvd) hvd::init();
  if (!peers_.limit) return;
  try {
    packed_ = std::make_unique<limit::PackedLimit>(MPI_COMM_WORLD);
  } catch (const std::runtime_error& error) {
    say(fmt::format("the limits are not measured: {}", error.what()));
  }
}

Session::~Session() {
  if (!peers_.hvd) return;
  world_.barrier();  // who leaves first ends hvd on all
  hvd::shutdown();
}

limit::ArenaLimit* Session::arena_limit(std::size_t elements) {
  if (packed_ == nullptr) return nullptr;
  if (arena_elements_ < elements) {
    arena_.reset();
    arena_elements_ = elements;
    try {
      arena_ = std::make_unique<limit::ArenaLimit>(MPI_COMM_WORLD, elements);
    } catch (const std::runtime_error& error) {
      say(fmt::format("the arena limit of {} is not measured: {}", format_bytes(elements * sizeof(float)),
                      error.what()));
    }
  }
  return arena_.get();
}

Record Session::record(std::string bench, std::size_t bytes, DataType dtype) const {
  Record record;
  record.bench = std::move(bench);
  record.ranks = world_.size();
  record.bytes = bytes;
  record.dtype = short_name(dtype);
  return record;
}

void Session::measure(const Record& base, const std::vector<Contender>& contenders, const Rounds& rounds,
                      double bus_factor) {
  std::vector<Samples> samples = run_rounds(world_, contenders, rounds);
  std::vector<Record> group;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Record& record = group.emplace_back(base);
    record.peer = contenders[i].peer;
    record.variant = contenders[i].variant;
    set_times(record, samples[i], bus_factor);
  }
  add(std::move(group));
}

void Session::add(std::vector<Record> group) {
  set_ratios(group);
  if (records_.empty()) say(table_heading());
  for (Record& record : group) {
    say(table_line(record));
    records_.push_back(std::move(record));
  }
}

void Session::say(const std::string& line) const {
  if (world_.rank() != 0) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Session::write_json(const std::string& path) const {
  if (world_.rank() != 0) return;
  nlohmann::json all = nlohmann::json::array();
  for (const Record& record : records_) all.push_back(to_json(record));
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write '{}'", path));
}

}  // namespace hvd::bench
