#include "mpi/messages.h"

#include <fmt/format.h>
#include <hvd/error.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "mpi/environment.h"

namespace hvd::mpi {

namespace {

constexpr int control_tag = 1;
constexpr int data_tag = 2;

int byte_count(std::size_t bytes) {
  if (bytes > INT_MAX) throw InternalError(fmt::format("{} bytes in one MPI message; the limit is {}", bytes, INT_MAX));
  return static_cast<int>(bytes);
}

bool test(MPI_Request& request) {
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

// A whole message from anybody, if one is there.
std::optional<Message> take(MPI_Comm communicator, int tag) {
  int there = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(MPI_ANY_SOURCE, tag, communicator, &there, &handle, &status), "MPI_Improbe");
  if (there == 0) return std::nullopt;
  int count = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
  Message message{.sender = status.MPI_SOURCE, .bytes = Bytes(static_cast<std::size_t>(count))};
  check(MPI_Mrecv(message.bytes.data(), count, MPI_BYTE, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
  return message;
}

}  // namespace

// A send that is given up goes on: its receiver will take it in, at the latest when it drains.
class Messages::Sending final : public Transfer {
 public:
  Sending(Messages& messages, MPI_Request request) : messages_(messages), request_(request) {}
  ~Sending() override {
    if (request_ != MPI_REQUEST_NULL) messages_.orphans_.push_back(request_);
  }
  bool test() override { return mpi::test(request_); }

 private:
  Messages& messages_;
  MPI_Request request_;
};

class Messages::Receiving final : public Transfer {
 public:
  Receiving(Messages& messages, int rank, MPI_Request request)
      : messages_(messages), rank_(static_cast<std::size_t>(rank)), request_(request) {}
  ~Receiving() override {
    if (request_ == MPI_REQUEST_NULL || finalized()) return;
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&request_);
    MPI_Wait(&request_, &status);  // local after a cancel
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled == 0) ++messages_.received_[rank_];
  }
  bool test() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    if (!mpi::test(request_)) return false;
    ++messages_.received_[rank_];
    return true;
  }

 private:
  Messages& messages_;
  std::size_t rank_;
  MPI_Request request_;
};

Messages::Messages(MPI_Comm communicator, int size)
    : communicator_(communicator), sent_(static_cast<std::size_t>(size)), received_(static_cast<std::size_t>(size)) {}

std::unique_ptr<Transfer> Messages::send_data(int rank, BytesView data) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(data.data(), byte_count(data.size()), MPI_BYTE, rank, data_tag, communicator_, &request),
        "MPI_Isend");
  ++sent_[static_cast<std::size_t>(rank)];
  return std::make_unique<Sending>(*this, request);
}

std::unique_ptr<Transfer> Messages::receive_data(int rank, std::span<std::byte> data) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(data.data(), byte_count(data.size()), MPI_BYTE, rank, data_tag, communicator_, &request),
        "MPI_Irecv");
  return std::make_unique<Receiving>(*this, rank, request);
}

void Messages::send_control(int rank, Bytes message) {
  control_idle(rank);  // forgets what has left
  auto& [bytes, request] = control_[rank].emplace_back(std::move(message), MPI_REQUEST_NULL);
  check(MPI_Isend(bytes.data(), byte_count(bytes.size()), MPI_BYTE, rank, control_tag, communicator_, &request),
        "MPI_Isend");
  ++sent_[static_cast<std::size_t>(rank)];
}

bool Messages::control_idle(int rank) {
  auto& queue = control_[rank];
  while (!queue.empty() && test(queue.front().second)) queue.pop_front();
  return queue.empty();
}

std::optional<Message> Messages::poll_control() {
  auto message = take(communicator_, control_tag);
  if (message) ++received_[static_cast<std::size_t>(message->sender)];
  return message;
}

bool Messages::drop_one() {
  const auto message = take(communicator_, MPI_ANY_TAG);
  if (message) ++received_[static_cast<std::size_t>(message->sender)];
  return message.has_value();
}

bool Messages::sends_done() {
  std::erase_if(orphans_, [](MPI_Request& request) { return test(request); });
  return orphans_.empty() &&
         std::ranges::all_of(control_, [this](const auto& queue) { return control_idle(queue.first); });
}

bool Messages::drain(std::chrono::duration<double> limit) {
  const auto start = std::chrono::steady_clock::now();
  auto expected = std::make_unique<std::vector<std::int64_t>>(sent_.size());
  MPI_Request counts = MPI_REQUEST_NULL;
  check(MPI_Ialltoall(sent_.data(), 1, MPI_INT64_T, expected->data(), 1, MPI_INT64_T, communicator_, &counts),
        "MPI_Ialltoall");
  while (!test(counts) || received_ != *expected || !sends_done()) {
    if (std::chrono::steady_clock::now() - start > limit) {
      static_cast<void>(expected.release());  // MPI may still write to it when the late rank comes
      return false;
    }
    if (!drop_one()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace hvd::mpi
