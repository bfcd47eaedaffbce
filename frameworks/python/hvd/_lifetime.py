"""Beginning and end: init(), shutdown(), session(), and what happens when the program ends in another way."""

from __future__ import annotations

import atexit
import contextlib
import sys
from typing import Any, Iterable, Iterator, Optional, Union

from . import _core
from ._errors import InvalidArgumentError
from ._process_sets import ProcessSet

_MOST_REASON = 2000  # characters of an exception's text that the other ranks are told
_sets: list[ProcessSet] = []  # made by init()
_previous_hook: Any = None


def init(
    comm: Any = None,
    process_sets: Optional[Iterable[Union[ProcessSet, Iterable[int]]]] = None,
    **settings: Any,
) -> None:
    """Joins the other ranks that the MPI launcher has started; without a launcher a world of one rank. Does nothing when
    initialised already.

    comm: an mpi4py communicator whose ranks are to be the world; None: all.
    process_sets: ProcessSet objects or lists of ranks to make known from the start, the same on all ranks.
    settings: any field of hvd's configuration (fusion_threshold="64MiB", stall_warning=30, timeline="trace.json",
        on_stall=callable, ...), which overrides the environment variable of that setting.

    Raises InvalidArgumentError for a setting that does not exist or whose value is wrong, MismatchError when ranks
    differ in what must agree, StallError when a rank does not come within start_timeout.
    """
    if _core.is_initialized():
        return
    sets = [one if isinstance(one, ProcessSet) else ProcessSet(one) for one in _listed(process_sets)]
    settings["process_sets"] = [one.ranks for one in sets]
    _core.init(settings, _address(comm))
    for number, one in enumerate(sets, 1):
        one.process_set_id = number
    _sets[:] = sets
    _watch_exceptions()


def shutdown() -> None:
    """Leaves; waits for what this rank has submitted, at most shutdown_timeout. init() may follow. Does nothing when not
    initialised."""
    _core.shutdown()
    _forget_sets()


def leave(reason: str) -> None:
    """Leaves because this process fails: what is in flight fails on all ranks, with `reason` in the text."""
    _core.leave(str(reason)[:_MOST_REASON].encode("utf-8", "backslashreplace").decode())
    _forget_sets()


@contextlib.contextmanager
def session(*args: Any, **kwargs: Any) -> Iterator[None]:
    """init(...) and shutdown() around a block. An exception that leaves the block is told to the other ranks."""
    init(*args, **kwargs)
    try:
        yield
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            shutdown()
        else:
            leave(_text_of(type(error), error))
        raise
    else:
        shutdown()


def _listed(process_sets):
    return [] if process_sets is None or process_sets == "dynamic" else list(process_sets)


def _forget_sets():
    for one in _sets:
        one.process_set_id = None
    _sets.clear()


def _address(comm):
    if comm is None:
        return 0
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is not None and isinstance(comm, mpi4py.Comm):
        return mpi4py._addressof(comm)
    raise InvalidArgumentError(f"init: comm is an mpi4py communicator or None, not {comm!r}")


def _text_of(kind, error):
    text = str(error)
    return f"{kind.__name__}: {text}" if text else kind.__name__


def _watch_exceptions():
    """Puts our hook before the one that is there, once; one that somebody puts before ours calls it or does not."""
    global _previous_hook
    if _previous_hook is not None:
        return
    _previous_hook = sys.excepthook
    sys.excepthook = _tell_and_report
    atexit.register(_leave_at_exit)


def _tell_and_report(kind, error, traceback):
    _previous_hook(kind, error, traceback)
    if _core.is_initialized():
        leave(_text_of(kind, error))


def _leave_at_exit():
    """While Python's other parts are still there."""
    _core.shutdown("its process is ending (exit in progress)")
