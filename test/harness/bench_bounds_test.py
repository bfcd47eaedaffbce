"""How what hvd-bench has measured is compared with bounds, and with targets. usage: bench_bounds_test.py FOLDER_OF_THE_SCRIPTS"""

import json
import pathlib
import sys
import unittest

scripts = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(scripts))
import bench_bounds  # noqa: E402
import perf_targets  # noqa: E402

RECORD = {
    "bench": "step", "peer": "hvd", "variant": "packed", "profile": "resnet50", "ranks": 2, "dtype": "f32", "bytes": 100,
    "median_us": 30.0, "ratio_to_mpi": 0.5, "ratio_to_limit": None, "counts": {"messages": 2},
}  # fmt: skip


class Bounds(unittest.TestCase):
    def failures(self, **bound):
        return bench_bounds.failures_of({"bench": "step", **bound}, [RECORD])

    def test_a_bound_that_holds_is_silent(self):
        self.assertEqual(self.failures(field="ratio_to_mpi", at_least=0.5, at_most=0.5), [])
        self.assertEqual(self.failures(field="counts.messages", equals=2), [])

    def test_a_bound_that_is_broken_says_value_limit_and_reason(self):
        self.assertEqual(
            self.failures(field="counts.messages", equals=0, why="known names"),
            ["step counts.messages: 2, must be == 0 (known names)"],
        )
        self.assertEqual(len(self.failures(field="ratio_to_mpi", at_least=0.6)), 1)
        self.assertEqual(len(self.failures(field="ratio_to_mpi", at_most=0.4)), 1)

    def test_what_was_not_measured_is_a_failure(self):
        self.assertEqual(self.failures(field="ratio_to_limit", at_least=0), ["step ratio_to_limit: not measured"])
        self.assertEqual(self.failures(field="counts.batches", at_least=0), ["step counts.batches: not measured"])
        self.assertEqual(self.failures(peer="mpi", field="ratio_to_mpi", at_least=0), ["step mpi ratio_to_mpi: no such record"])

    def test_a_bound_without_a_rule_is_an_error(self):
        with self.assertRaises(ValueError):
            self.failures(field="ratio_to_mpi", atleast=1)

    def test_every_bound_of_the_tree_names_a_field_a_rule_and_a_reason(self):
        for bound in json.loads((scripts.parent / "bench" / "bounds.json").read_text()):
            self.assertIn("why", bound)
            self.assertEqual(bench_bounds.failures_of(bound, [])[0].split(": ")[1], "no such record")


class Targets(unittest.TestCase):
    def rows(self, *passes, bound=20, at_most=True):
        target = perf_targets.Target("a step", bound, lambda p: p.number(bench="step", peer="hvd"), at_most, "us", "asleep")
        return perf_targets.rows([perf_targets.Pass(records) for records in passes], [target])

    def test_the_value_is_the_median_of_the_passes(self):
        row = self.rows(*[[RECORD | {"median_us": time}] for time in (10.0, 90.0, 15.0)])[0]
        self.assertEqual((row.value, row.measured(), row.verdict()), (15.0, "15 us", "reached"))

    def test_the_bound_holds_in_its_direction(self):
        self.assertEqual(self.rows([RECORD])[0].verdict(), "not reached")
        self.assertEqual(self.rows([RECORD], at_most=False)[0].verdict(), "reached")

    def test_no_record_is_not_measured_and_why(self):
        row = self.rows([])[0]
        self.assertEqual((row.measured(), row.verdict()), ("-", "not measured: asleep"))

    def test_the_peers_own_part_of_a_step_does_not_count(self):
        ddp = RECORD | {"peer": "ddp-gloo", "variant": "views", "median_us": 140.0, "counts": {"own_us": 20.0}}
        measure = perf_targets.step_over("packed", "ddp-gloo")
        self.assertEqual(measure(perf_targets.Pass([RECORD, ddp])), 4.0)
        self.assertIsNone(measure(perf_targets.Pass([RECORD])))

    def test_a_range_of_sizes_is_judged_by_its_worst(self):
        def at(size, peer, variant, time):
            return RECORD | {"bench": "allreduce", "bytes": size << 20, "peer": peer, "variant": variant, "median_us": time}

        found = perf_targets.Pass([
            at(1, "hvd", "packed", 10.0), at(1, "mpi", "in-place", 9.0), at(1, "mpi", "best in-place", 8.0),
            at(64, "hvd", "packed", 10.0), at(64, "mpi", "in-place", 30.0),
        ])  # fmt: skip
        self.assertEqual(perf_targets.allreduce_over("mpi", "packed")(found), 0.8)
        self.assertEqual(perf_targets.allreduce_over("mpi", "packed", least=64 << 20)(found), 3.0)
        self.assertIsNone(perf_targets.allreduce_over("limit", "packed")(found))

    def test_without_records_every_target_is_a_row_that_says_why(self):
        found = perf_targets.rows([perf_targets.Pass([])], perf_targets.TARGETS)
        self.assertEqual(perf_targets.summary(found), f"0 reached, 0 not reached, {len(found)} not measured")
        for line in perf_targets.markdown_table(found).splitlines()[2:]:
            self.assertRegex(line, r"^\| .+ \| [<>]= .+ \| - \| not measured: .+ \|$")

    def test_times_may_be_another_quantile(self):
        limit = RECORD | {"peer": "limit", "p10_us": 10.0}
        records = [RECORD | {"p10_us": 12.0}, limit]
        measure = perf_targets.step_time_over_limit("packed")
        self.assertEqual(measure(perf_targets.Pass(records)), 1.0)
        self.assertEqual(measure(perf_targets.Pass(records, "p10_us")), 1.2)

    def test_columns_of_the_table_line_up(self):
        lines = perf_targets.text_table(self.rows([RECORD])).splitlines()
        self.assertEqual(lines[0].index("target"), lines[1].index("<= 20 us"))
        self.assertEqual(lines[0].index("measured"), lines[1].index("30 us"))


if __name__ == "__main__":
    unittest.main()
