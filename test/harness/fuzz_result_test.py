"""What tools/fuzz says of a run of libFuzzer. usage: fuzz_result_test.py FOLDER_OF_FUZZ_RESULT"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
from fuzz_result import summary  # noqa: E402

GOOD = """#2\tINITED cov: 100 ft: 200 corp: 1/1b exec/s: 0 rss: 30Mb
#900\tNEW    cov: 120 ft: 240 corp: 2/9b lim: 4 exec/s: 300 rss: 30Mb L: 4/4 MS: 1 ChangeBit-
#1000\tDONE   cov: 123 ft: 250 corp: 2/9b lim: 4 exec/s: 333 rss: 31Mb
stat::number_of_executed_units: 1000
stat::average_exec_per_sec:     333
"""


def crash(reason):
    return f"{GOOD}{reason}\nartifact_prefix='crashes/'; Test unit written to crashes/plan/crash-12ab\nBase64: AA==\n"


class FuzzResult(unittest.TestCase):
    def test_good_run_is_one_line(self):
        line = "plan: 1000 executions, 333 per second, 123 edges, 0 crashes"
        self.assertEqual(summary("plan", GOOD, 0), [line])

    def test_crash_is_told_with_reason_and_input(self):
        for reason, told in {
            "does not hold: there is a path": "does not hold: there is a path",
            "a.cpp:3:9: runtime error: overflow": "a.cpp:3:9: runtime error: overflow",
            "==7==ERROR: AddressSanitizer: heap-use-after-free on": "AddressSanitizer: heap-use-after-free on",
            "==7== ERROR: libFuzzer: out-of-memory (malloc(99))": "libFuzzer: out-of-memory (malloc(99))",
            "nothing that is known": "no reason was printed",
        }.items():
            lines = summary("plan", crash(reason), 77)
            self.assertEqual(lines[0], "plan: 1000 executions, 333 per second, 123 edges, 1 crash")
            self.assertEqual(lines[1:], [f"    {told}", "    input: crashes/plan/crash-12ab"])

    def test_run_that_failed_otherwise_shows_its_end(self):
        lines = summary("plan", "no such folder\n", 1)
        self.assertEqual(lines[0], "plan: 0 executions, 0 per second, 0 edges, 0 crashes")
        self.assertEqual(lines[1:], ["    ended with exit code 1", "    no such folder"])


if __name__ == "__main__":
    unittest.main()
