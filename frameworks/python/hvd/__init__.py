"""hvd: data-parallel training on many processes. Sums, gathers and exchanges arrays between the ranks that an MPI launcher
has started.

    import hvd, numpy
    with hvd.session():
        total = hvd.allreduce(numpy.ones(3), op=hvd.Sum, name="x")
"""

from . import _mpi

try:
    from . import _core
except ImportError as error:
    raise ImportError(_mpi.explain(error), name="hvd._core") from error
_mpi.check(_core.mpi_library_version(), _core.mpi_built_with)

from ._errors import (  # noqa: E402
    BY_CODE as _BY_CODE,
    CancelledError,
    DuplicateNameError,
    Error,
    HorovodInternalError,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    NotInitializedError,
    RankLostError,
    ShutDownError,
    StallError,
)

_core.set_error_classes(_BY_CODE)

from ._arrays import array_of  # noqa: E402
from ._core import (  # noqa: E402
    Arena,
    Array,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    make_arena,
    mpi_threads_supported,
    rank,
    settings,
    size,
    stats,
)
from ._exchanges import (  # noqa: E402
    allgather,
    allgather_async,
    alltoall,
    alltoall_async,
    barrier,
    barrier_async,
    check_consistency,
    gather,
    gather_async,
    grouped_allgather,
    grouped_allgather_async,
    grouped_alltoall,
    grouped_alltoall_async,
    grouped_gather,
    grouped_gather_async,
    grouped_scatter,
    grouped_scatter_async,
    join,
    join_async,
    recv,
    recv_async,
    scatter,
    scatter_async,
    send,
    send_async,
)
from ._handles import (  # noqa: E402
    Adasum,
    Average,
    Handle,
    Max,
    Min,
    Product,
    ReduceOp,
    Sum,
    poll,
    synchronize,
    wait_all,
)
from ._lifetime import init, leave, session, shutdown  # noqa: E402
from ._process_sets import (  # noqa: E402
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from ._reductions import (  # noqa: E402
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_broadcast,
    grouped_broadcast_,
    grouped_broadcast_async,
    grouped_broadcast_async_,
    grouped_reduce,
    grouped_reduce_,
    grouped_reduce_async,
    grouped_reduce_async_,
    grouped_reduce_scatter,
    grouped_reduce_scatter_async,
    reduce,
    reduce_,
    reduce_async,
    reduce_async_,
    reduce_scatter,
    reduce_scatter_async,
)

__version__ = _core.version
__all__ = [name for name in dir() if not name.startswith("_")]
