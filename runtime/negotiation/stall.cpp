#include "negotiation/stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "negotiation/rank_groups.h"

namespace hvd {

namespace {

constexpr std::size_t most_lines = 8;

std::string age(TimePoint since, TimePoint now) { return fmt::format("{:.3g} s ago", Seconds(now - since).count()); }

std::string line(const WaitingTensor& t, TimePoint now) {
  const std::string what = t.request.tensors.empty()
                               ? std::string(to_string(t.request.operation))
                               : fmt::format("{} {}", to_string(t.request.operation), describe_agreed(t.request));
  return fmt::format("'{}' ({}) submitted by {} {}, waits for {}", t.request.name, what, format_ranks(t.submitted_by),
                     age(t.since, now), format_ranks(t.waits_for));
}

bool look_alike(const WaitingTensor& a, const WaitingTensor& b) {
  const bool disjoint =
      std::ranges::none_of(a.submitted_by, [&](int rank) { return std::ranges::count(b.submitted_by, rank) > 0; });
  return disjoint && !a.request.tensors.empty() && a.request.process_set == b.request.process_set &&
         find_difference(a.request, b.request) == nullptr;
}

}  // namespace

TimePoint after(TimePoint start, Seconds duration) {
  return start + std::chrono::duration_cast<TimePoint::duration>(duration);
}

std::string describe_stall(const std::vector<WaitingTensor>& waiting, TimePoint now) {
  std::vector<std::string> parts;
  const std::size_t shown = std::min(waiting.size(), most_lines);
  for (std::size_t i = 0; i < shown; ++i) parts.push_back(line(waiting[i], now));
  if (waiting.size() > shown) parts.push_back(fmt::format("and {} more", waiting.size() - shown));

  // Where the ranks that the oldest operation lacks stand: each one's own oldest submission that waits for somebody.
  std::map<std::string, std::vector<int>> stands_at;
  for (const int missing : waiting.empty() ? std::vector<int>{} : waiting.front().waits_for) {
    const auto at =
        std::ranges::find_if(waiting, [&](const auto& t) { return std::ranges::count(t.submitted_by, missing) > 0; });
    const std::string where = at == waiting.end() ? "has nothing in flight"
                                                  : fmt::format("is at '{}', which waits for {}", at->request.name,
                                                                format_ranks(at->waits_for));
    stands_at[where].push_back(missing);
  }
  for (const auto& [where, ranks] : stands_at) {
    parts.push_back(ranks.size() == 1 ? fmt::format("rank {} {}", ranks[0], where)
                                      : fmt::format("each of ranks {} {}", format_ranks(ranks), where));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    for (std::size_t k = i + 1; k < shown; ++k) {
      if (!look_alike(waiting[i], waiting[k])) continue;
      parts.push_back(
          fmt::format("'{}' {} and '{}' {} have the same operation, dtype and shape: do names differ by rank?",
                      waiting[i].request.name, format_ranks(waiting[i].submitted_by), waiting[k].request.name,
                      format_ranks(waiting[k].submitted_by)));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Seconds StallClock::due_age(TimePoint since) const { return last_report_ && since <= *last_report_ ? next_ : warning_; }

bool StallClock::due(std::optional<TimePoint> oldest, TimePoint now) {
  if (!oldest || warning_.count() <= 0) return false;
  const Seconds age = now - *oldest;
  Seconds next = due_age(*oldest);
  if (age < next) return false;
  while (next <= age) next *= 2;
  next_ = next;
  last_report_ = now;
  return true;
}

std::optional<TimePoint> StallClock::deadline(std::optional<TimePoint> oldest) const {
  if (!oldest || warning_.count() <= 0) return std::nullopt;
  return after(*oldest, due_age(*oldest));
}

}  // namespace hvd
