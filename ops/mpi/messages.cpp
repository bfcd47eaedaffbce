#include "mpi/messages.h"

#include <fmt/format.h>

#include <hvd/error.h>
#include <algorithm>
#include <thread>
#include <utility>

#include "mpi/environment.h"

namespace hvd::mpi {

namespace {

constexpr int control_tag = 1;
constexpr int first_data_tag = 2;  // channels follow; MPI has tags up to 32767 at least

bool test(MPI_Request& request) {
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

bool test_all(std::vector<MPI_Request>& requests) {
  int done = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

// An MPI message from anybody, if one is there.
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
  Sending(Messages& messages, Requests requests) : messages_(messages), requests_(std::move(requests)) {}
  ~Sending() override {
    for (const MPI_Request request : requests_) {
      if (request != MPI_REQUEST_NULL) messages_.orphans_.push_back(request);
    }
  }
  bool test() override { return test_all(requests_); }

 private:
  Messages& messages_;
  Requests requests_;
};

class Messages::Receiving final : public Transfer {
 public:
  Receiving(Messages& messages, int rank, std::size_t size, Requests requests)
      : messages_(messages),
        rank_(static_cast<std::size_t>(rank)),
        size_(size),
        requests_(std::move(requests)),
        statuses_(requests_.size()) {}
  ~Receiving() override {
    if (requests_.empty() || finalized()) return;
    for (MPI_Request& request : requests_) {
      MPI_Status status;
      int cancelled = 0;
      if (MPI_Cancel(&request) != MPI_SUCCESS || MPI_Wait(&request, &status) != MPI_SUCCESS) continue;
      MPI_Test_cancelled(&status, &cancelled);  // waiting is local after a cancel
      if (cancelled == 0) ++messages_.received_[rank_];
    }
  }
  bool test() override {
    if (requests_.empty()) return true;
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data());
    if (code != MPI_ERR_IN_STATUS) {
      check(code, "MPI_Testall");
      if (done == 0) return false;
    }
    messages_.received_[rank_] += static_cast<std::int64_t>(requests_.size());
    requests_.clear();
    check_size(code);
    return true;
  }

 private:
  // Both sides know the size, so another one is an error of hvd's; MPI itself finds fault only with more than expected.
  void check_size(int code) const {
    std::size_t size = 0;
    for (const MPI_Status& status : statuses_) {
      if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR == MPI_ERR_TRUNCATE) size = size_ + 1;
      if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_ERR_TRUNCATE) check(status.MPI_ERROR, "MPI_Testall");
      int count = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      size += static_cast<std::size_t>(count);
    }
    if (size == size_) return;
    int me = 0;
    check(MPI_Comm_rank(messages_.communicator_, &me), "MPI_Comm_rank");
    throw InternalError(
        size < size_
            ? fmt::format("rank {} sent {} bytes to rank {}, which expected {}", rank_, size, me, size_)
            : fmt::format("rank {} sent more bytes to rank {} than the {} that it expected", rank_, me, size_));
  }

  Messages& messages_;
  std::size_t rank_;
  std::size_t size_;
  Requests requests_;
  std::vector<MPI_Status> statuses_;
};

Messages::Messages(MPI_Comm communicator, int size, std::size_t limit)
    : communicator_(communicator),
      limit_(limit),
      sent_(static_cast<std::size_t>(size)),
      received_(static_cast<std::size_t>(size)) {}

Messages::Requests Messages::start_sends(int rank, int tag, BytesView data, const std::vector<Piece>& pieces) {
  Requests requests;
  for (const Piece& piece : pieces) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(data.data() + piece.begin, static_cast<int>(piece.count), MPI_BYTE, rank, tag, communicator_,
                    &request),
          "MPI_Isend");
    requests.push_back(request);
  }
  sent_[static_cast<std::size_t>(rank)] += static_cast<std::int64_t>(pieces.size());
  return requests;
}

std::unique_ptr<Transfer> Messages::send_data(int rank, int channel, BytesView data) {
  return std::make_unique<Sending>(*this,
                                   start_sends(rank, first_data_tag + channel, data, plan_counts(data.size(), limit_)));
}

std::unique_ptr<Transfer> Messages::receive_data(int rank, int channel, std::span<std::byte> data) {
  Requests requests;
  for (const Piece& piece : plan_counts(data.size(), limit_)) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(data.data() + piece.begin, static_cast<int>(piece.count), MPI_BYTE, rank, first_data_tag + channel,
                    communicator_, &request),
          "MPI_Irecv");
    requests.push_back(request);
  }
  return std::make_unique<Receiving>(*this, rank, data.size(), std::move(requests));
}

void Messages::send_control(int rank, Bytes message) {
  control_idle(rank);  // forgets what has left
  ControlSending& sending = control_[rank].emplace_back(ControlSending{std::move(message), Requests{}});
  sending.requests = start_sends(rank, control_tag, sending.bytes, plan_ended_counts(sending.bytes.size(), limit_));
}

bool Messages::control_idle(int rank) {
  auto& queue = control_[rank];
  while (!queue.empty() && test_all(queue.front().requests)) queue.pop_front();
  return queue.empty();
}

std::optional<Message> Messages::poll_control() {
  while (auto message = take(communicator_, control_tag)) {
    ++received_[static_cast<std::size_t>(message->sender)];
    Bytes& arriving = arriving_[message->sender];
    const bool is_last = message->bytes.size() < limit_;
    if (is_last && arriving.empty()) return message;
    arriving.insert(arriving.end(), message->bytes.begin(), message->bytes.end());
    if (is_last) return Message{.sender = message->sender, .bytes = std::exchange(arriving, {})};
  }
  return std::nullopt;
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
