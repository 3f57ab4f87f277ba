#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of docs/use-cases.md that lead from SEG-Y files to a deconvolution and its picture, on one rank and on four:
segy_commands.py SOURCE_ROOT BUILD. Skips where the program, the package or segyio is missing."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

CAN_DRAW = importlib.util.find_spec("matplotlib") is not None
ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:])


def commands():
    section = (ROOT / "docs/use-cases.md").read_text(encoding="utf-8").split("**From SEG-Y.**")[1]
    return re.findall(r"^    (.+)$", section.split("\n**")[0], re.MULTILINE)


def run(folder, ranks):
    """What the commands print, and the model that they find."""
    for name, target in {"docs": ROOT / "docs", "scripts": ROOT / "scripts", "build": BUILD}.items():
        (folder / name).symlink_to(target)
    printed = ""
    for command in commands():
        if command.startswith("scripts/pictures") and not CAN_DRAW:
            continue
        words = command.replace("mpirun -n 4", f"{ROOT}/tests/support/launch {ranks}").replace("python3 ", sys.executable + " ").split()
        done = subprocess.run(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(BUILD / "apps/python")}, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode in (0, 3), (command, done.returncode, done.stdout, done.stderr)
        printed += done.stdout
    return printed, np.load(folder / "survey/inverted.npy")


def main():
    for module in ("segyio", "h5py", "mpi4py"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}")
            return 77
    if not (BUILD / "apps/gridlops").exists() or not list((BUILD / "apps/python/gridlops").glob("_native*")):
        print("skipped: the program or the Python package was not built")
        return 77
    assert len(commands()) == 5
    found = {}
    for ranks in (1, 4):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            printed, found[ranks] = run(folder, ranks)
            assert "9 x 24 x 256" in printed and "traces, 256 x 24 x 3" in printed, printed
            assert all(int(peak) < 1000 for peak in re.findall(r"peak memory: (\d+) MiB", printed)), printed
            assert not CAN_DRAW or (folder / "survey/mdd.png").stat().st_size > 10000
            response = np.load(folder / "survey/response.npy")
    error = np.linalg.norm(found[4] - response) / np.linalg.norm(response)
    apart = np.linalg.norm(found[4] - found[1]) / np.linalg.norm(response)
    print(f"The model differs from the response by {error:.3f}, and on one rank from that on four by {apart:.1e}.")
    return 0 if error < 0.05 and apart < 1e-3 else 1


sys.exit(main())
