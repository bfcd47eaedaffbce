"""Python threads run on while others wait."""

import os
import signal
import threading
import time

import numpy
import pytest


def test_a_thread_submits_what_another_thread_waits_for(hvd):  # R114
    """Rank 0 waits in one thread for what its other thread has yet to submit."""
    gate = threading.Event()
    results = []

    def submit_second():
        gate.wait()
        results.append(hvd.allreduce(numpy.ones(3), op=hvd.Sum, name="second"))

    thread = threading.Thread(target=submit_second)
    thread.start()
    first = hvd.allreduce_async(numpy.ones(3), op=hvd.Sum, name="first")
    if hvd.rank() == 0:
        # The others submit `first` after `second`: this wait ends only if the thread gets to run.
        gate.set()
        results.append(first.wait())
        thread.join()
    else:
        gate.set()
        thread.join()
        results.append(first.wait())
    assert [one.tolist() for one in results] == [[hvd.size()] * 3] * 2


def test_python_runs_on_while_a_thread_waits(hvd):
    """Counts in Python as long as another thread waits for a rank that comes only when the counting is seen."""
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")
    if hvd.rank() == 0:
        waiter = threading.Thread(target=lambda: hvd.allreduce(numpy.ones(1), name="counted for"))
        waiter.start()
        count = 0
        while count < 100_000:
            count += 1
        assert waiter.is_alive()
        hvd.barrier(name="counted")
        waiter.join()
    else:
        hvd.barrier(name="counted")
        hvd.allreduce(numpy.ones(1), name="counted for")


def test_threads_with_names_of_their_own_do_not_meet(hvd):  # R27
    errors = []

    def loop(prefix):
        try:
            for step in range(20):
                values = [numpy.full(4, step + i) for i in range(10)]
                handles = [
                    hvd.allreduce_async(one, op=hvd.Sum, name=f"{prefix}/w{i}") for i, one in enumerate(values)
                ]
                for i, result in enumerate(hvd.wait_all(handles)):
                    assert result.tolist() == [(step + i) * hvd.size()] * 4
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=loop, args=(prefix,)) for prefix in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_signals_are_handled_during_a_wait(hvd):
    if hvd.size() == 1:
        pytest.skip("nothing stays in flight")

    class Interrupt(Exception):
        pass

    def raise_it(*_):
        raise Interrupt

    if hvd.rank() == 0:
        previous = signal.signal(signal.SIGUSR1, raise_it)
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        handle = hvd.allreduce_async(numpy.ones(2), op=hvd.Sum, name="interrupted")
        with pytest.raises(Interrupt):
            handle.wait()
        signal.signal(signal.SIGUSR1, previous)
        timer.join()
    hvd.barrier(name="interrupt is over")
    if hvd.rank() != 0:
        handle = hvd.allreduce_async(numpy.ones(2), op=hvd.Sum, name="interrupted")
    assert handle.wait().tolist() == [hvd.size()] * 2


def test_stall_reports_reach_a_python_function_while_python_waits(hvd):
    """on_stall runs on the thread that drives, which here is one that waits."""
    if hvd.size() == 1 or threading.active_count() > 1:
        pytest.skip("needs several ranks")
    reports = []
    hvd.shutdown()
    hvd.init(stall_warning=0.2, stall_shutdown=20, shutdown_timeout=10, on_stall=reports.append)
    if hvd.rank() == 1:
        time.sleep(1)
    hvd.allreduce(numpy.ones(1), name="slow")
    hvd.barrier(name="slow is over")
    if hvd.rank() == 0:
        assert any("'slow'" in report and "[1" in report for report in reports)
    hvd.shutdown()
    hvd.init(stall_shutdown=20, shutdown_timeout=10)
