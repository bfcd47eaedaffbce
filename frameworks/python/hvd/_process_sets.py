"""Process sets: the ranks that take part in an operation."""

from __future__ import annotations

from typing import Iterable, Optional, Union

from . import _core
from ._errors import InvalidArgumentError


class ProcessSet:
    """Some ranks of the world. Usable once add_process_set() or init(process_sets=...) has made it known on all ranks.

    Attributes: `ranks`, sorted; `process_set_id`, None as long as it is not known.
    """

    def __init__(self, ranks: Iterable[int]):
        self.ranks: list[int] = sorted(set(ranks))
        self.process_set_id: Optional[int] = None

    def size(self) -> int:
        """How many ranks it has."""
        return len(_core.process_set_ranks(self._id()))

    def rank(self) -> int:
        """This rank's position in the set. Raises InvalidArgumentError when it is not in it."""
        position = _core.process_set_rank(self._id())
        if position < 0:
            raise InvalidArgumentError(f"rank {_core.rank()} is not in process set {self!r}")
        return position

    def included(self) -> bool:
        """Whether this rank is in it."""
        return _core.process_set_rank(self._id()) >= 0

    def _id(self) -> int:
        if self.process_set_id is None:
            raise InvalidArgumentError(f"process set {self!r} is not known: give it to add_process_set() or init()")
        return self.process_set_id

    def __eq__(self, other):
        return isinstance(other, ProcessSet) and (self.process_set_id, self.ranks) == (
            other.process_set_id,
            other.ranks,
        )

    def __hash__(self):
        return id(self)

    def __repr__(self):
        number = "unknown" if self.process_set_id is None else self.process_set_id
        return f"ProcessSet(process_set_id={number}, ranks={self.ranks})"


class _World(ProcessSet):
    """The set of all ranks; its ranks are known while hvd is initialised."""

    def __init__(self):
        self.process_set_id = 0

    @property
    def ranks(self) -> list[int]:  # type: ignore[override]
        return list(range(_core.size())) if _core.is_initialized() else []


global_process_set = _World()


def add_process_set(process_set: Union[ProcessSet, Iterable[int]]) -> ProcessSet:
    """Makes a set of ranks known. Collective over all ranks, whichever belong to it.

    Takes a ProcessSet or ranks; returns the ProcessSet. Raises InvalidArgumentError for ranks that do not exist or are a
    set already, MismatchError when the ranks' lists differ.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise InvalidArgumentError(f"{process_set!r} is known already")
    process_set.process_set_id = _core.add_process_set(process_set.ranks)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Forgets a set; collective over all ranks. What is in flight on it fails. False when there is no such set, and for
    the set of all ranks, which stays."""
    if not process_set.process_set_id:
        return False
    _core.remove_process_set(process_set.process_set_id)
    process_set.process_set_id = None
    return True


def id_of(process_set: Optional[ProcessSet]) -> int:
    """The number of a ProcessSet, None standing for all ranks."""
    return 0 if process_set is None else process_set._id()
