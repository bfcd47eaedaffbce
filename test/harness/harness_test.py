"""A failure or a hang on one rank of an MPI test program must be reported, by name.

usage: harness_test.py MPIRUN PROGRAM [MPIRUN ARGUMENT...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

mpirun, program, *mpirun_arguments = sys.argv[1:]


def run(test, **settings):
    """Runs one test of the program on two ranks; returns the process and the results that rank 0 left."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        environment = os.environ | {"GTEST_FILTER": test, "GTEST_OUTPUT": f"json:{results}"} | settings
        command = [mpirun, *mpirun_arguments, "-np", "2", program]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        return process, json.loads(results.read_text()) if results.exists() else None


class Harness(unittest.TestCase):
    def test_failure_on_another_rank_fails_the_job(self):
        process, results = run("Failing.*")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("[rank 1]", process.stderr)
        self.assertEqual((results["tests"], results["failures"]), (2, 1))
        failures = results["testsuites"][0]["testsuite"][0]["failures"]
        self.assertIn("on rank 1:", failures[0]["failure"])
        self.assertIn("wrong here", failures[0]["failure"])

    def test_success_on_all_ranks_is_printed_once(self):
        process, results = run("Failing.Nowhere")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(process.stdout.count("[       OK ]"), 1)
        self.assertEqual((results["tests"], results["failures"]), (1, 0))

    def test_hang_is_named_with_its_rank(self):
        process, results = run("Hanging.*", TEST_TIME_LIMIT="2")
        self.assertNotEqual(process.returncode, 0)
        self.assertIsNone(results)
        self.assertIn("time limit of 2 s exceeded in Hanging.OnRankOne", process.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
