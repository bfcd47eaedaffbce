#include "collectives/inner_products.h"

#include <algorithm>

#include "collectives/adasum_tree.h"
#include "cpu/dot.h"

namespace hvd {

InnerProducts::InnerProducts(ChunkStream& stream, const Participants& participants, DataType dtype,
                             std::span<const std::size_t> counts, const FusedInput& input, std::span<double> products)
    : SlotCollective(stream),
      participants_(participants),
      dtype_(dtype),
      chunk_elements_(stream.chunk_bytes() / size_of(dtype)),
      input_(input),
      products_(products) {
  std::uint64_t chunks = 0;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    const std::uint64_t first = chunks;
    chunks += (count + chunk_elements_ - 1) / chunk_elements_;
    tensors_.push_back({.end_chunk = chunks, .first_chunk = first, .begin = begin, .count = count});
    begin += count * size_of(dtype);
  }
  reserve(chunks);
}

InnerProducts::Part InnerProducts::part(std::uint64_t chunk) const {
  const auto tensor = std::ranges::upper_bound(tensors_, chunk, {}, &Tensor::end_chunk);
  const std::size_t done = (chunk - tensor->first_chunk) * chunk_elements_;
  return {.tensor = static_cast<std::size_t>(tensor - tensors_.begin()),
          .begin = tensor->begin + done * size_of(dtype_),
          .count = std::min(chunk_elements_, tensor->count - done)};
}

SlotCollective::Range InnerProducts::read_on(std::uint64_t chunk, int rank, int host) const {
  if (!participants_.contributes(rank) || participants_.contributors_on(host).empty()) return {};
  return {0, part(chunk).count * size_of(dtype_)};
}

bool InnerProducts::reads(std::uint64_t /*chunk*/) const { return participants_.contributes(topology().rank()); }

std::size_t InnerProducts::pack(std::uint64_t chunk, std::byte* slot) {
  const Part mine = part(chunk);
  const std::size_t bytes = mine.count * size_of(dtype_);
  input_.read(mine.begin, {slot, bytes});
  return bytes;
}

std::size_t InnerProducts::unpack(std::uint64_t chunk) {
  const Part all = part(chunk);
  const auto ranks = participants_.contributors();
  const auto me = static_cast<std::size_t>(std::ranges::lower_bound(ranks, topology().rank()) - ranks.begin());
  const std::size_t share = (all.count + ranks.size() - 1) / ranks.size();
  const std::size_t begin = std::min(all.count, share * me);
  const std::size_t count = std::min(share, all.count - begin);
  const auto sums = products_.subspan(all.tensor * pair_count(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::byte* a = slot(chunk, ranks[i]) + begin * size_of(dtype_);
    for (std::size_t j = 0; j <= i; ++j) {
      sums[pair_index(i, j)] += cpu::dot(dtype_, a, slot(chunk, ranks[j]) + begin * size_of(dtype_), count);
    }
  }
  return 0;
}

}  // namespace hvd
