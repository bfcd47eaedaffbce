"""Every operation on NumPy arrays."""

import arrays
import numpy
import pytest


@pytest.mark.parametrize("op", ["Average", "Sum", "Min", "Max", "Product"])
@pytest.mark.parametrize("dtype", arrays.REDUCED)
def test_allreduce_combines_in_every_dtype_and_shape(hvd, dtype, op):
    if dtype.startswith("complex") and op in ("Min", "Max"):
        with pytest.raises(hvd.InvalidArgumentError, match=f"{op} .*{dtype}|{dtype}.* {op}"):
            hvd.allreduce(numpy.zeros(3, dtype), op=hvd.ReduceOp[op])
        return
    for shape in arrays.SHAPES:
        mine = arrays.values(hvd.rank(), shape, dtype)
        expected = arrays.combined(op, hvd.size(), shape, dtype)
        arrays.same(hvd.allreduce(mine, op=hvd.ReduceOp[op], name=f"new {shape}"), expected)
        arrays.same(mine, arrays.values(hvd.rank(), shape, dtype))
        assert hvd.allreduce_(mine, op=hvd.ReduceOp[op], name=f"in place {shape}") is mine
        arrays.same(mine, expected)


def test_adasum_of_equal_gradients_is_their_average(hvd):
    if hvd.size() & (hvd.size() - 1):
        pytest.skip("the pairs of three ranks are no plain average")
    same = numpy.arange(1, 9, dtype=numpy.float64)
    numpy.testing.assert_allclose(hvd.allreduce(same, op=hvd.Adasum), same)


def test_bool_is_combined_by_or_and_and(hvd):
    mine = numpy.array([True, False, hvd.rank() == 0])
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == [True, False, True]
    assert hvd.allreduce(mine, op=hvd.Min).tolist() == [True, False, hvd.size() == 1]


def test_scales_multiply_before_and_after(hvd):
    result = hvd.allreduce(numpy.ones(4), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4)
    assert result.tolist() == [2.0 * hvd.size()] * 4


def test_reduce_gives_the_root_the_result_and_the_others_their_own(hvd):
    root = hvd.size() - 1
    mine = arrays.values(hvd.rank(), (5,), "float32")
    expected = arrays.combined("Sum", hvd.size(), (5,), "float32") if hvd.rank() == root else mine.copy()
    arrays.same(hvd.reduce(mine, root, op=hvd.Sum), expected)
    results = hvd.grouped_reduce([mine, mine], root, op=hvd.Sum)
    for result in results:
        arrays.same(result, expected)
    assert hvd.reduce_(mine, root, op=hvd.Sum) is mine
    arrays.same(mine, expected)


@pytest.mark.parametrize("dtype", arrays.CARRIED)
def test_broadcast_gives_all_ranks_the_roots_values(hvd, dtype):
    for root in range(hvd.size()):
        for shape in arrays.SHAPES:
            mine = arrays.values(hvd.rank(), shape, dtype)
            expected = arrays.values(root, shape, dtype)
            arrays.same(hvd.broadcast(mine, root), expected)
            arrays.same(mine, arrays.values(hvd.rank(), shape, dtype))
            hvd.broadcast_(mine, root)
            arrays.same(mine, expected)


@pytest.mark.parametrize("dtype", arrays.CARRIED)
def test_allgather_and_gather_put_unlike_numbers_of_rows_together(hvd, dtype):
    mine = arrays.values(hvd.rank(), (hvd.rank(), 3), dtype)
    everything = numpy.concatenate([arrays.values(rank, (rank, 3), dtype) for rank in range(hvd.size())])
    arrays.same(hvd.allgather(mine), everything)
    arrays.same(hvd.gather(mine, 0), everything if hvd.rank() == 0 else everything[:0])


@pytest.mark.parametrize("dtype", arrays.REDUCED)
def test_reduce_scatter_shares_out_the_sum(hvd, dtype):
    rows = 2 * hvd.size() + 1
    everything = arrays.combined("Sum", hvd.size(), (rows, 2), dtype)
    share = numpy.array_split(everything, hvd.size())[hvd.rank()]
    arrays.same(hvd.reduce_scatter(arrays.values(hvd.rank(), (rows, 2), dtype), op=hvd.Sum), share)


@pytest.mark.parametrize("dtype", arrays.CARRIED)
def test_scatter_shares_out_the_roots_rows(hvd, dtype):
    root = hvd.size() - 1
    rows = arrays.values(0, (2 * hvd.size() + 1, 2), dtype)
    mine = rows if hvd.rank() == root else rows[:0]
    arrays.same(hvd.scatter(mine, root), numpy.array_split(rows, hvd.size())[hvd.rank()])
    splits = [len(rows)] + [0] * (hvd.size() - 1) if hvd.rank() == root else None
    arrays.same(hvd.scatter(mine, root, splits), rows if hvd.rank() == 0 else rows[:0])
    nothing = hvd.scatter(rows if hvd.rank() == root else None, root)
    assert numpy.asarray(nothing).shape[1:] == (2,)


@pytest.mark.parametrize("dtype", arrays.CARRIED)
def test_alltoall_exchanges_rows(hvd, dtype):
    size, rank = hvd.size(), hvd.rank()
    rows = arrays.values(rank, (2 * size, 3), dtype)
    parts = [arrays.values(other, (2 * size, 3), dtype)[2 * rank : 2 * rank + 2] for other in range(size)]
    arrays.same(hvd.alltoall(rows), numpy.concatenate(parts))
    splits = [0] * size
    splits[(rank + 1) % size] = 2 * size  # all to the next
    result, received = hvd.alltoall(rows, splits)
    arrays.same(result, arrays.values((rank - 1) % size, (2 * size, 3), dtype))
    assert received == [2 * size if other == (rank - 1) % size else 0 for other in range(size)]


