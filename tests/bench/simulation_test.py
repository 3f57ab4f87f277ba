# SPDX-License-Identifier: BSD-3-Clause
"""Checks bench/simulation/run on 16 simulated ranks: solutions of the programs as they are, and the clock of the modelled device.
simulation_test.py RUN BUILD-FOLDER"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SKIPPED = 77


def simulate(run, build, folder, *words):
    done = subprocess.run([run, "--build", build, "--ranks", "16", *map(str, words)], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)


def check_solutions(simulated, folder):
    """The last problem has fewer rows and columns than a grid has ranks, so parts are empty."""
    for rows, cols in ((60, 41), (13, 7)):
        simulated("gridlops", "make-problem", "--rows", rows, "--cols", cols, "--rhs", 3, "--out", "q")
        A, B = np.load(folder / "q/A.npy"), np.load(folder / "q/B.npy")
        expected = np.linalg.lstsq(A, B, rcond=None)[0]
        for algorithm, grid in (("stationary-a", "4x4"), ("summa", "4x4"), ("block", "1x16"), ("stationary-a", "2x8")):
            simulated("gridlops", "solve", "--matrix", "q/A.npy", "--rhs", "q/B.npy", "--output", "X.npy", "--algorithm", algorithm,
                      "--grid", grid, "--transport", "mpi", "--iterations", 200, "--quiet")
            error = np.linalg.norm(np.load(folder / "X.npy") - expected) / np.linalg.norm(expected)
            assert error < 1e-6, (rows, algorithm, grid, error)


def check_clock(simulated, folder):
    """In `block` a product A X sends nothing, so it takes a launch and the longer of the times of its flops and its bytes."""
    for flops, bytes_ in ((1e6, 1e12), (2e6, 1e12), (1e12, 1e6)):
        simulated("--flops", flops, "--bytes", bytes_, "--launch", 1e-3, "gridlops-bench", "matmul", "--device", "gpu", "--transport",
                  "mpi", "--grid", "1x16", "--algorithm", "block", "--rows", 160, "--cols", 50, "--rhs", 7, "--limit-order", 4,
                  "--limit-mib", 1, "--json", "F.json")
        result = json.loads((folder / "F.json").read_text(encoding="utf-8"))["results"][0]
        work = 2 * 10 * 50 * 7 / flops, 8 * (10 * 50 + 50 * 7 + 10 * 7) / bytes_
        assert abs(result["seconds"] - 1e-3 - max(work)) < 1e-7, (flops, bytes_, result)
        assert result["error"] < 1e-14, result


def check_operators(simulated, folder):
    """On a network that takes no time, a product takes its launches and the longer time of each kernel. A rank has 2 of 32 rows, and
    then 2 of 32 columns. In between it packs 15 of its 16 boxes of 2 x 2, copies one, and unpacks 15. A Fredholm integral is one
    kernel."""
    part = 16 * 32 * 2  # bytes of a rank's part of the array
    for flops, bytes_ in ((1e6, 1e12), (1e12, 1e6)):
        transforms = 2 * max(2 * 5 * 32 * 5 / flops, 2 * part / bytes_)
        boxes = 2 * (15 + 16) / 16 * part / bytes_
        slices = max(8 * 2 * 10 * 12 * 3 / flops, 8 * 2 * (10 * 12 + 12 * 3 + 10 * 3) / bytes_)
        for options, expected in ((("fourier", "--array", "32,32"), 33e-3 + transforms + boxes),
                                  (("fredholm", "--kernel", "32,10,12", "--rhs", 3), 1e-3 + slices)):
            simulated("--flops", flops, "--bytes", bytes_, "--launch", 1e-3, "--link", 1e15, "--latency", 1e-12, "gridlops-bench", "operators",
                      "--operator", *options, "--device", "gpu", "--transport", "mpi", "--reps", 1, "--limit-order", 4, "--limit-mib", 1, "--json",
                      "F.json")
            for result in json.loads((folder / "F.json").read_text(encoding="utf-8"))["results"]:
                assert abs(result["seconds"] - expected) < 1e-7, (flops, bytes_, expected, result)


def main(run, build):
    if shutil.which("smpirun") is None:
        print("skipped: there is no smpirun (Debian: libsimgrid-dev)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def simulated(*words):
            simulate(run, build, folder, *words)

        check_clock(simulated, folder)
        check_operators(simulated, folder)
        check_solutions(simulated, folder)


if __name__ == "__main__":
    main(*map(str, map(Path.absolute, map(Path, sys.argv[1:3]))))
