"""From other people's arrays to the core's and back. Knows no framework by name but NumPy, and does not import it."""

from __future__ import annotations

import sys
from typing import Any

from . import _core
from ._errors import InvalidArgumentError

# Element types that the buffer protocol cannot name, as ml_dtypes and others call them.
_BY_NAME = {
    "bfloat16": _core.dtypes["bfloat16"],
    "float8_e4m3fn": _core.dtypes["float8_e4m3"],
    "float8_e5m2": _core.dtypes["float8_e5m2"],
}
_RAW = {1: "uint8", 2: "uint16"}


def array_of(obj: Any, writable: bool = False) -> _core.Array:
    """The core's view of `obj`: an array of the core, of NumPy, or anything with the buffer protocol or DLPack.

    What is only read may lie in memory in any way; it is copied when it is not dense and row-major. What is written must
    be writable, dense and row-major. Raises InvalidArgumentError for what is not, TypeError for what is no array.
    """
    if isinstance(obj, _core.Array):
        return obj
    code = _BY_NAME.get(getattr(getattr(obj, "dtype", None), "name", ""), -1)
    if code >= 0 and hasattr(obj, "view"):
        return _core.from_buffer(obj.view(_RAW[_core.dtype_size(code)]), writable, code)
    try:
        return _core.from_buffer(obj, writable)
    except InvalidArgumentError:
        raise
    except (BufferError, ValueError) as error:  # NumPy's ValueError: what is read-only is to be written
        kind = "written to" if writable else "used"
        raise InvalidArgumentError(f"a {type(obj).__name__} cannot be {kind}: {error}") from error
    except TypeError:
        if not hasattr(obj, "__dlpack__"):
            raise TypeError(
                f"a {type(obj).__name__} is no array: it has neither the buffer protocol nor DLPack"
            ) from None
    return _core.from_dlpack(obj.__dlpack__(), writable, obj)


def empty_like(array: _core.Array) -> _core.Array:
    return _core.empty(array.shape, array.dtype)


def like(array: _core.Array, example: Any) -> Any:
    """`array`, which is the core's, as the kind of object that `example` is: NumPy's, of a framework with from_dlpack(),
    or as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(example, (numpy.ndarray, numpy.generic)):
        result = numpy.asarray(array)
        return result if array.dtype not in _BY_NAME.values() else result.view(example.dtype)
    if isinstance(example, _core.Array) or not hasattr(example, "__dlpack__"):
        return array
    package = sys.modules.get(type(example).__module__.partition(".")[0])
    from_dlpack = getattr(package, "from_dlpack", None)
    return array if from_dlpack is None else from_dlpack(array)
