"""Handles, and what all operations have in common."""

from __future__ import annotations

import enum
import functools
from typing import Any, Callable, Iterable, Optional, Sequence, TypeVar

from . import _core
from ._arrays import array_of, empty_like, like
from ._process_sets import ProcessSet, id_of


class ReduceOp(enum.IntEnum):
    """How the values of the ranks are combined."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


Average, Sum, Adasum, Min, Max, Product = ReduceOp


class Handle:
    """An operation that is under way. Its arrays are kept until it is done, also when the handle is dropped before."""

    __slots__ = ("_core", "_finish", "_result")

    def __init__(self, core: _core.Handle, finish: Optional[Callable[[_core.Handle], Any]] = None):
        self._core = core
        self._finish = finish
        self._result: Any = None

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Returns the operation's result once it is done; raises what went wrong, the same at every call. With a
        `timeout` in seconds, raises TimeoutError when it is still in flight after that."""
        if not self._core.wait(timeout):
            raise TimeoutError(f"still in flight after {timeout} s")
        if self._finish is not None:
            self._result = self._finish(self._core)
            self._finish = None
        return self._result

    def ready(self) -> bool:
        """True once wait() would not block."""
        return self._core.ready()

    def cancel(self) -> bool:
        """Withdraws the operation unless it is ready on all ranks. True: it will not run here, wait() raises
        CancelledError. False: it has run or failed."""
        return self._core.cancel()


def synchronize(handle: Handle) -> Any:
    """handle.wait()"""
    return handle.wait()


def poll(handle: Handle) -> bool:
    """handle.ready()"""
    return handle.ready()


def wait_all(handles: Iterable[Handle]) -> list[Any]:
    """Waits for all handles, then returns their results in order, or raises the first error among them."""
    handles = list(handles)
    _core.wait_all([handle._core for handle in handles])
    return [handle.wait() for handle in handles]


Submission = TypeVar("Submission", bound=Callable[..., Handle])


def waiting(submission: Submission, doc: str) -> Callable[..., Any]:
    """The form of an `_async` function that waits, with its parameters."""

    @functools.wraps(submission)
    def operation(*args: Any, **kwargs: Any) -> Any:
        return submission(*args, **kwargs).wait()

    operation.__name__ = operation.__qualname__ = submission.__name__.replace("_async", "")
    operation.__doc__ = doc
    return operation


def common(name: Optional[str], process_set: Optional[ProcessSet], timeout: float) -> dict[str, Any]:
    return {"name": name or "", "process_set": id_of(process_set), "timeout": timeout}


def reduction(op: Optional[int], prescale_factor: float, postscale_factor: float) -> dict[str, Any]:
    return {"op": Average if op is None else op, "prescale": prescale_factor, "postscale": postscale_factor}


def _one_or_all(results: Sequence[Any], one: bool) -> Any:
    return results[0] if one else list(results)


def into_new(submit: Callable[..., _core.Handle], tensors: Sequence[Any], one: bool, **options: Any) -> Handle:
    """Submits with new memory for results of the inputs' shapes."""
    inputs = [array_of(tensor) for tensor in tensors]
    outputs = [empty_like(array) for array in inputs]
    handle = submit(inputs, outputs, **options)
    return Handle(handle, lambda _: _one_or_all([like(o, t) for o, t in zip(outputs, tensors)], one))


def in_place(submit: Callable[..., _core.Handle], tensors: Sequence[Any], one: bool, **options: Any) -> Handle:
    arrays = [array_of(tensor, writable=True) for tensor in tensors]
    return Handle(submit(arrays, arrays, **options), lambda _: _one_or_all(tensors, one))


def allocated(submit: Callable[..., _core.Handle], tensors: Sequence[Any], one: bool, **options: Any) -> Handle:
    """Submits what allocates its results itself."""

    def finish(core: _core.Handle) -> Any:
        outputs = core.take_outputs()
        # A rank that gave no tensors to a scatter has no examples.
        examples = tensors or [None] * len(outputs)
        return _one_or_all([like(output, example) for output, example in zip(outputs, examples)], one)

    return Handle(submit([array_of(tensor) for tensor in tensors], **options), finish)
