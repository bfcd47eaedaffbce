"""What hvd raises. The text names the operation, the tensor, and what each rank said."""


class Error(RuntimeError):
    """Base of everything hvd raises."""


class HorovodInternalError(Error):
    """What has gone wrong between the ranks. Its children tell the kinds apart; only `RankLostError` and
    `ShutDownError` can be mended by going on with other ranks."""


class InternalError(HorovodInternalError):
    """An invariant of hvd itself did not hold, or MPI failed."""


class NotInitializedError(Error, ValueError):
    """Called before init(), after shutdown(), or in a process forked after init()."""


class InvalidArgumentError(Error, ValueError):
    """Wrong on this rank alone: shape, dtype, root, setting. Nothing has been submitted."""


class DuplicateNameError(Error, ValueError):
    """The name is still in flight on this rank. Nothing has been submitted."""


class MismatchError(HorovodInternalError):
    """Ranks submitted unlike requests under one name."""


class StallError(HorovodInternalError):
    """A rank did not come within the bound."""


class RankLostError(HorovodInternalError):
    """A rank's process ended without leaving."""


class ShutDownError(HorovodInternalError):
    """A rank has left: it called shutdown(), is ending, or has failed; the text says which and why."""


class CancelledError(Error):
    """Withdrawn by Handle.cancel()."""


# In the order of the core's error codes.
BY_CODE = (
    InternalError,
    NotInitializedError,
    InvalidArgumentError,
    DuplicateNameError,
    MismatchError,
    StallError,
    RankLostError,
    ShutDownError,
    CancelledError,
)
