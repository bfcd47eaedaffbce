"""Runs pytest on several ranks, or alone, and leaves the results of all ranks as one file.

usage: run_ranks.py RESULTS RANKS PYTHON FILE... [-- MPIRUN ARGUMENT...]

Each rank runs all files and leaves what came of its test cases (conftest.py). A case has failed if it failed on any rank.
RESULTS has the form of Google Test's JSON reports; none is left when a rank did not come to its end.
"""

import json
import pathlib
import subprocess
import sys


def merged(reports):
    """One case for all ranks, in the order of rank 0."""
    cases = {}
    for rank, report in enumerate(reports):
        for case in report:
            cases.setdefault(case["name"], []).append((rank, case))
    suites = {}
    for name, by_rank in cases.items():
        failures = [
            {"failure": f"on rank {rank}:\n{case['text']}"} for rank, case in by_rank if case["outcome"] == "failed"
        ]
        if len(by_rank) != len(reports):
            failures.append({"failure": f"ran on ranks {[rank for rank, _ in by_rank]} alone"})
        skipped = all(case["outcome"] == "skipped" for _, case in by_rank)
        suite, _, short = name.rpartition("::")
        result = {"name": short, "status": "RUN", "result": "SKIPPED" if skipped else "COMPLETED"}
        if failures:
            result["failures"] = failures
        suites.setdefault(suite, []).append(result)
    return {"testsuites": [{"name": name, "testsuite": results} for name, results in suites.items()]}


def main(arguments):
    end = arguments.index("--") if "--" in arguments else len(arguments)
    (results, ranks, python, *files), launcher = arguments[:end], arguments[end + 1 :]
    parts = [pathlib.Path(f"{results}.rank{rank}") for rank in range(int(ranks))]
    for path in [pathlib.Path(results), *parts]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    command = [*launcher, *(["-np", ranks] if launcher else []), python, "-B", "-m", "pytest", "-q",
               "-p", "no:cacheprovider", f"--rank-results={results}", *files]
    status = subprocess.run(command, check=False).returncode
    if all(path.exists() for path in parts):
        report = merged([json.loads(path.read_text()) for path in parts])
        pathlib.Path(results).write_text(json.dumps(report))
        if status == 0 and not any(suite["testsuite"] for suite in report["testsuites"]):
            return 1
    for path in parts:
        path.unlink(missing_ok=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
