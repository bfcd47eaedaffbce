// The control streams in shared memory, from the root and from another rank. The first byte says which rank this is;
// what follows are steps of a kind-and-peer byte, a size byte, and for a write the bytes that the peer writes.
#include <hvd/error.h>

#include "ring_peer.h"
#include "transport/in_process.h"

namespace {

using namespace hvd;
using fuzz::RingPeer;

constexpr int ranks = 3;  // all on one host
constexpr std::size_t most_sent = std::size_t{64} << 10;

class HeapMemory final : public SharedMemory {
 public:
  explicit HeapMemory(std::size_t size) : pages_((size + sizeof(Page) - 1) / sizeof(Page)) {}
  std::span<std::byte> bytes() override { return std::as_writable_bytes(std::span(pages_)); }

 private:
  struct alignas(64) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> pages_;
};

struct World {
  explicit World(int me)
      : rank(me),
        transport(make_in_process_transport(make_in_process_hub(ranks), Topology(me, std::vector<int>(ranks, 0)))),
        segment(std::make_unique<HeapMemory>(HostSegment::bytes_for(transport->topology()))),
        bells(segment, transport->topology()),
        links(*transport, segment, bells) {
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank || (rank != 0 && peer != 0)) continue;
      const int member = std::max(peer, rank);
      const ByteRing up = segment.to_leader(member);
      const ByteRing down = segment.from_leader(member);
      peers.emplace_back(peer, rank == 0 ? up : down, rank == 0 ? down : up);
    }
  }
  RingPeer& peer_of(int sender) {
    const auto peer = std::ranges::find(peers, sender, &RingPeer::rank);
    fuzz::require(peer != peers.end(), "messages come from peers");
    return *peer;
  }

  int rank;
  std::unique_ptr<Transport> transport;
  HostSegment segment;
  HostBells bells;
  ControlLinks links;
  std::vector<RingPeer> peers;
};

// False when the links have found an error.
bool receive(World& world) {
  try {
    if (const auto message = world.links.receive()) world.peer_of(message->sender).check(*message);
    return true;
  } catch (const InternalError& error) {
    const bool named = std::ranges::any_of(world.peers, [&](const RingPeer& peer) {
      return peer.is_at_fault() && std::string_view(error.what()).starts_with(peer.accused());
    });
    fuzz::require(named, "an error names a sender who is at fault");
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  World world(data[0] % ranks);
  BytesView rest = fuzz::bytes_of(data, size).subspan(1);
  std::size_t sent = 0;
  while (rest.size() >= 2) {
    const auto what = std::to_integer<std::size_t>(rest[0]);
    const auto count = std::to_integer<std::size_t>(rest[1]);
    rest = rest.subspan(2);
    RingPeer& peer = world.peers[what / 8 % world.peers.size()];
    switch (what % 8) {
      case 0: {
        const BytesView written = rest.first(std::min(count, rest.size()));
        rest = rest.subspan(written.size());
        peer.write(written);
        break;
      }
      case 1:
        peer.write(Bytes(count << 4));  // much at once, to get round the ring's end
        break;
      case 2: {
        const Bytes message(count << 4, std::byte{0x5a});
        if ((sent += message.size()) > most_sent) return 0;
        peer.expect(message);
        world.links.send(peer.rank(), message);
        break;
      }
      case 3:
        peer.drain(count << 4);
        break;
      case 4:
        world.links.flush();
        break;
      default:
        if (!receive(world)) return 0;
    }
  }
  return 0;
}
