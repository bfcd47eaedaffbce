#include "collectives/scatter.h"

#include <algorithm>

namespace hvd {

Scatter::Scatter(ChunkStream& stream, Participants participants, int root, std::size_t bytes, FusedInput input,
                 const std::vector<Window>& windows, FusedOutput output)
    : SlotCollective(stream),
      participants_(std::move(participants)),
      root_(root),
      bytes_(bytes),
      input_(std::move(input)),
      output_(std::move(output)) {
  std::size_t at = 0;
  for (const Window& window : windows) {
    if (window.size > 0) parts_.push_back({window, at});
    at += window.size;
  }
  reserve((bytes_ + stream.chunk_bytes() - 1) / stream.chunk_bytes());
}

std::size_t Scatter::end(std::uint64_t chunk) const { return std::min(bytes_, begin(chunk) + stream().chunk_bytes()); }

std::vector<Scatter::Part>::const_iterator Scatter::first_part(std::uint64_t chunk) const {
  return std::ranges::upper_bound(parts_, begin(chunk), {},
                                  [](const Part& part) { return part.window.begin + part.window.size; });
}

// A root that is alone on its host and reads nothing itself need not keep its slot for anybody there; other ranks of
// the host, which might see that otherwise, there are none.
SlotCollective::Range Scatter::read_on(std::uint64_t chunk, int rank, int host) const {
  if (rank != root_ || participants_.contributors_on(host).empty()) return {};
  const bool root_alone =
      topology().rank() == root_ && host == topology().host() && participants_.contributors_on(host).size() == 1;
  if (root_alone && !reads(chunk)) return {};
  return {0, end(chunk) - begin(chunk)};
}

bool Scatter::reads(std::uint64_t chunk) const {
  const auto part = first_part(chunk);
  return part != parts_.end() && part->window.begin < end(chunk);
}

std::size_t Scatter::pack(std::uint64_t chunk, std::byte* slot) {
  input_.read(begin(chunk), {slot, end(chunk) - begin(chunk)});
  return end(chunk) - begin(chunk);
}

std::size_t Scatter::unpack(std::uint64_t chunk) {
  std::size_t total = 0;
  for (auto part = first_part(chunk); part != parts_.end() && part->window.begin < end(chunk); ++part) {
    const std::size_t from = std::max(part->window.begin, begin(chunk));
    const std::size_t size = std::min(part->window.begin + part->window.size, end(chunk)) - from;
    output_.write(part->at + (from - part->window.begin), {slot(chunk, root_) + (from - begin(chunk)), size});
    total += size;
  }
  return total;
}

}  // namespace hvd