def test_groups_may_have_unlike_dtypes_and_shapes(hvd):
    size, rank = hvd.size(), hvd.rank()
    kinds = [((3,), "float32"), ((), "int64"), ((2, 2), "float64")]
    mine = [arrays.values(rank, *kind) for kind in kinds]
    sums = [arrays.combined("Sum", size, *kind) for kind in kinds]
    for result, expected in zip(hvd.grouped_allreduce(mine, op=hvd.Sum, name="group"), sums, strict=True):
        arrays.same(result, expected)
    for result, kind in zip(hvd.grouped_broadcast(mine, 0), kinds, strict=True):
        arrays.same(result, arrays.values(0, *kind))
    rows = [arrays.values(rank, (size, 2), "int32"), arrays.values(rank, (2 * size,), "float32")]
    for result, one in zip(hvd.grouped_allgather(rows), rows, strict=True):
        assert result.shape == (size * one.shape[0], *one.shape[1:])
    for result, one in zip(hvd.grouped_reduce_scatter(rows, op=hvd.Sum), rows, strict=True):
        assert result.shape == (one.shape[0] // size, *one.shape[1:])
    results, received = hvd.grouped_alltoall(rows)
    assert [result.shape for result in results] == [one.shape for one in rows]
    assert received == [[1] * size, [2] * size]
    for result, one in zip(hvd.grouped_scatter(rows if rank == 0 else [], 0), rows, strict=True):
        arrays.same(numpy.asarray(result), numpy.array_split(arrays.values(0, one.shape, one.dtype), size)[rank])
    for result, one in zip(hvd.grouped_gather(rows, 0), rows, strict=True):
        assert result.shape[0] == (size * one.shape[0] if rank == 0 else 0)
    kept = hvd.grouped_allreduce_(mine, op=hvd.Sum, name="group in place")
    assert all(one is other for one, other in zip(kept, mine))
    for result, expected in zip(mine, sums):
        arrays.same(result, expected)


def test_send_and_recv_pass_a_tensor_around(hvd):
    size, rank = hvd.size(), hvd.rank()
    if size == 1:
        with pytest.raises(hvd.InvalidArgumentError, match="both ends"):
            hvd.send(numpy.zeros(2), 0)
        return
    to, source = (rank + 1) % size, (rank - 1) % size
    sent = hvd.send_async(arrays.values(rank, (4,), "int16"), to, name=f"{rank}-{to}")
    place = numpy.zeros(4, "int16")
    assert hvd.recv(place, source, name=f"{source}-{rank}") is place
    sent.wait()
    arrays.same(place, arrays.values(source, (4,), "int16"))


def test_join_serves_those_who_still_have_data(hvd):
    for _ in range(hvd.rank()):
        hvd.allreduce(numpy.ones(3), op=hvd.Sum, name="uneven")
    last = hvd.join()
    assert last == hvd.broadcast(numpy.array([last]), 0)[0]


def test_process_sets_work_apart(hvd):
    size, rank = hvd.size(), hvd.rank()
    if size < 3:
        with pytest.raises(hvd.InvalidArgumentError):
            hvd.add_process_set(range(size))  # they are a set already
        return
    first, rest = hvd.add_process_set([0]), hvd.add_process_set(hvd.ProcessSet(range(1, size)))
    mine = first if rank == 0 else rest
    assert hvd.allreduce(numpy.ones(2), op=hvd.Sum, process_set=mine).tolist() == [mine.size()] * 2
    assert (mine.rank(), mine.included()) == (0 if rank == 0 else rank - 1, True)
    other = rest if rank == 0 else first
    assert not other.included()
    with pytest.raises(hvd.InvalidArgumentError, match=f"rank {rank} is not in process set"):
        hvd.allreduce(numpy.ones(2), process_set=other)
    for one in (first, rest):
        assert hvd.remove_process_set(one)
        with pytest.raises(hvd.InvalidArgumentError):
            one.size()
    assert not hvd.remove_process_set(hvd.global_process_set)


def test_arena_is_reduced_where_it_lies(hvd):
    arena = hvd.make_arena(1 << 21)
    array = arena.allocate((1 << 18,), hvd.array_of(numpy.zeros(1, "float32")).dtype)
    view = numpy.asarray(array)
    view[:] = hvd.rank() + 1
    packed = hvd.stats()["bytes_packed"]
    hvd.allreduce_(array, op=hvd.Sum, name="arena")
    assert (view == hvd.size() * (hvd.size() + 1) / 2).all()
    assert hvd.stats()["bytes_packed"] == packed
    with pytest.raises(hvd.InvalidArgumentError, match="does not fit"):
        arena.allocate((1 << 20,), array.dtype)


def test_check_consistency_names_what_differs(hvd):
    hvd.check_consistency([numpy.ones(3), numpy.zeros(2)])
    if hvd.size() == 1:
        return
    with pytest.raises(hvd.MismatchError, match="'second' .* differs"):
        hvd.check_consistency([numpy.ones(3), numpy.full(2, hvd.rank())], ["first", "second"])


def test_topology_and_settings_are_told(hvd):
    assert 0 <= hvd.rank() < hvd.size()
    assert (hvd.local_rank(), hvd.local_size()) == (hvd.rank(), hvd.size())
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert hvd.global_process_set.ranks == list(range(hvd.size()))
    assert hvd.settings()["stall_shutdown"].startswith("20")
    assert hvd.stats()["operations_done"] >= 0
