#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace hvd::mpi {

// Point-to-point messages over one communicator, counted, so that at the end every rank can receive exactly what was
// still under way to it: a message left behind would be found by the next communicator that gets the same context id.
class Messages {
 public:
  Messages(MPI_Comm communicator, int size);

  std::unique_ptr<Transfer> send_data(int rank, BytesView data);
  std::unique_ptr<Transfer> receive_data(int rank, std::span<std::byte> data);
  void send_control(int rank, Bytes message);
  bool control_idle(int rank);
  std::optional<Message> poll_control();

  // Receives and drops what is under way to this rank and completes what it has sent. Collective. False when that is
  // not done within the limit. Nothing may be sent afterwards.
  bool drain(std::chrono::duration<double> limit);

 private:
  class Sending;
  class Receiving;

  bool drop_one();
  bool sends_done();

  MPI_Comm communicator_;
  std::map<int, std::deque<std::pair<Bytes, MPI_Request>>> control_;
  std::vector<MPI_Request> orphans_;  // sends whose transfer has been given up
  std::vector<std::int64_t> sent_;    // messages, by rank
  std::vector<std::int64_t> received_;
};

}  // namespace hvd::mpi
