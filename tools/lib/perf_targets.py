"""What hvd is meant to reach on one host, as rows that look at the records of hvd-bench and say whether it does."""

import dataclasses
import statistics
from typing import Callable, Optional

MIB = 1 << 20


class Pass:
    """The records of one pass over all benches, at all numbers of ranks. `time` is the quantile that times are taken from."""

    def __init__(self, records, time="median_us"):
        self.records = records
        self.time = time

    def of(self, **fields):
        return [record for record in self.records if all(record.get(key) == value for key, value in fields.items())]

    def number(self, name=None, **fields):
        """The least such number (without a name: the time) of the records that have these fields; None: not measured."""
        name = name or self.time
        found = [record.get(name, record.get("counts", {}).get(name)) for record in self.of(**fields)]
        return min((value for value in found if value is not None), default=None)


def ratio(numerator, denominator):
    return numerator / denominator if numerator is not None and denominator else None


@dataclasses.dataclass(frozen=True)
class Target:
    what: str
    bound: float
    measure: Callable[[Pass], Optional[float]]
    at_most: bool = True
    unit: str = ""  # "x" for a ratio
    missing: str = "no such record"  # why there may be nothing

    def want(self):
        return f"{'<=' if self.at_most else '>='} {self.bound:g}{' ' + self.unit if self.unit else ''}"


@dataclasses.dataclass(frozen=True)
class Row:
    target: Target
    value: Optional[float]  # the median of the passes

    def measured(self):
        unit = f" {self.target.unit}" if self.target.unit else ""
        return "-" if self.value is None else f"{self.value:.3g}{unit}"

    def verdict(self):
        if self.value is None:
            return f"not measured: {self.target.missing}"
        within = self.value <= self.target.bound if self.target.at_most else self.value >= self.target.bound
        return "reached" if within else "not reached"


def rows(passes, targets):
    result = []
    for target in targets:
        values = [value for value in map(target.measure, passes) if value is not None]
        result.append(Row(target, statistics.median(values) if values else None))
    return result


NO_TORCH = "no PyTorch that runs here"
NO_HOROVOD = "no Horovod that runs here"


def latency(name, variant, ranks):
    return lambda p: p.number(name, bench="latency", peer="hvd", variant=variant, ranks=ranks)


def latency_over_mpi(ranks):
    def measure(p):
        mine = p.number(bench="latency", peer="hvd", variant="in-place", ranks=ranks)
        return ratio(mine, p.number(bench="latency", peer="mpi", ranks=ranks))

    return measure


def allreduce_over(peer, variant, other_variant=None, least=MIB):
    """How many times as fast as the other, at the size where that is least."""

    def measure(p):
        found = []
        for mine in p.of(bench="allreduce", peer="hvd", variant=variant, ranks=2, dtype="f32"):
            other = {"peer": peer} | ({"variant": other_variant} if other_variant else {})
            theirs = p.number(bench="allreduce", ranks=2, dtype="f32", bytes=mine["bytes"], **other)
            if mine["bytes"] >= least and theirs is not None:
                found.append(ratio(theirs, mine[p.time]))
        return min((value for value in found if value is not None), default=None)

    return measure


def step(variant, ranks=2, dtype="f32"):
    return {"bench": "step", "peer": "hvd", "variant": variant, "ranks": ranks, "dtype": dtype, "profile": "resnet50"}


def step_over(variant, peer, other_variant=None, ranks=2):
    """How many times as fast as the other, whose own part of the step does not count."""

    def measure(p):
        other = step(other_variant, ranks) | {"peer": peer}
        if other_variant is None:
            del other["variant"]
        theirs = p.number(**other)
        own = p.number("own_us", **other)
        return ratio(theirs - (own or 0.0), p.number(**step(variant, ranks))) if theirs is not None else None

    return measure


def step_time_over_limit(variant):
    return lambda p: ratio(p.number(**step(variant)), p.number(**(step(variant) | {"peer": "limit"})))


def step_dtype_over_f32(dtype):
    return lambda p: ratio(p.number(**step("packed", dtype=dtype)), p.number(**step("packed")))


def step_count(name, variant="packed"):
    return lambda p: p.number(name, **step(variant))


def of_submit(name):
    return lambda p: p.number(name, bench="submit", peer="hvd")


def of_idle(name):
    return lambda p: p.number(name, bench="idle", peer="hvd")


