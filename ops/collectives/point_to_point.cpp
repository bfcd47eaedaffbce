#include "collectives/point_to_point.h"

namespace hvd {

PointToPoint::PointToPoint(ChunkStream& stream, int peer, BytesView to_send, std::span<std::byte> to_receive,
                           bool sends)
    : stream_(stream), peer_(peer), to_send_(to_send), to_receive_(to_receive), sends_(sends) {}

std::unique_ptr<PointToPoint> PointToPoint::send(ChunkStream& stream, int receiver, BytesView data) {
  return std::unique_ptr<PointToPoint>(new PointToPoint(stream, receiver, data, {}, true));
}

std::unique_ptr<PointToPoint> PointToPoint::receive(ChunkStream& stream, int sender, std::span<std::byte> data) {
  return std::unique_ptr<PointToPoint>(new PointToPoint(stream, sender, {}, data, false));
}

Progress PointToPoint::step() {
  if (done_) return Progress::done;
  const bool starts = transfer_ == nullptr;
  if (starts) start();
  done_ = transfer_->test();
  return done_ ? Progress::done : starts ? Progress::advanced : Progress::waiting;
}

void PointToPoint::start() {
  const int rank = stream_.world_rank(peer_);
  const int channel = channel_of(stream_.members());
  if (!sends_) {
    transfer_ = stream_.transport().receive_data(rank, channel, to_receive_);
    return;
  }
  transfer_ = stream_.transport().send_data(rank, channel, to_send_);
  stream_.stats().bytes_sent += to_send_.size();
  if (stream_.topology().is_local(peer_)) stream_.ring(peer_);
}

}  // namespace hvd
