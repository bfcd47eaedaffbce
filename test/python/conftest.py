"""What all tests of the Python package share: the world, time limits, and the results of this rank."""

import faulthandler
import json
import os
import pathlib
import sys

import pytest

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
LIMIT = int(os.environ.get("TEST_TIME_LIMIT", "60"))  # seconds for a test case, 0: none

cases = {}


def pytest_addoption(parser):
    parser.addoption("--rank-results", help="file for the results; the rank's number is added")


@pytest.fixture(scope="session")
def world():
    """hvd, initialised."""
    import hvd

    hvd.init(stall_shutdown=20, shutdown_timeout=10)
    yield hvd
    hvd.shutdown()


@pytest.fixture
def hvd(world, request):
    """hvd for one test, which all ranks leave together."""
    yield world
    world.barrier(name=f"end of {request.node.nodeid}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Names the test that runs, as Google Test does, and ends it with everybody's stack when it takes too long."""
    say(f"[ RUN      ] {item.nodeid}")
    if LIMIT > 0:
        faulthandler.dump_traceback_later(LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    word = {"passed": "      OK", "failed": "  FAILED", "skipped": " SKIPPED"}[cases[item.nodeid]["outcome"]]
    say(f"[ {word} ] {item.nodeid}")


def pytest_runtest_logreport(report):
    case = cases.setdefault(report.nodeid, {"name": report.nodeid, "outcome": "passed", "text": ""})
    if report.outcome != "passed" and case["outcome"] != "failed":
        case["outcome"] = report.outcome
        case["text"] = report.longreprtext if report.outcome == "failed" else ""


def pytest_sessionfinish(session):
    results = session.config.getoption("--rank-results")
    if results:
        pathlib.Path(f"{results}.rank{RANK}").write_text(json.dumps(list(cases.values())))


def say(text):
    if RANK == 0:
        print(text, file=sys.__stdout__, flush=True)
