"""Arrays that are not NumPy's, and how long memory is kept."""

import array
import gc
import weakref

import numpy
import pytest


def dtype(hvd, name):
    return hvd._core.dtypes[name]


class OnlyDlpack:
    """An array of some framework: DLPack and nothing else."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnGpu(OnlyDlpack):
    """Claims that its memory is a GPU's: the core's arrays can say so."""


def test_objects_with_the_buffer_protocol_are_used_in_place(hvd):
    expected = [hvd.size()] * 4
    for one in (array.array("d", [1] * 4), array.array("l", [1] * 4), bytearray([1] * 4), memoryview(bytearray([1] * 4))):
        assert hvd.allreduce_(one, op=hvd.Sum) is one
        assert list(one) == expected
        result = hvd.allreduce(one, op=hvd.Sum)
        assert list(memoryview(result)) == [hvd.size() ** 2] * 4
        assert isinstance(result, hvd.Array)


def test_objects_with_dlpack_are_used_in_place(hvd):
    values = numpy.full((2, 3), hvd.rank() + 1, "float32")
    total = hvd.size() * (hvd.size() + 1) / 2
    result = hvd.allreduce(OnlyDlpack(values), op=hvd.Sum)
    assert (numpy.asarray(result) == total).all()
    assert (values == hvd.rank() + 1).all()
    hvd.allreduce_(OnlyDlpack(values), op=hvd.Sum)
    assert (values == total).all()


def test_what_is_not_dense_is_copied_when_it_is_only_read(hvd):
    base = numpy.arange(24, dtype="float64").reshape(4, 6) + hvd.rank()
    for view in (base.T, base[:, ::2], base[::-1], base[1:3, 2:5]):
        expected = view * hvd.size() + hvd.size() * (hvd.size() - 1) / 2 - hvd.rank() * hvd.size()
        numpy.testing.assert_allclose(hvd.allreduce(view, op=hvd.Sum), expected)
        numpy.testing.assert_allclose(numpy.asarray(hvd.allreduce(OnlyDlpack(view), op=hvd.Sum)), expected)


def test_hvds_arrays_are_exported_by_dlpack_in_both_versions(hvd):
    one = hvd.allgather(hvd.array_of(array.array("f", [hvd.rank()] * 2)))
    expected = numpy.repeat(numpy.arange(hvd.size(), dtype="float32"), 2)
    numpy.testing.assert_array_equal(numpy.from_dlpack(one), expected)
    for version in (None, (0, 8), (1, 0)):
        again = hvd._core.from_dlpack(one.__dlpack__(max_version=version), True, None)
        assert (again.pointer, again.shape, again.dtype) == (one.pointer, one.shape, one.dtype)
    del one
    gc.collect()
    numpy.testing.assert_array_equal(numpy.asarray(again), expected)  # which keeps the memory
    unused = again.__dlpack__()
    del again, unused


def test_device_memory_is_refused_with_its_device(hvd):
    somewhere = hvd.Array(4096, [4], dtype(hvd, "float32"), gpu=3)
    assert somewhere.__dlpack_device__() == (2, 3)
    for one in (somewhere, OnGpu(somewhere)):
        with pytest.raises(hvd.InvalidArgumentError, match="on gpu 3"):
            hvd.allreduce_(one)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3", "float8_e5m2"])
def test_element_types_that_numpy_lacks_travel_as_raw_bits(hvd, name):
    raw = numpy.full(6, 0x3F80 if name == "bfloat16" else 0x38 + hvd.rank(), "uint16" if name == "bfloat16" else "uint8")
    view = hvd._core.from_buffer(raw, True, dtype(hvd, name))
    assert view.dtype_name == name
    gathered = hvd.allgather(view)
    assert (gathered.dtype_name, gathered.shape) == (name, (6 * hvd.size(),))
    if name == "bfloat16":
        hvd.allreduce_(view, op=hvd.Sum)  # of ones
        assert (raw.astype("uint32") << 16).view("float32").tolist() == [hvd.size()] * 6
    else:
        assert numpy.asarray(gathered)[-1] == 0x38 + hvd.size() - 1
        with pytest.raises(hvd.InvalidArgumentError, match=name):
            hvd.allreduce_(view)


def test_bfloat16_of_ml_dtypes_stays_what_it_is(hvd):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    mine = numpy.ones(5, ml_dtypes.bfloat16)
    result = hvd.allreduce(mine, op=hvd.Sum)
    assert result.dtype == mine.dtype
    assert result.astype("float32").tolist() == [hvd.size()] * 5


def test_torch_tensors_come_back_as_torch_tensors(hvd):
    torch = pytest.importorskip("torch")
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
        result = hvd.allreduce(torch.ones(3, dtype=kind), op=hvd.Sum)
        assert isinstance(result, torch.Tensor) and result.dtype == kind
        assert result.tolist() == [hvd.size()] * 3
    assert isinstance(hvd.allgather(torch.ones(2, 2)), torch.Tensor)


def test_arrays_live_as_long_as_the_operation_even_when_everybody_lets_go(hvd):
    """The last rank comes late; what the others have dropped must still be there."""
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")
    late = hvd.rank() == hvd.size() - 1
    if late:
        hvd.barrier(name="all dropped")
    mine = numpy.ones(100_000)
    alive = weakref.ref(mine)
    handle = hvd.allreduce_async_(mine, op=hvd.Sum, name="dropped")
    if late:
        assert (handle.wait() == hvd.size()).all()
        del handle, mine
    else:
        del handle, mine
        gc.collect()
        assert alive() is not None
        hvd.barrier(name="all dropped")
    hvd.barrier(name="dropped is over")
    gc.collect()
    assert alive() is None  # the barrier's submission has looked after those who are done


def test_results_outlive_their_handles(hvd):
    result = hvd.allgather(numpy.full(1000, hvd.rank()))
    gc.collect()
    assert result[-1] == hvd.size() - 1


def test_an_array_at_an_address_keeps_its_owner(hvd):
    owner = numpy.ones(4, "float32")
    alive = weakref.ref(owner)
    one = hvd.Array(owner.ctypes.data, owner.shape, dtype(hvd, "float32"), owner)
    assert one.owner is owner
    del owner
    hvd.allreduce_(one, op=hvd.Sum)
    assert numpy.asarray(one).tolist() == [hvd.size()] * 4
    assert alive() is not None
    del one
    gc.collect()
    assert alive() is None
    with pytest.raises(hvd.InvalidArgumentError, match="no dtype 99"):
        hvd.Array(0, [1], 99)


def test_many_operations_are_submitted_and_awaited_in_one_call(hvd):
    names = [f"batch {i}" for i in range(161)]
    for step in range(3):
        values = [numpy.full(i, hvd.rank() + step, "float32") for i in range(161)]
        views = [hvd.array_of(one, writable=True) for one in values]
        handles = hvd._core.allreduce_each_async(views, views, names, int(hvd.Sum))
        hvd._core.wait_all(handles)
        assert hvd._core.all_ready(handles)
        total = hvd.size() * (hvd.size() - 1) // 2 + step * hvd.size()
        assert all((one == total).all() for one in values)
    with pytest.raises(hvd.InvalidArgumentError, match="1 inputs, 1 outputs and 2 names"):
        hvd._core.allreduce_each_async(views[:1], views[:1], names[:2])


def test_of_many_those_before_a_refused_name_are_under_way(hvd):
    values = [numpy.ones(2) for _ in range(3)]
    views = [hvd.array_of(one, writable=True) for one in values]
    with pytest.raises(hvd.InvalidArgumentError, match="NUL"):
        hvd._core.allreduce_each_async(views, views, ["a", "b", "\0"], int(hvd.Sum))
    hvd.barrier(name="nothing was submitted")
    assert all((one == 1).all() for one in values)
    if hvd.size() == 1:
        return  # nothing stays in flight
    if hvd.rank() == 0:
        with pytest.raises(hvd.DuplicateNameError, match="'a'"):
            hvd._core.allreduce_each_async(views, views, ["a", "b", "a"], int(hvd.Sum))
    hvd.barrier(name="refused")
    if hvd.rank() != 0:
        hvd._core.wait_all(hvd._core.allreduce_each_async(views[:2], views[:2], ["a", "b"], int(hvd.Sum)))
    hvd.barrier(name="both are done")
    assert all((one == hvd.size()).all() for one in values[:2])
