"""What `meson install` installs is complete, shows only hvd's public symbols, and serves a program outside the tree.

usage: install_test.py BUILD MPIRUN [MPIRUN ARGUMENT...]
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

build, *mpirun = sys.argv[1:]
here = pathlib.Path(__file__).resolve().parent

WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = [path for path in map(shutil.which, ("g++", "clang++", "clang++-14")) if path][:2]
# _ZN3hvd..., and the type information, vtables and guard variables of hvd's classes
HVD_SYMBOL = re.compile(r"_Z(?:T[ISV]|GV)?N[KVRO]*3hvd(?P<rest>.*)")


def run(*command, **settings):
    process = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings, check=False)
    if process.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}\n{process.stdout}{process.stderr}")
    return process.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hvd installed ")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder.name)
        cls.pkg_config_file = next(cls.folder.rglob("hvd.pc"))
        cls.headers = next(cls.folder.rglob("hvd/hvd.h")).parent
        cls.library = next(cls.folder.rglob("libhvd.so"))

    def pkg_config(self, *options):
        output = run("pkg-config", *options, "hvd", PKG_CONFIG_PATH=str(self.pkg_config_file.parent))
        return shlex.split(output)

    def compile_flags(self):
        """hvd's headers with all warnings, those of others without."""
        flags = []
        for flag in self.pkg_config("--cflags"):
            others = flag.startswith("-I") and str(self.folder) not in flag
            flags += ["-isystem", flag[2:]] if others else [flag]
        return flags

    def test_pkg_config_file_describes_the_place_where_it_lies(self):
        prefix = pathlib.Path(self.pkg_config("--variable=prefix")[0]).resolve()
        self.assertTrue(self.headers.is_relative_to(prefix), prefix)
        self.assertRegex(self.pkg_config("--modversion")[0], r"^\d+\.\d+\.\d+$")

    def test_each_public_header_compiles_alone_without_warnings(self):
        includes = self.compile_flags()

        def compile_alone(compiler, header):
            source = self.folder / f"{pathlib.Path(compiler).name}_{header.stem}.cpp"
            source.write_text(f"#include <hvd/{header.relative_to(self.headers)}>\n")
            run(compiler, "-fsyntax-only", *WARNINGS, *includes, source)

        # hvd/torch.h is left to the tests of the adapter: libtorch takes half a minute to compile.
        headers = [header for header in self.headers.rglob("*.h") if "torch" not in str(header.relative_to(self.headers))]
        self.assertIn(self.headers / "mpi.h", headers)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for job in [pool.submit(compile_alone, compiler, header) for compiler in COMPILERS for header in headers]:
                job.result()

    def test_libraries_show_only_what_the_public_headers_declare(self):
        declared = set(re.findall(r"\w+", "".join(header.read_text() for header in self.headers.rglob("*.h"))))
        for library in {path.resolve() for path in self.folder.rglob("lib*.so")}:
            names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
            self.assertTrue(names, library)
            for name in names:
                match = HVD_SYMBOL.match(name.split("@")[0])
                self.assertTrue(match, f"{library.name} shows {name}")
                # the first name inside hvd, by its length: 7Runtime...
                length, rest = re.match(r"(\d*)(.*)", match["rest"]).groups()
                if length:
                    self.assertIn(rest[: int(length)], declared, f"{library.name} shows {name}")

    def test_outside_program_runs_with_and_without_mpirun(self):
        program = self.folder / "program"
        flags = [*WARNINGS, *self.compile_flags()]
        run("g++", *flags, here / "program.cpp", "-o", program, *self.pkg_config("--libs"))
        library_path = {"LD_LIBRARY_PATH": str(self.library.parent)}
        self.assertEqual(run(program, **library_path), "rank 0 of 1: right\n")
        output = run(*mpirun, "-np", "2", program, **library_path)
        self.assertEqual(sorted(output.splitlines()), ["rank 0 of 2: right", "rank 1 of 2: right"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
