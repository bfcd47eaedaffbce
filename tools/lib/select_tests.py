"""Prints the names of the meson tests to run, one a line.

usage: select_tests.py [--quick] [--list | --targets] BUILD [NAME...]

A NAME is a test or a suite; none means all. With --list, prints what can be given instead; with --targets, the ninja
targets that the tests need.
"""

import argparse
import json
import pathlib
import sys


def suites_of(test):
    return [suite.split(":", 1)[-1] for suite in test["suite"]]


def targets_of(tests, build):
    """The files that the tests' programs are made of, relative to the build folder."""
    needed = {target for test in tests for target in test["depends"]}
    files = []
    for target in json.loads((build / "meson-info" / "intro-targets.json").read_text()):
        if target["id"] in needed:
            files += [pathlib.Path(name).relative_to(build) for name in target["filename"]]
    return sorted(map(str, files))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    tests = json.loads((options.build / "meson-info" / "intro-tests.json").read_text())
    suites = sorted({suite for test in tests for suite in suites_of(test)})
    if options.list:
        print("suites:", *suites)
        print("tests:", *sorted(test["name"] for test in tests))
        return 0

    selected = []
    unknown = set(options.names)
    for test in tests:
        names = {test["name"], *suites_of(test)}
        unknown -= names
        if (not options.names or names & set(options.names)) and (not options.quick or "quick" in names):
            selected.append(test)
    if unknown:
        print(f"no test or suite is called {', '.join(sorted(unknown))} (see --list)", file=sys.stderr)
        return 2
    if not selected:
        print("nothing to run: none of these tests is quick", file=sys.stderr)
        return 2
    if options.targets:
        print(*targets_of(selected, options.build), sep="\n")
    else:
        print(*[test["name"] for test in selected], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
