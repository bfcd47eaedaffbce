"""The extension behind the package. Knows no framework: an adapter passes addresses, shapes and dtype codes as Array
objects, and gets Handle objects. All functions raise the package's errors; all are refused in a process forked after
init(), but is_initialized(), which is False there, and shutdown() and leave(), which do nothing there.

Submissions and waits release the GIL; a wait lets Python's signal handlers run. `process_set` is a number, 0 for all
ranks; `timeout` is in seconds, 0 for the setting stall_shutdown; `op` is a ReduceOp's number.
"""

from typing import Any, Optional, Sequence, Union

version: str
mpi_built_with: str  # as mpi_library_version() words it
dtypes: dict[str, int]  # codes by name: uint8 ... complex128, float8_e4m3, float8_e5m2

def mpi_library_version() -> str: ...
def set_error_classes(classes: Sequence[type[BaseException]]) -> None: ...

class Array:
    """A dense row-major tensor: somebody's memory, which `owner` keeps valid, or hvd's own. Has the buffer protocol
    (elements that it cannot name as unsigned integers of their size) and DLPack."""

    def __init__(
        self,
        pointer: int,
        shape: Sequence[int],
        dtype: int,
        owner: object = None,
        writable: bool = True,
        gpu: int = -1,  # index of the device, less than 0: host memory
    ) -> None: ...
    @property
    def pointer(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> int: ...
    @property
    def dtype_name(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def writable(self) -> bool: ...
    @property
    def owner(self) -> Any: ...
    def copy_from(self, other: Array) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def empty(shape: Sequence[int], dtype: int) -> Array:
    """New memory, whose values are undefined."""

def from_buffer(object: Any, writable: bool, dtype: int = -1) -> Array:
    """Of the buffer protocol; a `dtype` of 0 or more reinterprets the elements."""

def from_dlpack(capsule: Any, writable: bool, owner: Any) -> Array: ...
def dtype_size(dtype: int) -> int:
    """Bytes of one element."""

class Handle:
    """An operation under way, and the arrays it uses, which are kept until it is done."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Returns True once the operation is done, and raises what went wrong; False after `timeout` seconds."""

    def ready(self) -> bool: ...
    def cancel(self) -> bool: ...
    def take_outputs(self) -> list[Array]:
        """Waits. What the operation has allocated, in the order of its inputs; at the first call only."""

    def received_splits(self) -> list[int]: ...
    def last_joined_rank(self) -> int: ...

def wait_all(handles: Sequence[Handle]) -> None:
    """Waits for all, then raises the first error among them."""

def all_ready(handles: Sequence[Handle]) -> bool: ...

Name = Union[str, bytes]

# Of several arrays these make one operation, all or none of which runs.
def allreduce_async(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    name: Name = "",
    op: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def allreduce_each_async(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    names: Sequence[Name],
    op: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: int = 0,
    timeout: float = 0.0,
) -> list[Handle]:
    """An operation for each array, submitted in order. When one is refused, those before it stay under way."""

def reduce_async(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    root_rank: int,
    name: Name = "",
    op: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def broadcast_async(
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    root_rank: int,
    name: Name = "",
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def reduce_scatter_async(
    inputs: Sequence[Array],
    name: Name = "",
    op: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def allgather_async(inputs: Sequence[Array], name: Name = "", process_set: int = 0, timeout: float = 0.0) -> Handle: ...
def gather_async(
    inputs: Sequence[Array], root_rank: int, name: Name = "", process_set: int = 0, timeout: float = 0.0
) -> Handle: ...
def scatter_async(
    inputs: Sequence[Array],
    root_rank: int,
    splits: Sequence[int] = ...,
    name: Name = "",
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def alltoall_async(
    inputs: Sequence[Array],
    splits: Sequence[int] = ...,
    name: Name = "",
    process_set: int = 0,
    timeout: float = 0.0,
) -> Handle: ...
def send_async(array: Array, to_rank: int, name: Name = "", process_set: int = 0, timeout: float = 0.0) -> Handle: ...
def recv_async(array: Array, from_rank: int, name: Name = "", process_set: int = 0, timeout: float = 0.0) -> Handle: ...
def barrier_async(name: Name = "", process_set: int = 0, timeout: float = 0.0) -> Handle: ...
def join_async(process_set: int = 0, timeout: float = 0.0) -> Handle: ...
def check_consistency(arrays: Sequence[Array], names: Sequence[str] = ..., process_set: int = 0) -> None: ...
def init(settings: dict[str, Any], communicator: int = 0) -> None:
    """`communicator`: address of an MPI_Comm, 0 for all ranks."""

def shutdown(reason: str = "called shutdown()") -> None: ...
def leave(reason: str) -> None: ...
def is_initialized() -> bool:
    """Whether init() has been called and neither shutdown() nor leave() since; False in a forked child."""

def throw_if_forked() -> None: ...
def settings() -> dict[str, str]:
    """All settings in force, as texts."""

def mpi_threads_supported() -> bool:
    """Whether MPI allows calls from several threads at once."""

def rank() -> int: ...
def size() -> int: ...
def local_rank() -> int:
    """Among the ranks of this host."""

def local_size() -> int: ...
def cross_rank() -> int:
    """Among the ranks of equal local rank, one per host."""

def cross_size() -> int: ...
def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""

def add_process_set(ranks: Sequence[int]) -> int: ...
def remove_process_set(id: int) -> None: ...
def process_set_ranks(id: int) -> list[int]: ...
def process_set_rank(id: int) -> int: ...

class Arena:
    """Memory that the ranks of a host share; arrays in it are allreduced where they lie."""

    def allocate(self, shape: Sequence[int], dtype: int) -> Array: ...
    def clear(self) -> None: ...
    @property
    def used(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def pointer(self) -> int: ...

def make_arena(nbytes: int) -> Arena:
    """Collective over all ranks; zero-filled."""

def stats() -> dict[str, Any]:
    """What this rank has done since init(), counted."""
