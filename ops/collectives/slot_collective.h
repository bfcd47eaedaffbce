#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"

namespace hvd {

// Base of the collectives in which ranks read each other's slots, chunk by chunk:
//
//   pack own slot ──► send every other host what its ranks read of it ──► read the slots, own host's and others'
//                     (its leader receives it into this rank's slot there)
//
// A chunk in which a rank has nothing to pack, to receive or to read costs it nothing: it is through with it at once.
// Chunks are counted from the collective's first.
class SlotCollective : public Collective {
 public:
  Progress step() final;
  Phase phase() const final;

 protected:
  struct Range {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  explicit SlotCollective(ChunkStream& stream) : stream_(stream) {}
  // Takes so many chunks of the stream; the last thing that a constructor does. Equal on all ranks.
  void reserve(std::uint64_t count);

  // What is read of the rank's slot on that host; the same answer on all ranks.
  virtual Range read_on(std::uint64_t chunk, int rank, int host) const = 0;
  // Whether this rank reads anything.
  virtual bool reads(std::uint64_t chunk) const = 0;
  // Fills this rank's slot, where anything is read of it. Returns the number of bytes.
  virtual std::size_t pack(std::uint64_t chunk, std::byte* slot) = 0;
  // Reads the slots: all that is read on this host is there. Returns the number of bytes.
  virtual std::size_t unpack(std::uint64_t chunk) = 0;

  ChunkStream& stream() const { return stream_; }
  const Topology& topology() const { return stream_.topology(); }
  const std::byte* slot(std::uint64_t chunk, int rank) const { return stream_.buffers().slot(first_ + chunk, rank); }

 private:
  bool pack_next();
  bool unpack_next();
  bool packs(std::uint64_t chunk) const;
  bool receives(std::uint64_t chunk) const;
  bool idle(std::uint64_t chunk) const { return !packs(chunk) && !receives(chunk) && !reads(chunk); }
  void expect(std::uint64_t chunk);
  bool all_there(std::uint64_t chunk);

  ChunkStream& stream_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t packed_ = 0;  // own data packed and sent, others' expected
  std::uint64_t unpacked_ = 0;
  int there_ = 0;  // of the chunk to unpack next, the data of the ranks below this one is there
};

}  // namespace hvd
