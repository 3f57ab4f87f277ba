#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of more than 2³¹ elements in one block go through a product, a file, and a product again, to the last element."""
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

SIDE = 46400  # squared, more than 2³¹
GIB = 1 << 30


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


def test(suite, _):
    if program.DEVICE != "cpu" or available_memory() < 14 * GIB or shutil.disk_usage(suite.folder).free < 12 * GIB:
        print("skipped: this takes 14 GiB of memory and 12 GiB of disk")
        return
    rng = np.random.default_rng(1)
    # Small whole numbers, so that sums are exact in single precision.
    a, b, x = (rng.integers(-1, 2, shape).astype(np.float32) for shape in ((SIDE, 1), (1, SIDE), (SIDE, 2)))
    for name, matrix in (("a", a), ("b", b), ("x", x)):
        np.save(suite.folder / f"{name}.npy", matrix)
    run = suite.run("multiply", "--matrix", "a.npy", "--input", "b.npy", "--output", "A.npy", "--grid", "1x1", timeout=900)
    if not suite.succeeded(run):
        return
    A = np.load(suite.folder / "A.npy", mmap_mode="r")
    suite.check(A.shape == (SIDE, SIDE) and A.dtype == np.float32, "shape", A.shape, A.dtype)
    for j in (0, 1, SIDE // 2, SIDE - 2, SIDE - 1):
        suite.check((A[:, j] == a[:, 0] * b[0, j]).all(), "column", j, "of the product")
    for ranks, grid, algorithm in ((1, "1x1", "stationary-a"), (2, "1x2", "summa")):
        run = suite.run("multiply", "--matrix", "A.npy", "--input", "x.npy", "--output", "Y.npy", "--grid", grid, "--algorithm",
                        algorithm, ranks=None if ranks == 1 else ranks, timeout=900)
        if suite.succeeded(run):
            suite.check((np.load(suite.folder / "Y.npy") == a * (b @ x)).all(), "product with it,", ranks, "ranks")


if __name__ == "__main__":
    program.main(test, __doc__)
