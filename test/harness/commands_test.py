"""What the commands in tools/ make of their arguments, before they install or build anything. usage: commands_test.py TOOLS"""

import pathlib
import subprocess
import sys
import unittest

tools = pathlib.Path(sys.argv.pop(1))


def run(command, *arguments):
    return subprocess.run([tools / command, *arguments], capture_output=True, text=True, timeout=60)


class Commands(unittest.TestCase):
    def assert_refused(self, command, *arguments, because):
        process = run(command, *arguments)
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertEqual(process.stderr, f"{command}: {because} (see --help)\n")
        self.assertEqual(process.stdout, "")

    def test_help_names_every_option(self):
        for command, options in {
            "test": ["--quick", "--sanitize=KIND", "--coverage", "--fuzz", "--bench", "--list", "--help"],
            "fuzz": ["--seconds N", "--seeds", "--list", "--help"],
        }.items():
            process = run(command, "--help")
            self.assertEqual(process.returncode, 0, process.stderr)
            for option in options:
                self.assertIn(f"\n  {option} ", process.stdout)

    def test_unknown_option_is_refused(self):
        for command in ("test", "fuzz"):
            self.assert_refused(command, "--fast", because="unknown option '--fast'")

    def test_unknown_sanitizer_is_refused(self):
        because = "--sanitize: 'memory' is none of address, undefined and thread"
        self.assert_refused("test", "--sanitize=memory", because=because)
        self.assert_refused("test", "--sanitize", because="--sanitize needs a value")

    def test_builds_of_their_own_do_not_mix(self):
        because = "--coverage and --sanitize need builds of their own"
        self.assert_refused("test", "--coverage", "--sanitize=thread", because=because)
        for other in ("--quick", "--coverage", "--sanitize=address"):
            self.assert_refused("test", "--fuzz", other, because="--fuzz goes with names of targets only")
            self.assert_refused("test", "--bench", other, because="--bench goes alone")
        self.assert_refused("test", "--bench", "negotiation", because="--bench goes alone")

    def test_every_fuzz_target_is_listed(self):
        process = run("fuzz", "--list")
        self.assertEqual(process.returncode, 0, process.stderr)
        sources = (tools.parent / "test" / "fuzz").glob("*.cpp")
        targets = [path.stem for path in sources if "LLVMFuzzerTestOneInput(const" in path.read_text()]
        self.assertEqual(process.stdout.split(), sorted(targets))

    def test_unknown_fuzz_target_is_refused(self):
        targets = " ".join(run("fuzz", "--list").stdout.split())
        self.assert_refused("fuzz", "nothing", because=f"no target is called 'nothing'; there are: {targets}")

    def test_fuzzing_as_a_test_is_the_same_command(self):
        self.assertEqual(run("test", "--fuzz", "nothing").stderr, run("fuzz", "nothing").stderr)

    def test_fuzzing_takes_a_whole_number_of_seconds(self):
        for seconds in ("0", "1.5", "-1", "long"):
            self.assert_refused("fuzz", f"--seconds={seconds}", because=f"--seconds: '{seconds}' is not a number of seconds")


if __name__ == "__main__":
    unittest.main()
