"""Tells which MPI there is when hvd's core cannot be loaded, or not with this one."""

import ctypes.util
import os
import re
import shutil
import subprocess
import sys

from . import _build_info


def installed():
    """What is found of MPI on this machine, one text each."""
    found = []
    for name in ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", ctypes.util.find_library("mpi")):
        version = name and _library_version(name)
        if version and f"{version} ({name})" not in found:
            found.append(f"{version} ({name})")
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher:
        found.append(f"{_launcher_version(launcher)} ({launcher})")
    return found


def family(version):
    """The first words of a library's version text that tell MPIs apart: ("Open MPI", "4")."""
    match = re.search(r"(Open MPI|MPICH|Intel\(R\) MPI|MVAPICH2?)\D*(\d+)", version)
    return (match[1], match[2]) if match else (version.strip(), "")


def explain(error):
    """The text of an ImportError for a core that could not be loaded."""
    if not re.search(r"libmpi\w*\.so|[ _]MPI_|ompi_", str(error)):
        return f"hvd's core could not be loaded: {error}"
    found = "; ".join(installed()) or "none"
    path = os.environ.get("LD_LIBRARY_PATH", "")
    return (
        f"hvd's core could not be loaded: {error}. It was built against {_build_info.MPI}; found on this machine: "
        f"{found} (LD_LIBRARY_PATH={path!r}). Install that MPI, or build hvd again with the one that is here: "
        "pip install --no-binary hvd --force-reinstall hvd"
    )


def check(library, wanted):
    """Raises ImportError when the library that was loaded is another MPI than the one hvd was built against.

    Both are what MPI_Get_library_version said, now and as the headers have it.
    """
    if family(library) != family(wanted):
        raise ImportError(
            f"hvd was built against {' '.join(family(wanted))} and has been loaded with {first_line(library)}: "
            "use one MPI, or build hvd again"
        )


def first_line(version):
    return version.strip("\0 \n").splitlines()[0].split(", package")[0]


def _library_version(name):
    """In a process of its own: another MPI in this one would do harm."""
    program = (
        "import ctypes, sys; text = ctypes.create_string_buffer(8192); "
        "ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(ctypes.c_int())); print(text.value.decode())"
    )
    output = _output(sys.executable, "-c", program, name)
    return first_line(output) if output.strip() else None


def _launcher_version(launcher):
    return first_line(_output(launcher, "--version") or "unknown version")


def _output(*command):
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if process.returncode == 0 else ""
