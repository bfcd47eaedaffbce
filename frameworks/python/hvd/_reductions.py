"""allreduce, reduce, reduce_scatter and broadcast.

Every operation has a form that returns the result and an `_async` form that returns a Handle; those whose result has the
input's shape also have in-place forms, `name_` and `name_async_`. Grouped forms do a list of tensors as one operation: all
or none of them run. Tensors are NumPy's arrays or anything with the buffer protocol or DLPack; results are of the same
kind. Common arguments:

name: the same on all ranks, at most once in flight on each. Without one, operations of a kind are paired by their order.
op: one of hvd.Average (which None stands for), Sum, Adasum, Min, Max, Product.
prescale_factor, postscale_factor: multiply each input before, and the result after it is combined.
root_rank, ranks: those of the world, also within a process set.
process_set: the ranks that take part; all by default.
timeout: seconds after which the operation fails with StallError when a rank does not come; 0: the setting stall_shutdown.

Wrong arguments raise InvalidArgumentError or DuplicateNameError (both are ValueErrors) at once, on this rank alone. What
goes wrong between the ranks is raised on every rank concerned, by the form that waits or by Handle.wait().
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _core
from ._handles import Handle, allocated, common, in_place, into_new, reduction, waiting
from ._process_sets import ProcessSet

Set = Optional[ProcessSet]
Name = Optional[str]
Op = Optional[int]


def allreduce_async(
    tensor: Any,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As allreduce(), which it starts."""
    return into_new(
        _core.allreduce_async,
        [tensor],
        True,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


def allreduce_async_(
    tensor: Any,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As allreduce_(), which it starts."""
    return in_place(
        _core.allreduce_async,
        [tensor],
        True,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


allreduce = waiting(
    allreduce_async,
    """Combines the ranks' tensors element by element, on all of them: the same bits everywhere. Shapes and dtypes
    agree. Returns a new array.""",
)
allreduce_ = waiting(allreduce_async_, """allreduce() in place. Returns `tensor`.""")


def grouped_allreduce_async(
    tensors: Sequence[Any],
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_allreduce(), which it starts."""
    return into_new(
        _core.allreduce_async,
        tensors,
        False,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


def grouped_allreduce_async_(
    tensors: Sequence[Any],
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_allreduce_(), which it starts."""
    return in_place(
        _core.allreduce_async,
        tensors,
        False,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


grouped_allreduce = waiting(
    grouped_allreduce_async,
    """allreduce() of a list of tensors as one operation. Returns new arrays.""",
)
grouped_allreduce_ = waiting(
    grouped_allreduce_async_,
    """allreduce_() of a list of tensors as one operation. Returns `tensors`.""",
)


def reduce_async(
    tensor: Any,
    root_rank: int = 0,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As reduce(), which it starts."""
    return into_new(
        _core.reduce_async,
        [tensor],
        True,
        root_rank=root_rank,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


def reduce_async_(
    tensor: Any,
    root_rank: int = 0,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As reduce_(), which it starts."""
    return in_place(
        _core.reduce_async,
        [tensor],
        True,
        root_rank=root_rank,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


reduce = waiting(
    reduce_async,
    """allreduce() with the result on the root alone; the others get their own values. Returns a new array.""",
)
reduce_ = waiting(reduce_async_, """reduce() in place. Returns `tensor`.""")


def grouped_reduce_async(
    tensors: Sequence[Any],
    root_rank: int = 0,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_reduce(), which it starts."""
    return into_new(
        _core.reduce_async,
        tensors,
        False,
        root_rank=root_rank,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


def grouped_reduce_async_(
    tensors: Sequence[Any],
    root_rank: int = 0,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_reduce_(), which it starts."""
    return in_place(
        _core.reduce_async,
        tensors,
        False,
        root_rank=root_rank,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


grouped_reduce = waiting(
    grouped_reduce_async,
    """reduce() of a list of tensors as one operation. Returns new arrays.""",
)
grouped_reduce_ = waiting(
    grouped_reduce_async_,
    """reduce_() of a list of tensors as one operation. Returns `tensors`.""",
)


def broadcast_async(
    tensor: Any, root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As broadcast(), which it starts."""
    return into_new(_core.broadcast_async, [tensor], True, root_rank=root_rank, **common(name, process_set, timeout))


def broadcast_async_(
    tensor: Any, root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As broadcast_(), which it starts."""
    return in_place(_core.broadcast_async, [tensor], True, root_rank=root_rank, **common(name, process_set, timeout))


broadcast = waiting(
    broadcast_async,
    """The root's values on all ranks. Shapes and dtypes agree. Returns a new array.""",
)
broadcast_ = waiting(broadcast_async_, """broadcast() in place. Returns `tensor`.""")


def grouped_broadcast_async(
    tensors: Sequence[Any], root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As grouped_broadcast(), which it starts."""
    return into_new(_core.broadcast_async, tensors, False, root_rank=root_rank, **common(name, process_set, timeout))


def grouped_broadcast_async_(
    tensors: Sequence[Any], root_rank: int = 0, name: Name = None, process_set: Set = None, timeout: float = 0.0
) -> Handle:
    """As grouped_broadcast_(), which it starts."""
    return in_place(_core.broadcast_async, tensors, False, root_rank=root_rank, **common(name, process_set, timeout))


grouped_broadcast = waiting(
    grouped_broadcast_async,
    """broadcast() of a list of tensors as one operation. Returns new arrays.""",
)
grouped_broadcast_ = waiting(
    grouped_broadcast_async_,
    """broadcast_() of a list of tensors as one operation. Returns `tensors`.""",
)


def reduce_scatter_async(
    tensor: Any,
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As reduce_scatter(), which it starts."""
    return allocated(
        _core.reduce_scatter_async,
        [tensor],
        True,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


def grouped_reduce_scatter_async(
    tensors: Sequence[Any],
    name: Name = None,
    op: Op = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Set = None,
    timeout: float = 0.0,
) -> Handle:
    """As grouped_reduce_scatter(), which it starts."""
    return allocated(
        _core.reduce_scatter_async,
        tensors,
        False,
        **reduction(op, prescale_factor, postscale_factor),
        **common(name, process_set, timeout),
    )


reduce_scatter = waiting(
    reduce_scatter_async,
    """allreduce() with the result shared out along dimension 0, in rank order: rows / ranks each, the first rows %
    ranks ranks getting one more. Returns a new array. A scalar is an error.""",
)
grouped_reduce_scatter = waiting(
    grouped_reduce_scatter_async,
    """reduce_scatter() of a list of tensors as one operation. Returns new arrays.""",
)
