"""How tools/test --coverage adds up. usage: coverage_test.py FOLDER_OF_COVERAGE"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import coverage  # noqa: E402


class Coverage(unittest.TestCase):
    def setUp(self):
        self.summary = coverage.add_up({"runtime/a/x.cpp": (1, 4), "runtime/a/y.h": (3, 4), "ops/z.cpp": (2, 2)})

    def test_files_count_by_their_lines_in_folder_and_total(self):
        self.assertEqual(self.summary["folders"]["runtime/a"], {"lines_run": 4, "lines": 8, "percent": 50.0})
        self.assertEqual(self.summary["total"], {"lines_run": 6, "lines": 10, "percent": 60.0})
        self.assertEqual(self.summary["files"]["runtime/a/x.cpp"]["percent"], 25.0)

    def test_table_has_a_line_for_each_folder(self):
        self.assertEqual(
            coverage.table(self.summary), ["ops        100.0 %  2 of 2 lines", "runtime/a   50.0 %  4 of 8 lines"]
        )

    def test_file_without_lines_is_covered(self):
        self.assertEqual(coverage.add_up({"ops/empty.h": (0, 0)})["total"]["percent"], 100.0)


if __name__ == "__main__":
    unittest.main()
