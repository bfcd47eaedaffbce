"""Test cases that ran on several ranks count once.

usage: run_ranks_test.py FOLDER   (of run_ranks.py)
"""

import sys
import unittest

sys.path.insert(0, sys.argv[1])
from run_ranks import merged  # noqa: E402


def case(name, outcome="passed", text=""):
    return {"name": f"a_test.py::{name}", "outcome": outcome, "text": text}


def results(*reports):
    """Result and number of failures by test case."""
    [suite] = merged(reports)["testsuites"]
    return {one["name"]: (one["result"], len(one.get("failures", []))) for one in suite["testsuite"]}


class Merged(unittest.TestCase):
    def test_a_case_counts_once_for_all_ranks(self):
        self.assertEqual(results([case("x")], [case("x")]), {"x": ("COMPLETED", 0)})

    def test_a_case_fails_with_the_texts_of_the_ranks_where_it_failed(self):
        reports = [case("x")], [case("x", "failed", "boom")], [case("x", "failed", "bang")]
        self.assertEqual(results(*reports), {"x": ("COMPLETED", 2)})
        failures = merged(reports)["testsuites"][0]["testsuite"][0]["failures"]
        self.assertEqual(failures[0]["failure"], "on rank 1:\nboom")

    def test_a_case_is_skipped_when_no_rank_ran_it(self):
        self.assertEqual(results([case("x", "skipped")], [case("x", "skipped")]), {"x": ("SKIPPED", 0)})
        self.assertEqual(results([case("x", "skipped")], [case("x")]), {"x": ("COMPLETED", 0)})

    def test_a_case_that_a_rank_did_not_get_to_has_failed(self):
        self.assertEqual(results([case("x"), case("y")], [case("x")]), {"x": ("COMPLETED", 0), "y": ("COMPLETED", 1)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
