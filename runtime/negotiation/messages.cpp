#include "negotiation/messages.h"

#include "negotiation/wire.h"

namespace hvd {

namespace {

constexpr std::uint8_t operation_count = 4;
constexpr std::uint8_t error_code_count = 8;
constexpr std::uint8_t device_kind_count = 2;

void put(WireWriter& out, const Request& r) {
  out.put_text(r.name);
  out.put(r.process_set);
  out.put(r.operation);
  out.put(r.dtype);
  out.put_list(r.shape.dims(), [&](std::int64_t dim) { out.put(dim); });
  out.put(r.reduce_op);
  out.put(r.prescale);
  out.put(r.postscale);
  out.put(static_cast<std::int32_t>(r.root));
  out.put(r.device);
}

Shape get_shape(WireReader& in) {
  const auto dims = in.get_list([&] { return in.get<std::int64_t>(); });
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
  r.dtype = in.get<DataType>(data_type_count);
  r.shape = get_shape(in);
  r.reduce_op = in.get<ReduceOp>(reduce_op_count);
  r.prescale = in.get<double>();
  r.postscale = in.get<double>();
  r.root = in.get<std::int32_t>();
  r.device = in.get<Device::Kind>(device_kind_count);
  return r;
}

}  // namespace

Bytes encode(const Report& report) {
  WireWriter out;
  out.put_list(report.ready, [&](const Ready& ready) {
    out.put(ready.id);
    out.put(ready.fingerprint);
    out.put(ready.rows);
    out.put<std::uint8_t>(ready.request.has_value());
    if (ready.request) put(out, *ready.request);
  });
  out.put<std::uint8_t>(report.leave.has_value());
  if (report.leave) {
    out.put_text(report.leave->reason);
    out.put<std::uint8_t>(report.leave->at_once);
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
    ready.rows = in.get<std::int64_t>();
    if (in.get_flag()) ready.request = get_request(in);
    return ready;
  });
  if (in.get_flag()) {
    report.leave.emplace();
    report.leave->reason = in.get_text();
    report.leave->at_once = in.get_flag();
  }
  in.expect_end();
  return report;
}

Bytes encode(const Plan& plan) {
  WireWriter out;
  out.put_list(plan.names, [&](const Naming& naming) {
    out.put(naming.id);
    out.put(naming.process_set);
    out.put_text(naming.name);
  });
  out.put_list(plan.batches, [&](const Batch& batch) {
    out.put(batch.number);
    out.put_list(batch.entries, [&](const BatchEntry& entry) {
      out.put(entry.id);
      out.put_list(entry.rows, [&](std::int64_t rows) { out.put(rows); });
    });
  });
  out.put_list(plan.failures, [&](const FailedTensor& failed) {
    out.put(failed.id);
    out.put_list(failed.ranks, [&](int rank) { out.put(static_cast<std::int32_t>(rank)); });
    out.put(failed.failure.code);
    out.put_text(failed.failure.text);
  });
  out.put<std::uint8_t>(plan.stop.has_value());
  if (plan.stop) {
    out.put_text(plan.stop->reason);
    out.put<std::uint8_t>(plan.stop->abandon);
  }
  return out.take();
}

Plan decode_plan(BytesView bytes) {
  WireReader in(bytes);
  Plan plan;
  plan.names = in.get_list([&] {
    Naming naming;
    naming.id = in.get<std::uint32_t>();
    naming.process_set = in.get<std::uint32_t>();
    naming.name = in.get_text();
    return naming;
  });
  plan.batches = in.get_list([&] {
    Batch batch;
    batch.number = in.get<std::uint64_t>();
    batch.entries = in.get_list([&] {
      BatchEntry entry;
      entry.id = in.get<std::uint32_t>();
      entry.rows = in.get_list([&] { return in.get<std::int64_t>(); });
      return entry;
    });
    return batch;
  });
  plan.failures = in.get_list([&] {
    FailedTensor failed;
    failed.id = in.get<std::uint32_t>();
    failed.ranks = in.get_list([&] { return int{in.get<std::int32_t>()}; });
    failed.failure.code = in.get<ErrorCode>(error_code_count);
    failed.failure.text = in.get_text();
    return failed;
  });
  if (in.get_flag()) {
    plan.stop.emplace();
    plan.stop->reason = in.get_text();
    plan.stop->abandon = in.get_flag();
  }
  in.expect_end();
  return plan;
}

}  // namespace hvd
