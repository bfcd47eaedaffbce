"""allgather, gather, scatter, alltoall, send and recv, barrier, join; see _reductions.py for what the arguments have in
common."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _core
from ._arrays import array_of, like
from ._handles import Handle, allocated, common, waiting
from ._process_sets import ProcessSet, id_of

Set = Optional[ProcessSet]
Name = Optional[str]
Splits = Optional[Sequence[int]]


def allgather_async(tensor: Any, name: Name = None, process_set: Set = None, timeout: float = 0.0) -> Handle:
    """As allgather(), which it starts."""
    return allocated(_core.allgather_async, [tensor], True, **common(name, process_set, timeout))


def grouped_allgather_async(
    tensors: Sequence[Any], name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As grouped_allgather(), which it starts."""
    return allocated(_core.allgather_async, tensors, False, **common(name, process_set, timeout))


def gather_async(
    tensor: Any, root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As gather(), which it starts."""
    return allocated(_core.gather_async, [tensor], True, root_rank=root_rank, **common(name, process_set, timeout))


def grouped_gather_async(
    tensors: Sequence[Any], root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As grouped_gather(), which it starts."""
    return allocated(_core.gather_async, tensors, False, root_rank=root_rank, **common(name, process_set, timeout))


allgather = waiting(
    allgather_async,
    """The ranks' tensors one after the other along dimension 0, in rank order, on all ranks. First dimensions may
    differ, the others and the dtype agree. Returns a new array. A scalar is an error.""",
)
grouped_allgather = waiting(
    grouped_allgather_async,
    """allgather() of a list of tensors as one operation. Returns new arrays.""",
)
gather = waiting(gather_async, """allgather() on the root alone; the others get no rows.""")
grouped_gather = waiting(grouped_gather_async, """gather() of a list of tensors as one operation.""")


def scatter_async(
    tensor: Any = None,
    root_rank: int = 0,
    splits: Splits = None,
    name: Name = None,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As scatter(), which it starts."""
    if tensor is None:  # counts on the root alone
        tensor = _core.empty((0,), _core.dtypes["float32"])
    return allocated(
        _core.scatter_async,
        [tensor],
        True,
        root_rank=root_rank,
        splits=_listed(splits),
        **common(name, process_set, timeout),
    )


def grouped_scatter_async(
    tensors: Sequence[Any] = (),
    root_rank: int = 0,
    splits: Splits = None,
    name: Name = None,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_scatter(), which it starts."""
    return allocated(
        _core.scatter_async,
        tensors,
        False,
        root_rank=root_rank,
        splits=_listed(splits),
        **common(name, process_set, timeout),
    )


scatter = waiting(
    scatter_async,
    """The root's rows shared out along dimension 0, in rank order. `tensor` counts on the root alone; the others
    may leave it out, or give one of the kind that they want to get. splits, of the root: rows for each rank of
    the set; None: equal shares, the first ranks getting one row more when there is a remainder. Returns a new
    array.""",
)
grouped_scatter = waiting(
    grouped_scatter_async,
    """scatter() of a list of tensors as one operation; `splits` are those of one tensor after the other. The root
    alone says how many there are. Returns new arrays.""",
)


def alltoall_async(
    tensor: Any, splits: Splits = None, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As alltoall(), which it starts."""
    with_splits = splits is not None
    core = _core.alltoall_async([array_of(tensor)], _listed(splits), **common(name, process_set, timeout))

    def finish(done: _core.Handle) -> Any:
        result = like(done.take_outputs()[0], tensor)
        return (result, done.received_splits()) if with_splits else result

    return Handle(core, finish)


def grouped_alltoall_async(
    tensors: Sequence[Any], splits: Splits = None, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As grouped_alltoall(), which it starts."""
    core = _core.alltoall_async([array_of(t) for t in tensors], _listed(splits), **common(name, process_set, timeout))

    def finish(done: _core.Handle) -> Any:
        results = [like(output, tensor) for output, tensor in zip(done.take_outputs(), tensors)]
        received = done.received_splits()
        ranks = len(received) // len(tensors)
        return results, [received[i * ranks : (i + 1) * ranks] for i in range(len(tensors))]

    return Handle(core, finish)


alltoall = waiting(
    alltoall_async,
    """Every rank's rows shared out to all. splits: rows for each rank of the set, adding up to the tensor's; None:
    equal shares, which must divide. Returns the rows that each rank had for this one, in rank order; with
    splits a pair of that and the list of how many came from each.""",
)
grouped_alltoall = waiting(
    grouped_alltoall_async,
    """alltoall() of a list of tensors as one operation; `splits` are those of one tensor after the other. Returns
    a pair: new arrays, and for each the list of how many rows came from each rank.""",
)


def send_async(tensor: Any, to_rank: int, name: Name = None, process_set: Set = None, timeout: float = 0.0) -> Handle:
    """As send(), which it starts."""
    return Handle(_core.send_async(array_of(tensor), to_rank, **common(name, process_set, timeout)))


def recv_async(tensor: Any, from_rank: int, name: Name = None, process_set: Set = None, timeout: float = 0.0) -> Handle:
    """As recv(), which it starts."""
    array = array_of(tensor, writable=True)
    return Handle(_core.recv_async(array, from_rank, **common(name, process_set, timeout)), lambda _: tensor)


send = waiting(send_async, """One tensor to another rank, which calls recv(). Names, or the order, pair the two.""")
recv = waiting(recv_async, """What another rank sends, into `tensor`, which it returns. Shapes and dtypes agree.""")


def barrier_async(name: Name = None, process_set: Set = None, timeout: float = 0.0) -> Handle:
    """As barrier(), which it starts."""
    return Handle(_core.barrier_async(**common(name, process_set, timeout)))


barrier = waiting(barrier_async, """Returns when all ranks of the set have called it.""")


def join_async(process_set: Set = None, timeout: float = 0.0) -> Handle:
    """As join(), which it starts."""
    return Handle(_core.join_async(id_of(process_set), timeout), lambda done: done.last_joined_rank())


join = waiting(
    join_async,
    """Says that this rank has no more data, and serves the others' operations until all ranks of the set have
    joined. Returns the rank that joined last.""",
)


def check_consistency(tensors: Sequence[Any], names: Sequence[str] = (), process_set: Set = None) -> None:
    """Compares tensors across the ranks, which pass as many in one order. Raises MismatchError that names the first that
    differs, with the ranks; `names` are for that text."""
    _core.check_consistency([array_of(tensor) for tensor in tensors], list(names), id_of(process_set))


def _listed(splits: Splits) -> list[int]:
    return [] if splits is None else [int(rows) for rows in splits]
