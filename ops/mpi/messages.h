#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/count_plan.h"
#include "transport/transport.h"

namespace hvd::mpi {

// Point-to-point messages over one communicator, cut into MPI messages of at most `limit` bytes, which are counted, so
// that at the end every rank can receive exactly what was still under way to it: a message left behind would be found
// by the next communicator that gets the same context id.
class Messages {
 public:
  // All ranks have the same limit, at most INT_MAX.
  Messages(MPI_Comm communicator, int size, std::size_t limit);

  std::unique_ptr<Transfer> send_data(int rank, int channel, BytesView data);
  std::unique_ptr<Transfer> receive_data(int rank, int channel, std::span<std::byte> data);
  void send_control(int rank, Bytes message);
  bool control_idle(int rank);
  std::optional<Message> poll_control();

  // Receives and drops what is under way to this rank and completes what it has sent. Collective. False when that is
  // not done within the limit. Nothing may be sent afterwards.
  bool drain(std::chrono::duration<double> limit);

 private:
  class Sending;
  class Receiving;
  using Requests = std::vector<MPI_Request>;
  struct ControlSending {
    Bytes bytes;
    Requests requests;
  };

  Requests start_sends(int rank, int tag, BytesView data, const std::vector<Piece>& pieces);
  bool drop_one();
  bool sends_done();

  MPI_Comm communicator_;
  std::size_t limit_;
  std::map<int, std::deque<ControlSending>> control_;
  std::map<int, Bytes> arriving_;   // by rank: the pieces that have come of a control message
  Requests orphans_;                // sends whose transfer has been given up
  std::vector<std::int64_t> sent_;  // MPI messages, by rank
  std::vector<std::int64_t> received_;
};

}  // namespace hvd::mpi
