#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>

#include <array>
#include <string>
#include <vector>

namespace hvd::detail {

// Wakes a coordinator thread of this host that sleeps in its io_context, by an empty datagram to a socket in the
// abstract name space (no file is left behind). A ring is a hint, so a lost or a false one does no harm.
class Doorbell {
 public:
  // `world`: a token that tells apart the runtimes of a machine. May be made anew with another token after destruction.
  Doorbell(boost::asio::io_context& io, const std::string& world, int rank, const std::vector<int>& host_ranks);

  // Progress token only; never blocks.
  void ring(int local_rank) noexcept;

 private:
  using Protocol = boost::asio::local::datagram_protocol;

  void listen();

  Protocol::socket inbox_;
  Protocol::socket outbox_;
  std::vector<Protocol::endpoint> peers_;
  std::array<char, 1> nothing_{};
};

}  // namespace hvd::detail
