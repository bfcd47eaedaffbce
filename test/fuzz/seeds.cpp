// Writes the inputs that fuzzing starts from, made by the library's own encoders, so that they follow its formats:
// FOLDER/<target>/<number>.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "config/agreement.h"
#include "config/settings.h"
#include "negotiation/messages.h"
#include "recorded_world.h"
#include "transport/control_links.h"

namespace {

using namespace hvd;
using Seeds = std::vector<std::string>;

std::string text_of(BytesView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Request request_of(Operation operation, DataType dtype, const Shape& shape) {
  Request request;
  request.name = "layer.weight";
  request.operation = operation;
  request.tensors.push_back({.dtype = dtype, .shape = shape});
  return request;
}

Seeds reports() {
  Seeds seeds{text_of(encode(Report{}))};
  for (std::uint8_t operation = 0; operation < operation_count; ++operation) {
    Report report;
    for (std::uint8_t dtype = 0; dtype < data_type_count; ++dtype) {
      report.ready.emplace_back();
      report.ready.back().request =
          request_of(static_cast<Operation>(operation), static_cast<DataType>(dtype), Shape{3, 0, dtype});
    }
    seeds.push_back(text_of(encode(report)));
  }
  Report report;
  report.ready.emplace_back();
  report.ready.back().request = request_of({}, {}, {});
  for (std::uint8_t reduce_op = 0; reduce_op < reduce_op_count; ++reduce_op) {
    report.ready.front().request->reduce_op = static_cast<ReduceOp>(reduce_op);
    seeds.push_back(text_of(encode(report)));
  }
  report.ready.emplace_back();
  report.ready.back().id = 42;
  for (const bool at_once : {false, true}) {
    report.leave = Leave{.reason = "called shutdown()", .at_once = at_once};
    seeds.push_back(text_of(encode(report)));
  }
  report.ready.back().extents = {3, 0, 5};
  report.ready.back().request = request_of(Operation::alltoall, DataType::f8e5m2, Shape{8});
  report.ready.back().request->tensors.push_back({.dtype = DataType::c128, .shape = Shape{}});
  report.withdrawn = {{.id = 7, .key = {}}, {.id = 0, .key = "0:w"}};
  report.blocked = {{.id = 8, .key = {}}};
  report.plans_seen = 99;
  seeds.push_back(text_of(encode(report)));
  return seeds;
}

Seeds plans() {
  Plan plan;
  Seeds seeds{text_of(encode(plan))};
  plan.names.emplace_back();
  plan.names.back().key = "0:layer.weight";
  seeds.push_back(text_of(encode(plan)));
  plan.batches.resize(2);
  plan.batches.back().entries.resize(3);
  plan.batches.back().entries.front().extents = {{4}, {0}, {6, 1}};
  seeds.push_back(text_of(encode(plan)));
  plan.batches.front().pair = {0, 3};
  plan.batches.back().absent = {1, 2};
  plan.batches.back().change = SetChange{.id = 4, .channel = 2, .ranks = {0, 2}};
  plan.descriptions.push_back({.id = 9, .request = request_of(Operation::broadcast, DataType::boolean, Shape{2, 2})});
  plan.evicted = {1, 5};
  plan.number = 12;
  seeds.push_back(text_of(encode(plan)));
  for (std::uint8_t code = 0; code < error_code_count; ++code) {
    plan.failures.emplace_back();
    plan.failures.back().ranks = {0, code};
    plan.failures.back().failure = {static_cast<ErrorCode>(code), "why"};
    seeds.push_back(text_of(encode(plan)));
  }
  for (const bool abandon : {false, true}) {
    plan.stop.emplace();
    plan.stop->reason = "rank 1 called shutdown()";
    plan.stop->abandon = abandon;
    seeds.push_back(text_of(encode(plan)));
  }
  return seeds;
}

Seeds agreements() {
  Config other;
  other.fusion_threshold += 1;
  other.test_topology = {2, 1};
  const std::string a = text_of(agreement_record({}));
  const std::string b = text_of(agreement_record(other));
  const std::string nul(1, '\0');
  return {a, a + nul + a, a + nul + b, b + nul + a + nul + b, "hvd agreement\nversion=1\nold=a=b\n" + nul + a};
}

// Every variable there is, with the values that its kind of setting knows.
Seeds configs() {
  Seeds seeds;
  const auto add = [&](std::string_view variable, std::string_view value) {
    if (!variable.empty()) seeds.push_back(fmt::format("{}={}", variable, value));
  };
  const std::vector<std::string> values{"0",   "1",   "64",      "4 KiB", "1G", "0.25",
                                        "off", "yes", "warning", "2,1,1", "-1", "x"};
  for (const Setting& setting : settings()) {
    add(setting.variable, setting.field.empty() ? "1" : value_text(setting, {}));
    for (const auto& value : values) add(setting.variable, value);
    add(setting.alias, "1");
  }
  seeds.emplace_back("HOROVOD_TIMELINE=DYNAMIC");
  seeds.emplace_back("HVD_FUSION_TRESHOLD=1\nHVD_LOG_LEVEL=info");
  return seeds;
}

// Steps as control_links.cpp reads them.
Seeds control_links() {
  const auto step = [](int kind, int peer, std::size_t count) {
    return std::string{static_cast<char>(kind + 8 * peer), static_cast<char>(count)};
  };
  const auto frame = [](std::uint64_t length, std::size_t sent) {
    return text_of(std::as_bytes(std::span(&length, 1))) + std::string(sent, 'm');
  };
  Seeds seeds;
  for (const char rank : {char{0}, char{1}}) {
    const std::string me(1, rank);
    const auto written = [&](const std::string& bytes) { return step(0, 0, bytes.size()) + bytes; };
    const std::string receive = step(5, 0, 0);
    seeds.push_back(me + written(frame(0, 0)) + receive);
    seeds.push_back(me + written(frame(5, 5) + frame(3, 3)) + receive + receive);
    seeds.push_back(me + written(frame(9, 4)) + receive + written("rest.") + receive);
    seeds.push_back(me + written(frame(ControlLinks::max_message_bytes, 4)) + receive);
    seeds.push_back(me + written(frame(ControlLinks::max_message_bytes + 1, 4)) + receive);
    seeds.push_back(me + step(0, 1, 11) + frame(3, 3) + receive);
    seeds.push_back(me + written(frame(40000, 0)) + step(1, 0, 100) + receive + step(1, 0, 100) + receive);
    seeds.push_back(me + step(2, 0, 200) + step(2, 0, 3) + step(3, 0, 100) + step(4, 0, 0) + step(3, 0, 255) + receive);
  }
  return seeds;
}

Seeds timeline_paths() {
  return {"",  "trace", "trace.json", "/a.b/trace", "a/trace.tar.gz", "r{rank}/{rank}.json", "{{rank}}",
          ".", "..",    "/",          "a."};
}

Seeds topologies() {
  const auto text = [](char ranks, const std::string& counts) { return ranks + counts; };
  return {text(1, "1"),    text(4, "2,1,1"), text(3, "2,1,1"), text(2, ""),
          text(2, "3,-1"), text(0, "0"),     text(2, "1, 1")};
}

Seeds arbiters() {
  Seeds seeds;
  for (const auto& world : fuzz::recorded_worlds()) seeds.push_back(world.root_steps());
  return seeds;
}

Seeds reporters() {
  Seeds seeds;
  for (const auto& world : fuzz::recorded_worlds()) seeds.push_back(world.rank_steps());
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<std::pair<std::string, Seeds>> seeds_of{
      {"agreement", agreements()}, {"arbiter", arbiters()},
      {"config", configs()},       {"control_links", control_links()},
      {"plan", plans()},           {"report", reports()},
      {"reporter", reporters()},   {"timeline_path", timeline_paths()},
      {"topology", topologies()}};
  for (const auto& [target, seeds] : seeds_of) {
    const auto folder = std::filesystem::path(argv[1]) / target;
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream file(folder / std::to_string(i), std::ios::binary);
      file << seeds[i];
      if (!file.flush()) {
        fmt::print(stderr, "cannot write to {}\n", folder.string());
        return 1;
      }
    }
  }
}
