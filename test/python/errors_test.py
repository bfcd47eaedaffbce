"""What is raised, where, and that the next operation works."""

import numpy
import pytest


def test_each_error_is_a_class_of_its_own_under_those_that_scripts_catch(hvd):
    between_ranks = {hvd.MismatchError, hvd.StallError, hvd.RankLostError, hvd.ShutDownError, hvd.InternalError}
    alone = {hvd.NotInitializedError, hvd.InvalidArgumentError, hvd.DuplicateNameError}
    assert all(issubclass(one, hvd.HorovodInternalError) for one in between_ranks)
    assert all(issubclass(one, ValueError) and not issubclass(one, hvd.HorovodInternalError) for one in alone)
    every = {*between_ranks, *alone, hvd.CancelledError}
    assert all(issubclass(one, hvd.Error) and issubclass(one, RuntimeError) for one in every)
    assert not any(issubclass(one, other) for one in every for other in every - {one})


def test_mismatch_names_every_ranks_value_on_all_ranks(hvd):  # R11
    size = hvd.size()
    if size == 1:
        pytest.skip("one rank agrees with itself")
    wanted = r"allreduce 'w': shapes differ: .*\[1\] float32\[5\]"
    with pytest.raises(hvd.MismatchError, match=wanted):
        hvd.allreduce(numpy.zeros(5 if hvd.rank() == 1 else 4, "float32"), name="w")
    assert hvd.allreduce(numpy.ones(4, "float32"), op=hvd.Sum, name="w").tolist() == [size] * 4


def test_a_failed_operation_raises_the_same_at_every_wait(hvd):
    if hvd.size() == 1:
        pytest.skip("one rank agrees with itself")
    handle = hvd.allreduce_async(numpy.zeros(2 + hvd.rank()), name="fails")
    texts = []
    for _ in range(2):
        with pytest.raises(hvd.MismatchError) as error:
            handle.wait()
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_the_first_error_of_many_is_raised_when_all_are_done(hvd):
    if hvd.size() == 1:
        pytest.skip("one rank agrees with itself")
    good = [hvd.allreduce_async(numpy.ones(2), name=f"good {i}") for i in range(3)]
    bad = hvd.allreduce_async(numpy.zeros(2 + hvd.rank()), name="bad")
    with pytest.raises(hvd.MismatchError, match="'bad'"):
        hvd.wait_all([good[0], bad, *good[1:]])
    assert all(handle.ready() for handle in good)


def test_a_name_in_flight_is_refused_on_this_rank_alone(hvd):  # R20
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")
    if hvd.rank() == 0:
        first = hvd.allreduce_async(numpy.ones(2), name="twice")
        with pytest.raises(hvd.DuplicateNameError, match="'twice': the name is still in flight"):
            hvd.allreduce(numpy.ones(2), name="twice")
    hvd.barrier(name="twice submitted")
    if hvd.rank() != 0:
        first = hvd.allreduce_async(numpy.ones(2), name="twice")
    first.wait()


def test_a_rank_that_does_not_come_is_a_stall_with_a_bound(hvd):
    if hvd.size() == 1:
        pytest.skip("nobody is waited for")
    if hvd.rank() == 0:
        with pytest.raises(hvd.StallError, match=r"'alone' .*waits for \[1"):
            hvd.allreduce(numpy.ones(2), name="alone", timeout=0.3)


def test_cancelled_operations_do_not_run(hvd):
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(numpy.ones(2), name="cancelled")
        assert handle.cancel()
        with pytest.raises(hvd.CancelledError):
            handle.wait()


def test_a_wait_with_a_bound_ends(hvd):
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(numpy.ones(2), op=hvd.Sum, name="late")
        with pytest.raises(TimeoutError):
            handle.wait(timeout=0.01)
    hvd.barrier(name="late began")
    if hvd.rank() != 0:
        handle = hvd.allreduce_async(numpy.ones(2), op=hvd.Sum, name="late")
    assert handle.wait(timeout=30).tolist() == [hvd.size()] * 2


def test_wrong_arguments_are_refused_before_anything_is_submitted(hvd):
    def refused(pattern, call):
        with pytest.raises(hvd.InvalidArgumentError, match=pattern):
            call()

    x = numpy.ones(3, "float32")
    refused("root rank 99 is not in", lambda: hvd.broadcast(x, 99))
    refused("scalar", lambda: hvd.allgather(numpy.float32(1)))
    refused("NUL", lambda: hvd.allreduce(x, name="a\0b"))
    refused("8193 bytes", lambda: hvd.allreduce(x, name="a" * 8193))
    refused("no reduce op 17", lambda: hvd.allreduce(x, op=17))
    refused("timeout", lambda: hvd.allreduce(x, timeout=-1))
    refused("not known", lambda: hvd.allreduce(x, process_set=hvd.ProcessSet([0])))
    refused("splits", lambda: hvd.alltoall(x, [1] * (hvd.size() + 1)))
    refused("a bytes cannot be written to", lambda: hvd.allreduce_(bytes(4)))
    refused("read-only", lambda: hvd.allreduce_(hvd.array_of(bytes(4))))
    refused("not dense", lambda: hvd.allreduce_(numpy.ones((4, 4))[:, ::2]))
    refused("format", lambda: hvd.allreduce(numpy.ones(2, ">f4")))
    refused("format", lambda: hvd.allreduce(numpy.array(["a", "b"])))
    with pytest.raises(TypeError, match="a str is no array"):
        hvd.allreduce("text")
    with pytest.raises(TypeError):
        hvd.allreduce(None)


def test_errors_of_names_that_are_no_text_can_be_read(hvd):
    with pytest.raises(hvd.InvalidArgumentError, match=r"'g\\xff': root rank 99"):
        hvd.broadcast(numpy.ones(2), 99, name=b"g\xff")


def test_names_are_opaque(hvd):  # R26
    names = ["g:1", "g:2", "n" * 4096, 'quote " and \n newline', "h\u00f6her \u65e5\u672c"]
    handles = [hvd.allreduce_async(numpy.full(3, i), op=hvd.Sum, name=name) for i, name in enumerate(names)]
    for i, result in enumerate(hvd.wait_all(handles)):
        assert result.tolist() == [i * hvd.size()] * 3
