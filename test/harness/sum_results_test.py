"""What tools/test adds up. usage: sum_results_test.py FOLDER_OF_SUM_RESULTS"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import sum_results  # noqa: E402


def case(name, result="COMPLETED", failure=None, status="RUN"):
    failures = {"failures": [{"failure": failure}]} if failure else {}
    return {"name": name, "status": status, "result": result} | failures


class SumResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "meson-logs").mkdir()

    def add_up(self, *runs, status=0, tests=None):
        log = self.build / "meson-logs" / "testlog.json"
        log.write_text("".join(json.dumps(run) + "\n" for run in runs))
        return sum_results.add_up(self.build, status, tests or [run["name"].split(" / ")[-1] for run in runs])

    def run_of(self, name, result="OK", code=0, cases=None, google=True, stdout=""):
        results = self.build / f"{name}.json"
        if cases is not None:
            results.write_text(json.dumps({"testsuites": [{"name": "Suite", "testsuite": cases}]}))
        return {
            "name": f"hvd:quick / {name}",
            "result": result,
            "returncode": code,
            "env": {"GTEST_OUTPUT": f"json:{results}"} if google else {},
            "stdout": stdout,
        }

    def test_cases_of_all_programs_are_added_up(self):
        cases = [case("a"), case("b", "SKIPPED"), case("c", "SUPPRESSED", status="NOTRUN")]
        totals = self.add_up(self.run_of("one", cases=cases), self.run_of("two", cases=[case("a")]))
        self.assertEqual(totals.line(), "2 passed, 0 failed, 1 skipped")

    def test_failed_case_is_named(self):
        cases = [case("a"), case("b", failure="not equal")]
        totals = self.add_up(self.run_of("one", "FAIL", 1, cases))
        self.assertEqual(totals.line(), "1 passed, 1 failed")
        self.assertEqual(totals.failures, [("one: Suite.b", "not equal")])

    def test_program_that_fails_after_its_cases_is_a_failure(self):
        totals = self.add_up(self.run_of("one", "FAIL", 23, [case("a")], stdout="leak of 8 bytes"))
        self.assertEqual(totals.line(), "1 passed, 1 failed")
        self.assertEqual(totals.failures, [("one", "ended with exit code 23\nleak of 8 bytes")])

    def test_report_of_a_sanitizer_counts_beside_failed_cases(self):
        totals = self.add_up(self.run_of("one", "FAIL", 66, [case("a", failure="not equal")]))
        self.assertEqual(totals.line(), "0 passed, 2 failed")

    def test_crash_is_a_failure_and_names_the_case(self):
        stdout = "[ RUN      ] Suite.a\n[       OK ] Suite.a (0 ms)\n[ RUN      ] Suite.b\n"
        totals = self.add_up(self.run_of("one", "FAIL", -11, stdout=stdout))
        self.assertEqual(totals.line(), "0 passed, 1 failed")
        self.assertIn("was ended by signal 11 in Suite.b", totals.failures[0][1])

    def test_time_out_is_a_failure(self):
        totals = self.add_up(self.run_of("one", "TIMEOUT", -15))
        self.assertIn("ran into its time limit", totals.failures[0][1])

    def test_google_tests_without_results_have_failed(self):
        totals = self.add_up(self.run_of("one"))
        self.assertEqual(totals.line(), "0 passed, 1 failed")

    def test_other_programs_are_one_case_each(self):
        runs = [
            self.run_of("a", google=False),
            self.run_of("b", "SKIP", 77, google=False),
            self.run_of("c", "FAIL", 1, google=False),
        ]
        self.assertEqual(self.add_up(*runs).line(), "1 passed, 1 failed, 1 skipped")

    def test_program_that_did_not_run_has_failed(self):
        totals = self.add_up(self.run_of("one", cases=[case("a")]), status=1, tests=["one", "two"])
        self.assertEqual(totals.failures, [("two", "did not run")])

    def test_failure_of_meson_itself_counts(self):
        self.assertEqual(self.add_up(self.run_of("one", cases=[case("a")]), status=1).line(), "1 passed, 1 failed")


if __name__ == "__main__":
    unittest.main()
