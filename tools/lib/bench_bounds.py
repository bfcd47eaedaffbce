"""Compares what hvd-bench has measured with the bounds of the tree.

usage: bench_bounds.py BOUNDS RECORDS

Both are JSON arrays. A bound names records by their fields (bench, variant, peer, profile, bytes, ...), one number in them
(`field`, a dot goes into `counts`), and what it must be: `at_least`, `at_most` or `equals`. Times differ between machines and
hours: bounds are on ratios within one run, and on what is counted. Prints each bound that does not hold and, as the last line,
`12 passed, 0 failed`.
"""

import json
import pathlib
import sys

RULES = {
    "at_least": (lambda value, bound: value >= bound, ">="),
    "at_most": (lambda value, bound: value <= bound, "<="),
    "equals": (lambda value, bound: value == bound, "=="),
}
NO_SELECTOR = {"field", "why", *RULES}


def selector_of(bound):
    return {key: value for key, value in bound.items() if key not in NO_SELECTOR}


def number_in(record, field):
    """The record's number, None where it was not measured."""
    value = record
    for key in field.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def failures_of(bound, records):
    """What is wrong, one text for each record that the bound does not hold for."""
    rules = [rule for rule in RULES if rule in bound]
    if not rules or "field" not in bound:
        raise ValueError(f"no bound: {json.dumps(bound)}")
    selector = selector_of(bound)
    what = " ".join(str(value) for value in selector.values()) + " " + bound["field"]
    chosen = [record for record in records if all(record.get(key) == value for key, value in selector.items())]
    if not chosen:
        return [f"{what}: no such record"]
    failures = []
    for record in chosen:
        value = number_in(record, bound["field"])
        for rule in rules:
            holds, sign = RULES[rule]
            if value is None:
                failures.append(f"{what}: not measured")
            elif not holds(value, bound[rule]):
                failures.append(f"{what}: {value:g}, must be {sign} {bound[rule]:g} ({bound.get('why', 'no reason given')})")
    return failures


def main(arguments):
    bounds, records = (json.loads(pathlib.Path(path).read_text()) for path in arguments)
    found = [failures_of(bound, records) for bound in bounds]
    for failures in found:
        for failure in failures:
            print(failure)
    failed = sum(bool(failures) for failures in found)
    print(f"{len(bounds) - failed} passed, {failed} failed")
    return 1 if failed or not bounds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
