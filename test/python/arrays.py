"""Arrays for tests, and what operations must make of them, computed without hvd."""

import numpy

REDUCED = [
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
    "complex64", "complex128",
]
CARRIED = [*REDUCED, "bool"]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (1000,)]


def values(rank, shape, dtype):
    """Small whole numbers, unlike on each rank, so that sums are exact in every dtype."""
    count = int(numpy.prod(shape, dtype=int))
    return ((numpy.arange(count) * 3 + rank + 1) % 5 + 1).reshape(shape).astype(dtype)


def combined(op, ranks, shape, dtype):
    """What allreduce gives; `op` by name."""
    inputs = [values(rank, shape, dtype) for rank in range(ranks)]
    total = inputs[0].copy()
    for one in inputs[1:]:
        total = {"Min": numpy.minimum, "Max": numpy.maximum, "Product": numpy.multiply}.get(op, numpy.add)(total, one)
    if op != "Average":
        return total
    return (total // ranks if total.dtype.kind in "ui" else total / ranks).astype(dtype)


def same(result, expected):
    assert type(result) is type(expected) or isinstance(result, numpy.ndarray)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if expected.dtype.kind in "fc":
        numpy.testing.assert_allclose(result, expected, rtol=2e-3 if expected.dtype == numpy.float16 else 1e-6)
    else:
        numpy.testing.assert_array_equal(result, expected)
