"""Prints what one run of libFuzzer has come to, in one line, and after a crash why and where the input lies.

usage: fuzz_result.py TARGET LOG STATUS

LOG is what the run has printed, STATUS its exit status. Fails when the run has.
"""

import pathlib
import re
import sys

EXECUTIONS = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
SPEED = re.compile(r"^stat::average_exec_per_sec: +(\d+)", re.MULTILINE)
EDGES = re.compile(r"^#\d+\s.* cov: (\d+)", re.MULTILINE)
REPRODUCER = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
# What names the reason best comes first.
REASONS = [
    re.compile(r"^(does not hold: .+)$", re.MULTILINE),
    re.compile(r"^(.+: runtime error: .+)$", re.MULTILINE),
    re.compile(r"^(?:==\d+==)? ?(?:ERROR: )?(.*(?:AddressSanitizer|LeakSanitizer|libFuzzer): .+)$", re.MULTILINE),
    re.compile(r"^(.*what\(\): .+)$", re.MULTILINE),
]
SHOWN_LINES = 20  # of a run that failed without an input to blame


def last_number(pattern, log):
    return int(([0] + pattern.findall(log))[-1])


def reason(log):
    found = (pattern.search(log) for pattern in REASONS)
    return next((match[1].strip() for match in found if match), "no reason was printed")


def summary(target, log, status):
    """The lines to print."""
    crash = REPRODUCER.search(log)
    line = (
        f"{target}: {last_number(EXECUTIONS, log)} executions, {last_number(SPEED, log)} per second, "
        f"{last_number(EDGES, log)} edges, {1 if crash else 0} {'crash' if crash else 'crashes'}"
    )
    if crash:
        return [line, f"    {reason(log)}", f"    input: {crash[1]}"]
    if status != 0:
        tail = log.strip().splitlines()[-SHOWN_LINES:]
        return [line, f"    ended with exit code {status}", *(f"    {text}" for text in tail)]
    return [line]


def main(arguments):
    target, log, status = arguments[0], pathlib.Path(arguments[1]).read_text(errors="replace"), int(arguments[2])
    print(*summary(target, log, status), sep="\n", flush=True)
    return 1 if status != 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
