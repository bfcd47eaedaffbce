"""What this build of hvd is and what it finds here: python -m hvd.check_build"""

import importlib.metadata
import importlib.util
import platform

from . import _build_info, _core, _mpi

FRAMEWORKS = {"numpy": "numpy", "ml_dtypes": "ml_dtypes", "PyTorch": "torch", "JAX": "jax", "TensorFlow": "tensorflow"}


def report():
    """Lines of text."""
    lines = [
        f"hvd {_core.version}, Python {platform.python_version()}, {platform.machine()}",
        f"  core:      {_core.__file__}",
        f"  built by:  {_build_info.COMPILER}, {_build_info.OPTIONS}",
        f"  MPI:       built against {_core.mpi_built_with}, loaded {_mpi.first_line(_core.mpi_library_version())}",
    ]
    lines += [f"  on this machine: {found}" for found in _mpi.installed()]
    lines.append(f"  dtypes:    {', '.join(_core.dtypes)}")
    lines.append("  data plane: [X] CPU  [ ] GPU")
    lines.append("frameworks:")
    for name, module in FRAMEWORKS.items():
        lines.append(f"  [{'X' if _is_there(module) else ' '}] {name}{_version(module)}")
    return lines


def _is_there(module):
    return importlib.util.find_spec(module) is not None


def _version(module):
    try:
        return " " + importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    print(*report(), sep="\n")
