#!/usr/bin/env python3
"""Times one training step's gradients in PyTorch: DistributedDataParallel over gloo, and Horovod where it is installed.

usage: mpirun -np N hvd_bench_ddp.py [--profile NAME] [--rounds R] [--json FILE]

The gradients are those of a profile in tools/profiles, all float32, made by a backward pass that only writes them. The
records are those of hvd-bench: peer `ddp-gloo` with the variants `copies` and `views` (gradient_as_bucket_view) or `horovod`
with its fusion threshold; `counts.own_us` is the backward pass without any communication. The variants take turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

try:
    import torch
    import torch.distributed
except ImportError:
    sys.exit("hvd_bench_ddp.py: there is no PyTorch here")
try:
    import horovod.torch as horovod
except ImportError:
    horovod = None

PROFILES = pathlib.Path(__file__).resolve().parent / "profiles"


def rank_and_size():
    """What the launcher says: Open MPI, MPICH or torchrun."""
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("RANK", "WORLD_SIZE")):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


class WrittenGradients(torch.autograd.Function):
    """A loss whose gradients are given: fresh tensors each time, as a real backward pass makes them."""

    @staticmethod
    def forward(context, sources, *parameters):
        context.sources = sources
        return torch.zeros(())

    @staticmethod
    def backward(context, _gradient):
        return (None, *[source.clone() for source in context.sources])


class Model(torch.nn.Module):
    def __init__(self, shapes, rank):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(shape)) for shape in shapes)
        generator = torch.Generator().manual_seed(rank + 1)
        self.sources = [torch.randint(-3, 5, shape, generator=generator).float() for shape in shapes]

    def forward(self):
        return WrittenGradients.apply(self.sources, *self.weights)

    def check(self, mean):
        """The last gradient holds the mean of all ranks."""
        if not torch.allclose(self.weights[-1].grad, mean):
            raise RuntimeError("wrong result")


def backward_of(model):
    def run():
        for weight in model.parameters():
            weight.grad = None
        model().backward()

    return run


def ddp_contenders(model):
    from torch.nn.parallel import DistributedDataParallel

    contenders = {}
    for variant, views in (("copies", False), ("views", True)):
        contenders["ddp-gloo", variant] = backward_of(DistributedDataParallel(model(), gradient_as_bucket_view=views))
    return contenders


def horovod_contender(model):
    horovod.init()
    threshold = os.environ.get("HOROVOD_FUSION_THRESHOLD", "default")
    optimizer = horovod.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.0), [(f"weight.{i}", w) for i, w in enumerate(model.weights)]
    )

    def run():
        optimizer.zero_grad()
        model().backward()
        optimizer.synchronize()

    return {("horovod", threshold): run}


def measure(contenders, rounds):
    """Times in microseconds, averaged over the ranks, by contender; the first round warms up."""
    times = {key: [] for key in contenders}
    for round_ in range(rounds + 1):
        for key, run in contenders.items():
            torch.distributed.barrier()
            start = time.perf_counter()
            run()
            taken = torch.tensor([time.perf_counter() - start])
            torch.distributed.all_reduce(taken)
            if round_ > 0:
                times[key].append(taken.item() / torch.distributed.get_world_size() * 1e6)
    return times


def record(key, times, own, size, count, profile):
    deciles = statistics.quantiles(times, n=10) if len(times) > 1 else times * 9
    median = statistics.median(times)
    return {
        "bench": "step", "profile": profile, "peer": key[0], "variant": key[1], "ranks": size, "bytes": 4 * count,
        "dtype": "f32", "median_us": median, "p10_us": deciles[0], "p90_us": deciles[-1],
        "busbw_GBps": 2 * (size - 1) / size * 4 * count / median / 1e3,
        "ratio_to_mpi": None, "ratio_to_limit": None, "counts": {"own_us": own},
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--profile", default="resnet50")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    path = PROFILES / f"{options.profile}.json"
    if not path.exists():
        parser.error(f"there is no profile '{options.profile}'")
    shapes = [tensor["shape"] for tensor in json.loads(path.read_text())["tensors"]]

    rank, size = rank_and_size()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // size))
    # The ranks of one mpirun have one parent: a port of their own without asking anybody.
    address = f"tcp://127.0.0.1:{20000 + os.getppid() % 20000}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=size)

    models = []

    def model():
        models.append(Model(shapes, rank))
        return models[-1]

    contenders = {("own", ""): backward_of(model()), **ddp_contenders(model)}
    if horovod is not None:
        contenders.update(horovod_contender(model()))
    times = measure(contenders, options.rounds)
    mean = sum(Model(shapes, other).sources[-1] for other in range(size)) / size
    for checked in models[1:]:
        checked.check(mean)

    own = statistics.median(times.pop(("own", "")))
    count = sum(source.numel() for source in models[0].sources)
    records = [record(key, values, own, size, count, options.profile) for key, values in times.items()]
    if rank == 0:
        for line in records:
            print(f"{line['peer']} {line['variant']}: {line['median_us'] / 1e3:.1f} ms, {own / 1e3:.1f} of it its own")
        if options.json:
            options.json.write_text(json.dumps(records, indent=1) + "\n")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
