#include "engine/rendezvous.h"

#include <fmt/format.h>
#include <hvd/error.h>

#include <random>
#include <span>

#include "config/agreement.h"
#include "negotiation/rank_groups.h"

namespace hvd::detail {

namespace {

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::vector<std::string> exchange(Transport& transport, const Config& config, const std::string& text) {
  std::vector<std::string> texts;
  for (const Bytes& bytes : transport.allgather(std::as_bytes(std::span(text)), config.start_timeout)) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace

void require_no_trouble(Transport& transport, const Config& config, const std::string& trouble) {
  RankGroups troubles;
  int rank = 0;
  for (const std::string& text : exchange(transport, config, trouble)) {
    if (!text.empty()) troubles.add(rank, text);
    ++rank;
  }
  if (const std::string text = troubles.to_string(); !text.empty()) throw InvalidArgumentError("init: " + text);
}

std::string agree_on_start(Transport& transport, const Config& config, const std::string& trouble) {
  const auto records = transport.allgather(agreement_record(config), config.start_timeout);
  if (const std::string text = disagreement(records); !text.empty()) throw InvalidArgumentError("init: " + text);
  require_no_trouble(transport, config, trouble);
  return exchange(transport, config, random_token())[0];
}

}  // namespace hvd::detail