TARGETS = [
    Target("4 B allreduce, blocking, chained, n=2: p50", 4, latency("median_us", "in-place", 2), unit="us"),
    Target("the same: p99 (both cores free)", 30, latency("p99_us", "in-place", 2), unit="us"),
    Target("the same by the background thread: p50", 25, latency("median_us", "async-busy", 2), unit="us"),
    Target("4 B allreduce, n=4: time over MPI's", 5, latency_over_mpi(4), unit="x"),
    Target("4 B allreduce, n=8: time over MPI's", 8, latency_over_mpi(8), unit="x"),
    Target("allreduce >= 1 MiB, packed: of the limit", 0.85, allreduce_over("limit", "packed", "packed"), False, "x"),
    Target("allreduce >= 1 MiB, packed: over MPI's best", 1.0, allreduce_over("mpi", "packed"), False, "x"),
    Target("allreduce >= 64 MiB, packed: over MPI's best", 1.2, allreduce_over("mpi", "packed", least=64 * MIB), False, "x"),
    Target("allreduce >= 1 MiB, arena: of the limit", 0.8, allreduce_over("limit", "arena", "arena"), False, "x"),
    Target("allreduce >= 1 MiB, arena: over MPI's best", 2.5, allreduce_over("mpi", "arena"), False, "x"),
    Target("ResNet-50 step, packed: time over the limit", 1.2, step_time_over_limit("packed"), unit="x"),
    Target("ResNet-50 step, packed: over N blocking MPI calls", 1.3, step_over("packed", "mpi", "per-tensor"), False, "x"),
    Target("ResNet-50 step, packed: over Horovod default", 3.5, step_over("packed", "horovod", "default"), False, "x",
           NO_HOROVOD),
    Target("ResNet-50 step, packed: over Horovod's best", 1.2, step_over("packed", "horovod"), False, "x", NO_HOROVOD),
    Target("ResNet-50 step, packed: over DDP gloo", 4, step_over("packed", "ddp-gloo"), False, "x", NO_TORCH),
    Target("ResNet-50 step, arena: time over the limit", 1.25, step_time_over_limit("arena"), True, "x"),
    Target("ResNet-50 step, arena: over N blocking MPI calls", 2.8, step_over("arena", "mpi", "per-tensor"), False, "x"),
    Target("ResNet-50 step, arena: over Horovod default", 8, step_over("arena", "horovod", "default"), False, "x", NO_HOROVOD),
    Target("ResNet-50 step, arena: over Horovod's best", 2.7, step_over("arena", "horovod"), False, "x", NO_HOROVOD),
    Target("ResNet-50 step, arena: over DDP gloo", 9, step_over("arena", "ddp-gloo"), False, "x", NO_TORCH),
    Target("ResNet-50 step, n=4, packed: over Horovod, 4 MiB fusion", 2, step_over("packed", "horovod", "4194304", 4), False,
           "x", NO_HOROVOD),
    Target("ResNet-50 step, n=4, arena: over Horovod, 4 MiB fusion", 5, step_over("arena", "horovod", "4194304", 4), False,
           "x", NO_HOROVOD),
    Target("f16 step: time over f32's", 0.6, step_dtype_over_f32("f16"), unit="x"),
    Target("bf16 step: time over f32's", 0.6, step_dtype_over_f32("bf16"), unit="x"),
    Target("copies in per gradient byte, packed", 1, step_count("packed_per_byte")),
    Target("copies out per gradient byte, packed", 1, step_count("unpacked_per_byte")),
    Target("copies in per gradient byte, arena", 0, step_count("packed_per_byte", "arena")),
    Target("submit of a known name", 1, of_submit("median_us"), unit="us"),
    Target("allocations per submit", 0, of_submit("allocations")),
    Target("messages per rank and batch, steady step", 2,
           lambda p: ratio(step_count("messages")(p), step_count("batches")(p))),
    Target("full requests, steady step", 0, step_count("full_requests")),
    Target("allocations, steady step", 0, step_count("allocations")),
    Target("idle: messages", 0, of_idle("messages")),
    Target("idle: share of a core", 0.01, of_idle("cores")),
    Target("messages at rank 0 per step, growth with N", 0, lambda p: None, missing="needs thousands of simulated ranks"),
]  # fmt: skip

COLUMNS = ("what", "target", "measured", "")


def cells(found):
    return [(row.target.what, row.target.want(), row.measured(), row.verdict()) for row in found]


def text_table(found):
    lines = [COLUMNS, *cells(found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown_table(found):
    lines = [COLUMNS, ("---", "---:", "---:", "---"), *cells(found)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(found):
    words = [row.verdict().split(":")[0] for row in found]
    return ", ".join(f"{words.count(word)} {word}" for word in ("reached", "not reached", "not measured"))
