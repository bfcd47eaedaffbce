"""Adds up the test cases of all test programs of one `meson test` run.

usage: sum_results.py BUILD STATUS TEST...

BUILD is the build folder, STATUS the exit status of `meson test`, TEST... the meson tests that were asked for. Programs of
Google tests leave a JSON file with every test case (GTEST_OUTPUT); any other meson test is one test case. A program that
failed although no test case in it did (a crash, a time-out, a leak found at exit) counts as one failure more. Prints the
failures again and, as the last line, `123 passed, 0 failed, 2 skipped`.
"""

import dataclasses
import json
import pathlib
import re
import sys

FAILED_CASES = 1  # exit code of a program whose test cases failed, and nothing else
SHOWN_LINES = 40  # of the output of a program that failed outside its test cases
STARTED = re.compile(r"^\[ RUN +\] (\S+)$", re.MULTILINE)
ENDED = re.compile(r"^\[ +(?:OK|FAILED|SKIPPED) +\] (\S+)", re.MULTILINE)


@dataclasses.dataclass
class Totals:
    passed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)  # (name, text)

    def line(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {len(self.failures)} failed{skipped}"


def read_log(path):
    """The runs in meson's testlog.json, by the name of the test."""
    runs = {}
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            run = json.loads(line)
            runs[run["name"].rsplit(" / ", 1)[-1]] = run  # "project:suite / name"
    return runs


def cases_file(run):
    """Where the run's program leaves its test cases; None when it is not one of Google tests."""
    output = run["env"].get("GTEST_OUTPUT", "")
    return pathlib.Path(output.removeprefix("json:")) if output.startswith("json:") else None


def add_cases(report, test, totals):
    """Adds a Google Test report; returns how many of its cases failed."""
    failed = 0
    for suite in report["testsuites"]:
        for case in suite["testsuite"]:
            texts = [failure["failure"] for failure in case.get("failures", [])]
            if case["status"] != "RUN" or case["result"] == "SUPPRESSED":
                continue
            if texts:
                failed += 1
                totals.failures.append((f"{test}: {suite['name']}.{case['name']}", "\n".join(texts)))
            elif case["result"] == "SKIPPED":
                totals.skipped += 1
            else:
                totals.passed += 1
    return failed


def what_happened(run):
    """One line on how a program ended, with the test case it was in."""
    code = run["returncode"]
    text = {"TIMEOUT": "ran into its time limit"}.get(run["result"])
    text = text or (f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}")
    output = run.get("stdout", "")
    started = STARTED.findall(output)
    if started and started[-1] not in ENDED.findall(output):
        text += f" in {started[-1]}"
    return text


def add_run(test, run, totals):
    good = run["result"] in ("OK", "EXPECTEDFAIL")
    path = cases_file(run)
    if path is None:
        if good:
            totals.passed += 1
            return
        if run["result"] == "SKIP":
            totals.skipped += 1
            return
    else:
        report = json.loads(path.read_text(errors="replace")) if path.exists() else None
        failed = add_cases(report, test, totals) if report else 0
        if report and (good or (failed and run["returncode"] == FAILED_CASES)):
            return
    output = (run.get("stdout", "") + run.get("stderr", "")).strip().splitlines()
    how = "left no results" if good else what_happened(run)
    totals.failures.append((test, "\n".join([how, *output[-SHOWN_LINES:]])))


def add_up(build, status, tests):
    totals = Totals()
    runs = read_log(build / "meson-logs" / "testlog.json")
    for test in tests:
        if test in runs:
            add_run(test, runs[test], totals)
        else:
            totals.failures.append((test, "did not run"))
    if status != 0 and not totals.failures:
        totals.failures.append(("meson test", f"ended with exit code {status}"))
    return totals


def main(arguments):
    totals = add_up(pathlib.Path(arguments[0]), int(arguments[1]), arguments[2:])
    if totals.failures:
        print("\n== failures")
    for name, text in totals.failures:
        print(f"{name}\n    " + text.strip().replace("\n", "\n    "))
    print(totals.line())
    return 1 if totals.failures or not totals.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
