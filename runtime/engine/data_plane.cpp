#include "engine/data_plane.h"

#include <fmt/format.h>

#include <algorithm>

#include "negotiation/rank_groups.h"

namespace hvd::detail {

namespace {

void add(DataStats& total, const DataStats& more) {
  total.bytes_packed += more.bytes_packed;
  total.bytes_unpacked += more.bytes_unpacked;
  total.bytes_sent += more.bytes_sent;
  total.allocations += more.allocations;
}

}  // namespace

DataPlane::Lane::Lane(DataPlane& plane, Members set_members, std::string key)
    : members(std::move(set_members)),
      memory_key(std::move(key)),
      plan(ChunkPlan::make(members.topology, plane.options_.chunk_bytes)),
      executor(
          Executor::Order::one_by_one, plane.observers_,
          [this, &plane](ExecutableBatch& batch) { return launch(batch, *stream, plane.options_.launch); },
          plane.on_finished_, plane.on_batch_done_) {}

// Also where nothing is done on it: a name that not all members have come to would stay.
bool DataPlane::Lane::attach(DataPlane& plane) {
  if (stream != nullptr) return true;
  auto memory = plane.transport_.try_share(memory_key, ChunkBuffers::bytes_for(plan), members.topology.local_size());
  if (memory == nullptr) return false;
  buffers = std::make_unique<ChunkBuffers>(plan, std::move(memory));
  stream = std::make_unique<ChunkStream>(plane.transport_, members, *buffers, plane.bells_, &plane.arenas_);
  buffers->progress(members.topology.rank()).attached.store(1, std::memory_order_release);
  for (const int rank : stream->local_ranks()) stream->ring(rank);  // who came too early can go on
  return true;
}

bool DataPlane::Lane::all_attached() const {
  return std::ranges::all_of(stream->local_ranks(), [this](int rank) {
    return buffers->progress(rank).attached.load(std::memory_order_acquire) != 0;
  });
}

std::vector<int> DataPlane::Lane::behind() const {
  std::vector<int> ranks;
  const auto& mine = buffers->progress(members.topology.rank());
  for (const int rank : stream->local_ranks()) {
    const auto& other = buffers->progress(rank);
    const bool late = executor.idle()
                          ? other.attached.load(std::memory_order_acquire) == 0
                          : other.packed.load(std::memory_order_acquire) < mine.packed.load(std::memory_order_acquire);
    if (late) ranks.push_back(stream->world_rank(rank));
  }
  return ranks;
}

std::optional<Executor::Stuck> DataPlane::Lane::oldest() const {
  if (executor.idle() && removal) return Executor::Stuck{.batch = &*removal, .since = removal_since};
  return executor.oldest();
}

DataPlane::DataPlane(Transport& transport, HostBells& bells, const SharedArenas& arenas, Observers& observers,
                     Options options, const ProcessSets& sets, std::unique_ptr<SharedMemory> world_memory,
                     Executor::OnFinished on_finished, Executor::OnBatchDone on_batch_done)
    : transport_(transport),
      bells_(bells),
      arenas_(arenas),
      observers_(observers),
      options_(std::move(options)),
      on_finished_(std::move(on_finished)),
      on_batch_done_(std::move(on_batch_done)),
      pairs_(
          Executor::Order::all_at_once, observers_,
          [this](ExecutableBatch& batch) { return launch(batch, *lanes_.at(0)->stream, options_.launch); },
          on_finished_, on_batch_done_),
      stall_clock_(options_.stall_warning) {
  for (const auto& [id, set] : sets.all()) add_lane(id, set.ranks, set.channel);
  Lane& world = *lanes_.at(0);
  world.buffers = std::make_unique<ChunkBuffers>(world.plan, std::move(world_memory));
  world.stream = std::make_unique<ChunkStream>(transport_, world.members, *world.buffers, bells_, &arenas_);
}

std::size_t DataPlane::bytes_for_world(const Topology& world, std::size_t chunk_bytes) {
  return ChunkBuffers::bytes_for(ChunkPlan::make(world, chunk_bytes));
}

void DataPlane::add_lane(std::uint32_t id, const std::vector<int>& ranks, std::uint32_t channel) {
  if (!position_in(ranks, transport_.topology().rank())) return;
  const std::string key = fmt::format("{}-{}-{}", options_.world, id, transport_.topology().host());
  lanes_.emplace(
      id, std::make_unique<Lane>(*this, make_members(transport_.topology(), ranks, static_cast<int>(channel)), key));
}

void DataPlane::enqueue(ExecutableBatch batch, TimePoint now) {
  if (batch.change) {
    const SetChange& change = *batch.change;
    if (!change.ranks.empty()) {
      add_lane(change.id, change.ranks, change.channel);
      finish_change(batch);
    } else if (const auto lane = lanes_.find(change.id); lane != lanes_.end()) {
      lane->second->removal = std::move(batch);
      lane->second->removal_since = now;
    } else {
      finish_change(batch);
    }
    return;
  }
  Executor& executor =
      batch.request().operation == Operation::send_recv ? pairs_ : lanes_.at(batch.process_set)->executor;
  executor.enqueue(std::move(batch), now);
}

void DataPlane::finish_change(const ExecutableBatch& batch) {
  for (const auto& operation : batch.operations) on_finished_(operation, std::nullopt);
}

bool DataPlane::step(TimePoint now) {
  bool moved = pairs_.step(now);
  for (auto it = lanes_.begin(); it != lanes_.end();) {
    Lane& lane = *it->second;
    const bool attached = lane.attach(*this);
    if (attached) moved = lane.executor.step(now) || moved;
    // Memory that goes before all have it would be made anew by who comes late.
    if (!attached || !lane.removal || !lane.executor.idle() || !lane.all_attached()) {
      ++it;
      continue;
    }
    add(ended_, lane.stream->stats());
    const ExecutableBatch removal = std::move(*lane.removal);
    it = lanes_.erase(it);
    finish_change(removal);
    moved = true;
  }
  return moved;
}

bool DataPlane::must_poll() const {
  return pairs_.needs_polling() ||
         std::ranges::any_of(lanes_, [](const auto& lane) { return lane.second->executor.needs_polling(); });
}

bool DataPlane::idle() const {
  return pairs_.idle() && std::ranges::all_of(lanes_, [](const auto& lane) {
           return lane.second->executor.idle() && !lane.second->removal;
         });
}

bool DataPlane::would_wait(const Request& request) const {
  if (request.operation == Operation::send_recv || request.changes_process_sets()) return false;
  const auto lane = lanes_.find(request.process_set);
  return lane != lanes_.end() && !lane->second->executor.idle();
}

void DataPlane::abandon() {
  pairs_.abandon();
  for (auto& [id, lane] : lanes_) {
    lane->executor.abandon();
    lane->removal.reset();
  }
}

std::pair<std::optional<Executor::Stuck>, const DataPlane::Lane*> DataPlane::oldest() const {
  std::pair<std::optional<Executor::Stuck>, const Lane*> oldest{pairs_.oldest(), nullptr};
  for (const auto& [id, lane] : lanes_) {
    const auto stuck = lane->oldest();
    if (stuck && (!oldest.first || stuck->since < oldest.first->since)) oldest = {stuck, lane.get()};
  }
  return oldest;
}

std::optional<DataPlane::Stall> DataPlane::look_for_stall(TimePoint now) {
  const auto [stuck, lane] = oldest();
  if (!stuck) return std::nullopt;
  const bool is_fatal = options_.stall_shutdown.count() > 0 && now - stuck->since >= options_.stall_shutdown;
  if (!is_fatal && !stall_clock_.due(stuck->since, now)) return std::nullopt;
  return Stall{.report = describe(*stuck, lane, now), .is_fatal = is_fatal};
}

std::optional<TimePoint> DataPlane::deadline() const {
  const auto stuck = oldest().first;
  if (!stuck) return std::nullopt;
  std::optional<TimePoint> next = stall_clock_.deadline(stuck->since);
  if (options_.stall_shutdown.count() > 0) {
    const TimePoint last = after(stuck->since, options_.stall_shutdown);
    next = next ? std::min(*next, last) : last;
  }
  return next;
}

// Which ranks have not come as far as this one can only be seen on its host.
std::string DataPlane::describe(const Executor::Stuck& stuck, const Lane* lane, TimePoint now) const {
  const Request& request = stuck.batch->request();
  std::string text = fmt::format("{} '{}' is ready on all ranks and has not moved for {:.3g} s",
                                 to_string(request.operation), request.name, Seconds(now - stuck.since).count());
  if (stuck.batch->operations.size() > 1) {
    text += fmt::format(" (with {} more in its batch)", stuck.batch->operations.size() - 1);
  }
  if (lane == nullptr) return fmt::format("{}: between ranks {} and {}", text, request.root, request.peer);
  if (lane->stream == nullptr) return text + ": waits for the memory that the set's ranks share on this host";
  if (const std::vector<int> behind = lane->behind(); !behind.empty())
    return fmt::format("{}: waits for {}", text, format_ranks(behind));
  return text + (lane->stream->one_host() ? ": waits on this rank itself" : ": waits for ranks on other hosts");
}

std::vector<std::unique_ptr<SharedMemory>> DataPlane::release_memory() {
  std::vector<std::unique_ptr<SharedMemory>> memory;
  for (auto& [id, lane] : lanes_) {
    if (lane->buffers != nullptr) memory.push_back(lane->buffers->release());
  }
  return memory;
}

DataStats DataPlane::stats() const {
  DataStats total = ended_;
  for (const auto& [id, lane] : lanes_) {
    if (lane->stream != nullptr) add(total, lane->stream->stats());
  }
  return total;
}

}  // namespace hvd::detail
