"""Adds up which lines of the library the tests have run, by folder.

usage: coverage.py ROOT BUILD

ROOT is the checkout, BUILD a folder built with -Db_coverage=true in which tests have run. Leaves BUILD/coverage.json and
prints, as the last line, `coverage of runtime/ and ops/: 91.3 % of lines`.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

LIBRARY = ("runtime", "ops")


def count_lines(root, build):
    """By file of the library, relative to root: (lines run, lines)."""
    raw = build / "gcovr.json"
    filters = [argument for folder in LIBRARY for argument in ("--filter", f"{root / folder}/")]
    # The compiler was given names relative to the build folder, which gcovr takes as relative to its root.
    subprocess.run(["gcovr", "--root", build, *filters, "--json-summary", raw, build], check=True)
    files = json.loads(raw.read_text())["files"]

    def name_of(file):
        return os.path.relpath(build / file["filename"], root)

    return {name_of(file): (file["line_covered"], file["line_total"]) for file in files}


def add_up(files):
    """What coverage.json holds: the same, and the sums by folder and in all."""
    folders = collections.defaultdict(lambda: [0, 0])
    total = [0, 0]
    for name, counts in files.items():
        for sums in (folders[str(pathlib.PurePath(name).parent)], total):
            sums[0] += counts[0]
            sums[1] += counts[1]

    def entries(counts):
        return {name: entry(*counts[name]) for name in sorted(counts)}

    return {"total": entry(*total), "folders": entries(folders), "files": entries(files)}


def entry(run, lines):
    return {"lines_run": run, "lines": lines, "percent": round(100 * run / lines, 2) if lines else 100.0}


def table(summary):
    width = max(map(len, summary["folders"]))
    return [
        f"{name:{width}}  {folder['percent']:5.1f} %  {folder['lines_run']} of {folder['lines']} lines"
        for name, folder in summary["folders"].items()
    ]


def main(arguments):
    root, build = map(pathlib.Path, arguments)
    files = count_lines(root, build)
    if not files:
        print("no line of the library has been counted", file=sys.stderr)
        return 1
    summary = add_up(files)
    (build / "coverage.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(*table(summary), sep="\n")
    print(f"coverage of {'/ and '.join(LIBRARY)}/: {summary['total']['percent']:.1f} % of lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
