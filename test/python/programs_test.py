"""Whole programs: how they begin and end. Runs alone and starts its ranks itself."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

MPIRUN = shlex.split(os.environ["TEST_MPIRUN"])
START = "import hvd, numpy, os, sys, time\n"


def run(program, ranks=2, status=0, environment=None, launcher=MPIRUN):
    """What the program says on all ranks, after it has ended with that status within 40 s."""
    command = [*(launcher and [*launcher, "-np", str(ranks)]), sys.executable, "-c", START + textwrap.dedent(program)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=40, env=os.environ | (environment or {}))
    output = process.stdout + process.stderr
    assert process.returncode == status, output
    return output


def test_a_program_without_a_launcher_is_a_world_of_one_rank():
    environment = {name: "" for name in os.environ if name.startswith("OMPI_COMM_WORLD")}
    assert "0 of 1: 3.0" in run("""
        hvd.init()
        print(hvd.rank(), "of", hvd.size(), end=": ")
        print(hvd.allreduce(numpy.full(2, 3.0))[0])
        """, environment=environment, launcher=[])


def test_an_uncaught_exception_is_the_cause_that_the_other_ranks_are_told():  # R32, R33
    output = run("""
        hvd.init()
        if hvd.rank() == 2:
            raise ValueError("boom")
        try:
            hvd.allreduce(numpy.ones(2), name="g")
        except hvd.ShutDownError as error:
            print(f"rank {hvd.rank()}: {error}", flush=True)
        """, ranks=4, status=1)
    wanted = r"rank %d: allreduce 'g': rank 2 \(host \S+, pid \d+\) left: ValueError: boom"
    for rank in (0, 1, 3):
        assert re.search(wanted % rank, output), output
    assert 'raise ValueError("boom")' in output or "ValueError: boom\n" in output


def test_the_exception_is_told_though_the_failing_rank_has_work_in_flight():
    output = run("""
        hvd.init()
        if hvd.rank() == 0:
            handle = hvd.allreduce_async(numpy.ones(2), name="a")
            1 / 0
        try:
            hvd.allreduce(numpy.ones(2), name="b")
        except hvd.HorovodInternalError as error:
            print(error, flush=True)
        """, status=1)
    assert re.search(r"allreduce 'b': rank 0 \(.*\) left: ZeroDivisionError: division by zero", output), output


def test_a_hook_that_was_there_before_is_called():
    output = run("""
        sys.excepthook = lambda kind, error, traceback: print("own hook:", error)
        hvd.init()
        raise KeyError("x")
        """, ranks=1, status=1)
    assert "own hook: 'x'" in output


def test_sys_exit_is_told_as_an_exit():  # R28
    output = run("""
        hvd.init()
        if hvd.rank() == 0:
            sys.exit(3)
        try:
            hvd.allreduce(numpy.ones(2), name="x")
        except hvd.ShutDownError as error:
            print(error, flush=True)
        """, status=3)
    assert "rank 0 has left: its process is ending (exit in progress)" in output


def test_a_session_leaves_with_the_reason_of_its_exception():
    output = run("""
        try:
            with hvd.session():
                if hvd.rank() == 1:
                    raise RuntimeError("in a session")
                hvd.allreduce(numpy.ones(2), name="s")
        except RuntimeError as error:
            print(f"caught {error}", flush=True)
        assert not hvd.is_initialized()
        """)
    assert re.search(r"caught allreduce 's': rank 1 \(.*\) left: RuntimeError: in a session", output), output
    assert "caught in a session" in output


def test_sessions_follow_each_other():  # R38
    output = run("""
        for step in range(5):
            try:
                hvd.allreduce(numpy.ones(1))
            except hvd.NotInitializedError as error:
                assert "not initialised" in str(error)
            else:
                raise AssertionError("worked outside of a session")
            with hvd.session(process_sets=[[0]]):
                assert hvd.allreduce(numpy.ones(1), op=hvd.Sum)[0] == hvd.size()
        print("done")
        """)
    assert output.count("done") == 2


def test_sets_given_to_init_are_known_until_shutdown():
    output = run("""
        one = hvd.ProcessSet([1])
        hvd.init(process_sets=[one])
        assert (one.process_set_id, one.included()) == (1, hvd.rank() == 1)
        hvd.shutdown()
        assert one.process_set_id is None
        print("done")
        """)
    assert output.count("done") == 2


def test_settings_are_checked():
    output = run("""
        for settings in ({"fusion_treshold": 1}, {"fusion_threshold": "much"}, {"comm": "world"}):
            try:
                hvd.init(**settings)
            except hvd.InvalidArgumentError as error:
                print(error)
        hvd.init(fusion_threshold="1MiB", log_hide_time=True)
        assert hvd.settings()["fusion_threshold"] == "1 MiB", hvd.settings()
        """, ranks=1)
    assert "did you mean fusion_threshold?" in output
    assert "fusion_threshold: 'much' is not a number of bytes" in output
    assert "comm is an mpi4py communicator" in output


def test_unnamed_operations_of_unlike_lines_are_told_apart_on_demand():  # R24
    output = run("""
        hvd.init(check="comm")
        for _ in range(2):
            assert hvd.allreduce(numpy.ones(2), op=hvd.Sum)[0] == 2
        try:
            if hvd.rank() == 0:
                hvd.allreduce(numpy.ones(2))
            else:
                hvd.allreduce(numpy.ones(2))
        except hvd.MismatchError as error:
            print(error, flush=True)
        hvd.barrier(name="end")
        """)
    assert output.count("call site differs") == 2, output


CHILD = """
    hvd.init()
    handle = hvd.allreduce_async(numpy.ones(1000), op=hvd.Sum, name="before")
    child = os.fork()
    if child == 0:
        calls = [hvd.rank, hvd.size, hvd.init, hvd.stats, hvd.barrier, hvd.join, handle.wait, handle.ready, handle.cancel,
                 lambda: hvd.allreduce(numpy.ones(2)), lambda: hvd.add_process_set([0]), lambda: hvd.make_arena(64)]
        for call in calls:
            try:
                call()
            except hvd.NotInitializedError as error:
                assert "not usable after fork" in str(error)
            else:
                os._exit(7)
        assert not hvd.is_initialized()
        {end}
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == {status}, ended
    assert (handle.wait() == hvd.size()).all()
    assert hvd.allreduce(numpy.ones(2), op=hvd.Sum)[0] == hvd.size()
    print("done")
    """


@pytest.mark.parametrize("end, status", [
    ("sys.exit(0)", 0),
    ("raise RuntimeError('in the child')", 1),
    ("hvd.shutdown(); hvd.leave('nothing'); sys.exit(0)", 0),
    ("os._exit(4)", 4),
    ("del handle; sys.exit(5)", 5),
])
def test_a_forked_child_gets_errors_and_the_parent_goes_on(end, status):  # R118
    assert run(CHILD.format(end=end, status=status)).count("done") == 2


def test_workers_of_multiprocessing_come_and_go():  # R118
    output = run("""
        import multiprocessing
        def work(number):
            try:
                hvd.rank()
            except hvd.NotInitializedError:
                return number * number
        if __name__ == "__main__":
            hvd.init()
            for epoch in range(3):
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    assert pool.map(work, range(8)) == [n * n for n in range(8)]
                assert hvd.allreduce(numpy.ones(2), op=hvd.Sum)[0] == hvd.size()
            print("done")
        """)
    assert output.count("done") == 2


def test_importing_numpy_or_torch_is_left_to_the_program():
    run_alone = "import sys, hvd; print(sorted({'numpy', 'torch', 'mpi4py', 'ml_dtypes'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", run_alone], text=True) == "[]\n"


def test_a_missing_mpi_is_named_beside_the_one_that_was_built_against(tmp_path):
    """The package with a core that needs a library that is not there."""
    import hvd

    package = tmp_path / "hvd"
    package.mkdir()
    for source in pathlib.Path(hvd.__file__).parent.glob("*.py"):
        (package / source.name).write_text(source.read_text())
    core = pathlib.Path(hvd._core.__file__)
    library = rb"libmpi.so.40"
    assert library in core.read_bytes()
    (package / core.name).write_bytes(core.read_bytes().replace(library, rb"libmpi.so.99"))
    process = subprocess.run([sys.executable, "-c", "import hvd"], capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(tmp_path)})
    text = process.stderr.splitlines()[-1]
    assert re.search(r"ImportError: hvd's core could not be loaded: libmpi.so.99: cannot open .*", text), text
    assert re.search(r"built against .* \d+\.\d+.*; found on this machine: .*\d+\.\d+", text), text


def test_another_mpi_than_the_one_built_against_is_refused():
    from hvd import _mpi

    ours = "Open MPI v4.1.4"
    _mpi.check("Open MPI v4.1.9, package: Debian OpenMPI, ident: 4.1.9\0", ours)
    for other in ("Open MPI v5.0.1, package: x", "MPICH Version:\t4.0.2\nMPICH Release date: x", "Intel(R) MPI Library 2021.7"):
        with pytest.raises(ImportError, match=r"built against Open MPI 4 and has been loaded with (Open MPI v5|MPICH|Intel)"):
            _mpi.check(other, ours)


def test_check_build_prints_what_is_there():
    output = subprocess.check_output([sys.executable, "-m", "hvd.check_build"], text=True)
    assert re.search(r"hvd \d+\.\d+\.\d+, Python 3\.", output)
    assert re.search(r"MPI: +built against .+, loaded .+\d", output)
    assert "[X] numpy" in output
