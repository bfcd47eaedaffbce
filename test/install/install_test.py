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
        folder = tempfile.TemporaryDirectory(prefix="hvd-installed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder.name)
        cls.pkg_config_file = next(cls.folder.rglob("hvd.pc"))
        cls.headers = next(cls.folder.rglob("hvd/hvd.h")).parent
        cls.library = next(cls.folder.rglob("libhvd.so"))

    def pkg_config(self, *arguments):
        """pkg-config, for a system that has the installed files under `folder`."""
        output = run("pkg-config", *arguments, PKG_CONFIG_PATH=str(self.pkg_config_file.parent),
                     PKG_CONFIG_SYSROOT_DIR=str(self.folder))
        return shlex.split(output)

    def test_pkg_config_file_tells_where_things_are(self):
        self.assertEqual(self.pkg_config("--cflags", "hvd"), [f"-I{self.headers.parent}"])
        self.assertEqual(self.pkg_config("--libs", "hvd"), [f"-L{self.library.parent}", "-lhvd"])
        self.assertRegex(self.pkg_config("--modversion", "hvd")[0], r"^\d+\.\d+\.\d+$")

    def test_each_public_header_compiles_alone_without_warnings(self):
        mpi = [f"-isystem{flag.removeprefix('-I')}" for flag in shlex.split(run("pkg-config", "--cflags-only-I", "ompi-cxx"))]

        def compile_alone(compiler, header):
            source = self.folder / f"{pathlib.Path(compiler).name}_{header.stem}.cpp"
            source.write_text(f"#include <hvd/{header.relative_to(self.headers)}>\n")
            others = mpi if header.name == "mpi.h" else []
            run(compiler, "-fsyntax-only", *WARNINGS, *self.pkg_config("--cflags", "hvd"), *others, source)

        # hvd/torch.h is left to the tests of the adapter: libtorch takes half a minute to compile.
        headers = [header for header in self.headers.rglob("*.h") if "torch" not in str(header.relative_to(self.headers))]
        self.assertIn(self.headers / "mpi.h", headers)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for job in [pool.submit(compile_alone, compiler, header) for compiler in COMPILERS for header in headers]:
                job.result()

    def test_library_shows_only_what_the_public_headers_declare(self):
        declared = set(re.findall(r"\w+", "".join(header.read_text() for header in self.headers.rglob("*.h"))))
        names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", self.library).splitlines()]
        self.assertIn("_ZN3hvd4initEv", names)
        foreign = [name for name in names if not HVD_SYMBOL.match(name)]
        self.assertEqual(foreign, [], "not in namespace hvd")
        # the first name inside hvd follows its length: 7Runtime...
        inner = {name: re.match(r"(\d+)(.*)", HVD_SYMBOL.match(name)["rest"]) for name in names}
        internal = [name for name, match in inner.items() if match and match[2][: int(match[1])] not in declared]
        self.assertEqual(internal, [], "not in a public header")

    def test_outside_program_runs_with_and_without_mpirun(self):
        program = self.folder / "program"
        run("g++", *WARNINGS, here / "program.cpp", "-o", program, *self.pkg_config("--cflags", "--libs", "hvd"))
        library_path = {"LD_LIBRARY_PATH": str(self.library.parent)}
        self.assertEqual(run(program, **library_path), "rank 0 of 1: right\n")
        output = run(*mpirun, "-np", "2", program, **library_path)
        self.assertEqual(sorted(output.splitlines()), ["rank 0 of 2: right", "rank 1 of 2: right"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
