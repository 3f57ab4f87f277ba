#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of the Python package by pytest on every rank: run.py PACKAGE RANKS FILE [OPTION of pytest…].

PACKAGE is the folder that has the built package, or empty where none was built. Ends with 77 where something is missing."""
import importlib.util
import os
import pathlib
import sys

package, ranks, file, *options = sys.argv[1:]
if not package:
    print("skipped: the Python package was not built, for which pybind11 and Python's headers are needed")
    sys.exit(77)
for module in ("numpy", "mpi4py", "pytest"):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module}")
        sys.exit(77)
here = pathlib.Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = os.pathsep.join([package, str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
launch = here.parents[1] / "support" / "launch"
os.execv(launch, [launch, ranks, sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "ranks", "-p", "no:cacheprovider", "--rootdir", here, file, *options])
