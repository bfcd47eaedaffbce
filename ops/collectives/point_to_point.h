#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "collectives/chunk_stream.h"
#include "collectives/collective.h"

namespace hvd {

// One message from one member of a set to another, on the same host or not, of any size: n bytes on the wire, straight
// from memory to memory where the transport can. Messages between two members of a set arrive in the order sent. Other
// members have no part in it.
class PointToPoint final : public Collective {
 public:
  // Messages of sets are told apart, from each other and from chunks.
  static int channel_of(const Members& members) { return Members::channels + members.channel; }

  // The peer is a position in the set; both give the same size. The memory outlives the collective.
  static std::unique_ptr<PointToPoint> send(ChunkStream& stream, int receiver, BytesView data);
  static std::unique_ptr<PointToPoint> receive(ChunkStream& stream, int sender, std::span<std::byte> data);

  // A sender rings its receiver on the same host once the message is under way. How the transport carries on from there
  // nobody is told.
  Progress step() override;
  Phase phase() const override { return done_ ? Phase::unpacked : Phase::started; }
  bool needs_polling() const override { return !done_; }

 private:
  PointToPoint(ChunkStream& stream, int peer, BytesView to_send, std::span<std::byte> to_receive, bool sends);

  void start();

  ChunkStream& stream_;
  int peer_;
  BytesView to_send_;
  std::span<std::byte> to_receive_;
  bool sends_;
  std::unique_ptr<Transfer> transfer_;
  bool done_ = false;
};

}  // namespace hvd
