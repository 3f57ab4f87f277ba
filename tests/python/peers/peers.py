#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares our functions with PyLops-MPI's, and runs its own tests with ours in their place: peers.py PACKAGE RANKS.

GRIDLOPS_PYLOPS_MPI names a checkout of PyLops-MPI, and GRIDLOPS_PYLOPS_MPI_PYTHON a Python that has it with its requirements and
pytest (the one that runs this is the default). Ends with 77 where something is missing."""
import os
import pathlib
import subprocess
import sys

PLUGIN = pathlib.Path("peers_plugin.py")
FILES = ("test_matrixmult.py", "test_solver.py", "test_sparsity.py")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def main(package, ranks):
    checkout = os.environ.get("GRIDLOPS_PYLOPS_MPI", "")
    python = os.environ.get("GRIDLOPS_PYLOPS_MPI_PYTHON", sys.executable)
    if not package:
        skip("the Python package was not built")
    if subprocess.run([python, "-c", "import pylops_mpi"], capture_output=True, check=False).returncode != 0:
        skip(f"{python} has no pylops_mpi; GRIDLOPS_PYLOPS_MPI_PYTHON may name another one")
    here = pathlib.Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join([package, str(here), str(here.parent / "support")])
    if subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False).returncode != 0:
        skip(f"{python} has no pytest")
    pytest = [here.parents[1] / "support" / "launch", ranks, python, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    failed = subprocess.run([*pytest, "-p", "ranks", "--rootdir", here, here / "drop_in_test.py"], check=False).returncode != 0
    if failed or not checkout:
        print("PyLops-MPI's own tests were not run" + ("" if checkout else ": GRIDLOPS_PYLOPS_MPI does not say where a checkout of it is"))
        return 1 if failed else 0
    for name in FILES:
        command = [*pytest, "-p", PLUGIN.stem, "--noconftest", pathlib.Path(checkout) / "tests" / name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in result.stdout.splitlines() if line.startswith("PEERS")]
        print(*lines, sep="\n", flush=True)
        if result.returncode != 0 or len(lines) != 1 or not lines[0].endswith(" 0 failed []") or ": 0 passed" in lines[0]:
            print(result.stdout[-20000:], result.stderr[-5000:], sep="\n")
            failed = True
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
