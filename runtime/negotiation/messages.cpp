#include "negotiation/messages.h"

#include "negotiation/wire.h"

namespace hvd {

namespace {

constexpr std::uint8_t device_kind_count = 2;

void put_numbers(WireWriter& out, const std::vector<std::int64_t>& numbers) {
  out.put_list(numbers, [&](std::int64_t number) { out.put(number); });
}
std::vector<std::int64_t> get_numbers(WireReader& in) {
  return in.get_list<std::vector<std::int64_t>>([&] { return in.get<std::int64_t>(); });
}

void put_ranks(WireWriter& out, const std::vector<int>& ranks) {
  out.put_list(ranks, [&](int rank) { out.put(static_cast<std::int32_t>(rank)); });
}
std::vector<int> get_ranks(WireReader& in) {
  return in.get_list<std::vector<int>>([&] { return int{in.get<std::int32_t>()}; });
}

void put(WireWriter& out, const Request& r) {
  out.put_text(r.name);
  out.put(r.process_set);
  out.put(r.operation);
  out.put_list(r.tensors, [&](const TensorSpec& tensor) {
    out.put(tensor.dtype);
    out.put_list(tensor.shape.dims(), [&](std::int64_t dim) { out.put(dim); });
  });
  out.put(r.reduce_op);
  out.put(r.prescale);
  out.put(r.postscale);
  out.put(static_cast<std::int32_t>(r.root));
  out.put(static_cast<std::int32_t>(r.peer));
  out.put(r.device);
  out.put(r.timeout);
  out.put(r.call_site);
}

Shape get_shape(WireReader& in) {
  const auto dims = get_numbers(in);
  try {
    return Shape(dims);
  } catch (const InvalidArgumentError& error) {
    throw InternalError(std::string("malformed message: ") + error.what());
  }
}

Request get_request(WireReader& in) {
  Request r;
  r.name = in.get_text();
  r.process_set = in.get<std::uint32_t>();
  r.operation = in.get<Operation>(operation_count);
  const auto tensors = in.get_list([&] {
    const auto dtype = in.get<DataType>(data_type_count);
    return TensorSpec{.dtype = dtype, .shape = get_shape(in)};
  });
  r.tensors.assign(tensors.begin(), tensors.end());
  r.reduce_op = in.get<ReduceOp>(reduce_op_count);
  r.prescale = in.get<double>();
  r.postscale = in.get<double>();
  r.root = in.get<std::int32_t>();
  r.peer = in.get<std::int32_t>();
  r.device = in.get<Device::Kind>(device_kind_count);
  r.timeout = in.get<double>();
  r.call_site = in.get<std::uint64_t>();
  return r;
}

void put_references(WireWriter& out, const List<Reference>& references) {
  out.put_list(references, [&](const Reference& reference) {
    out.put(reference.id);
    out.put_text(reference.key);
  });
}
List<Reference> get_references(WireReader& in) {
  return in.get_list([&] {
    const auto id = in.get<std::uint32_t>();
    return Reference{.id = id, .key = in.get_text()};
  });
}

void put(WireWriter& out, const Batch& batch) {
  out.put(batch.number);
  out.put(batch.process_set);
  put_ranks(out, batch.pair);
  put_ranks(out, batch.absent);
  out.put<std::uint8_t>(batch.change.has_value());
  if (batch.change) {
    out.put(batch.change->id);
    out.put(batch.change->channel);
    put_ranks(out, batch.change->ranks);
  }
  out.put_list(batch.entries, [&](const BatchEntry& entry) {
    out.put(entry.id);
    out.put_list(entry.extents, [&](const auto& numbers) { put_numbers(out, numbers); });
  });
}

Batch get_batch(WireReader& in) {
  Batch batch;
  batch.number = in.get<std::uint64_t>();
  batch.process_set = in.get<std::uint32_t>();
  batch.pair = get_ranks(in);
  batch.absent = get_ranks(in);
  if (in.get_flag()) {
    batch.change.emplace();
    batch.change->id = in.get<std::uint32_t>();
    batch.change->channel = in.get<std::uint32_t>();
    batch.change->ranks = get_ranks(in);
  }
  batch.entries = in.get_list([&] {
    const auto id = in.get<std::uint32_t>();
    return BatchEntry{.id = id,
                      .extents = in.get_list<std::vector<std::vector<std::int64_t>>>([&] { return get_numbers(in); })};
  });
  return batch;
}

}  // namespace

Bytes encode(const Report& report) {
  WireWriter out(64 + 32 * report.ready.size());
  out.put_list(report.ready, [&](const Ready& ready) {
    out.put(ready.id);
    out.put(ready.fingerprint);
    put_numbers(out, ready.extents);
    out.put<std::uint8_t>(ready.request.has_value());
    if (ready.request) put(out, *ready.request);
  });
  put_references(out, report.withdrawn);
  put_references(out, report.blocked);
  out.put(report.plans_seen);
  out.put<std::uint8_t>(report.leave.has_value());
  if (report.leave) {
    out.put_text(report.leave->reason);
    out.put<std::uint8_t>(report.leave->at_once);
    out.put(report.leave->code);
    out.put_text(report.leave->process);
  }
  return out.take();
}

Report decode_report(BytesView bytes) {
  WireReader in(bytes);
  Report report;
  report.ready = in.get_list([&] {
    Ready ready;
    ready.id = in.get<std::uint32_t>();
    ready.fingerprint = in.get<std::uint64_t>();
    ready.extents = get_numbers(in);
    if (in.get_flag()) ready.request = get_request(in);
    return ready;
  });
  report.withdrawn = get_references(in);
  report.blocked = get_references(in);
  report.plans_seen = in.get<std::uint64_t>();
  if (in.get_flag()) {
    report.leave.emplace();
    report.leave->reason = in.get_text();
    report.leave->at_once = in.get_flag();
    report.leave->code = in.get<ErrorCode>(error_code_count);
    report.leave->process = in.get_text();
  }
  in.expect_end();
  return report;
}

Bytes encode(const Plan& plan) {
  std::size_t entries = 0;
  for (const Batch& batch : plan.batches) entries += batch.entries.size();
  WireWriter out(128 * (1 + plan.batches.size()) + 16 * entries);
  out.put(plan.number);
  out.put_list(plan.evicted, [&](std::uint32_t id) { out.put(id); });
  out.put_list(plan.names, [&](const Naming& naming) {
    out.put(naming.id);
    out.put_text(naming.key);
  });
  out.put_list(plan.descriptions, [&](const Description& description) {
    out.put(description.id);
    put(out, description.request);
  });
  out.put_list(plan.batches, [&](const Batch& batch) { put(out, batch); });
  out.put_list(plan.failures, [&](const FailedTensor& failed) {
    out.put(failed.id);
    put_ranks(out, failed.ranks);
    out.put(failed.failure.code);
    out.put_text(failed.failure.text);
  });
  out.put<std::uint8_t>(plan.stop.has_value());
  if (plan.stop) {
    out.put_text(plan.stop->reason);
    out.put<std::uint8_t>(plan.stop->abandon);
    out.put(plan.stop->code);
  }
  return out.take();
}

Plan decode_plan(BytesView bytes) {
  WireReader in(bytes);
  Plan plan;
  plan.number = in.get<std::uint64_t>();
  plan.evicted = in.get_list([&] { return in.get<std::uint32_t>(); });
  plan.names = in.get_list([&] {
    const auto id = in.get<std::uint32_t>();
    return Naming{.id = id, .key = in.get_text()};
  });
  plan.descriptions = in.get_list([&] {
    const auto id = in.get<std::uint32_t>();
    return Description{.id = id, .request = get_request(in)};
  });
  plan.batches = in.get_list([&] { return get_batch(in); });
  plan.failures = in.get_list([&] {
    FailedTensor failed;
    failed.id = in.get<std::uint32_t>();
    failed.ranks = get_ranks(in);
    failed.failure.code = in.get<ErrorCode>(error_code_count);
    failed.failure.text = in.get_text();
    return failed;
  });
  if (in.get_flag()) {
    plan.stop.emplace();
    plan.stop->reason = in.get_text();
    plan.stop->abandon = in.get_flag();
    plan.stop->code = in.get<ErrorCode>(error_code_count);
  }
  in.expect_end();
  return plan;
}

}  // namespace hvd
