#include <utility>  // Boost 1.74's coroutine headers use std::exchange without it

#include "engine/doorbell.h"

#include <boost/asio/buffer.hpp>

#include <fmt/format.h>

namespace hvd::detail {

namespace {

boost::asio::local::datagram_protocol::endpoint endpoint_of(const std::string& world, int rank) {
  return {fmt::format("{}hvd-{}-{}", '\0', world, rank)};
}

}  // namespace

Doorbell::Doorbell(boost::asio::io_context& io, const std::string& world, int rank, const std::vector<int>& host_ranks)
    : inbox_(io, endpoint_of(world, rank)), outbox_(io, Protocol()) {
  for (const int peer : host_ranks) peers_.push_back(endpoint_of(world, peer));
  inbox_.non_blocking(true);
  outbox_.non_blocking(true);
  listen();
}

void Doorbell::listen() {
  inbox_.async_receive(boost::asio::buffer(nothing_), [this](const boost::system::error_code& error, std::size_t) {
    if (!error) listen();
  });
}

void Doorbell::ring(int local_rank) noexcept {
  // A full inbox means that the peer is being woken already, a refused one that it is gone.
  boost::system::error_code ignored;
  outbox_.send_to(boost::asio::buffer(nothing_.data(), 0), peers_[static_cast<std::size_t>(local_rank)], 0, ignored);
}

}  // namespace hvd::detail
