#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "limit/arena.h"
#include "limit/packed.h"
#include "record.h"
#include "rounds.h"
#include "world.h"

namespace hvd::bench {

// Who is measured.
struct Peers {
  bool hvd = true;
  bool mpi = true;
  bool limit = true;
};
// "hvd,mpi,limit". Throws std::invalid_argument.
Peers parse_peers(std::string_view text);

// One run of the program: the ranks, who is measured, and what has been found so far.
class Session {
 public:
  // With hvd among the peers, hvd is initialised. Collective, as the destructor is.
  Session(const World& world, Peers peers, bool quick);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const World& world() const { return world_; }
  const Peers& peers() const { return peers_; }
  bool quick() const { return quick_; }

  // The hand-written limits; null when they are not wanted or cannot be had here. Collective.
  limit::PackedLimit* packed_limit() const { return packed_.get(); }
  limit::ArenaLimit* arena_limit(std::size_t elements);

  // A record of this run, without times.
  Record record(std::string bench, std::size_t bytes, DataType dtype) const;
  // Measures the contenders and adds a record of each; `base` says what is the same in all.
  void measure(const Record& base, const std::vector<Contender>& contenders, const Rounds& rounds, double bus_factor);
  // Adds records that were measured together: sets their ratios, prints them on rank 0.
  void add(std::vector<Record> group);
  // Prints a line on rank 0.
  void say(const std::string& line) const;
  // Writes all records as a JSON array, on rank 0. Throws std::runtime_error.
  void write_json(const std::string& path) const;

 private:
  const World& world_;
  Peers peers_;
  bool quick_;
  std::vector<Record> records_;
  std::unique_ptr<limit::PackedLimit> packed_;
  std::unique_ptr<limit::ArenaLimit> arena_;
  std::size_t arena_elements_ = 0;
};

}  // namespace hvd::bench
