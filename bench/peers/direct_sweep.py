#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares sweeps of the damping, whose choice for each of many right-hand sides is that of generalised cross-validation, with NumPy, in turn.

    bench/peers/direct_sweep.py build [--size 4096x2048] [--rhs 1000] [--condition 1e3] [--dampings 1e-3:1:30] [--turns 5] [--ways direct]

The program has two ranks of one thread each, and NumPy two threads: the singular value decomposition of A, and where A has at least as
many rows as columns the eigenvectors of AᴴA; then norms of all right-hand sides for all dampings, and X for the chosen ones. --ways: those of
--sweep, as direct,space. The problem is that of direct_solve.py. Prints the load, and for each the median of the seconds without files, and
how many of its choices are those of the singular value decomposition."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import scipy.linalg

from direct_solve import RANKS, in_turn, make_problem


def chosen_by(A, B, values, right, data, damps):
    """data: Uᴴb. Returns the choices and X."""
    inside, whole = np.square(data), np.square(B).sum(0)
    merits = []
    for damp in damps:
        left = damp**2 / (values**2 + damp**2)
        merits.append((whole - ((1 - left**2) @ inside)) / (A.shape[0] - np.sum(1 - left)) ** 2)
    chosen = np.argmin(merits, axis=0)
    return chosen, right @ (values[:, None] / (values[:, None] ** 2 + damps[chosen] ** 2) * data)


def by_svd(A, B, damps):
    begin = time.perf_counter()
    left, values, right = scipy.linalg.svd(A, full_matrices=False)
    chosen, _ = chosen_by(A, B, values, right.T, left.T @ B, damps)
    return time.perf_counter() - begin, chosen


def by_eigenvectors(A, B, damps):
    begin = time.perf_counter()
    squares, vectors = scipy.linalg.eigh(A.T @ A, driver="evd")
    values = np.sqrt(squares)
    chosen, _ = chosen_by(A, B, values, vectors, vectors.T @ (A.T @ B) / values[:, None], damps)
    return time.perf_counter() - begin, chosen


def by_program(build, folder, way, dampings):
    launch = pathlib.Path(__file__).resolve().parents[2] / "tests/support/launch"
    subprocess.run([launch, str(RANKS), pathlib.Path(build).resolve() / "apps/gridlops", "solve", "--matrix", folder / "A.npy", "--rhs", folder / "B.npy",
                    "--damps", dampings, "--sweep", way, "--choose", "gcv", "--iterations", "2000", "--output", folder / "X.npy", "--report",
                    folder / "R.json", "--quiet"], check=True, capture_output=True)
    report = json.loads((folder / "R.json").read_text(encoding="utf-8"))
    return report["seconds"]["compute"], np.array(report["sweep"]["chosen"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--size", default="4096x2048")
    parser.add_argument("--rhs", type=int, default=1000)
    parser.add_argument("--condition", type=float, default=1e3)
    parser.add_argument("--dampings", default="1e-3:1:30")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ways", default="direct")
    asked = parser.parse_args()
    rows, cols = (int(size) for size in asked.size.split("x"))
    low, high, count = asked.dampings.split(":")
    damps = np.geomspace(float(low), float(high), int(count))
    A, B = make_problem(rows, cols, asked.rhs, asked.condition)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        np.save(folder / "A.npy", np.asfortranarray(A))
        np.save(folder / "B.npy", np.asfortranarray(B))
        runs = {f"--sweep {way}": lambda way=way: by_program(asked.build, folder, way, asked.dampings) for way in asked.ways.split(",")}
        runs["NumPy, SVD"] = lambda: by_svd(A, B, damps)
        if rows >= cols:
            runs["NumPy, eigh"] = lambda: by_eigenvectors(A, B, damps)
        found = in_turn(runs, asked.turns)
    print(f"{rows} x {cols}, {asked.rhs} right-hand sides, condition {asked.condition:g}, dampings {asked.dampings}, load {os.getloadavg()[0]:.1f}")
    for name, results in found.items():
        same = np.mean(results[-1][1] == found["NumPy, SVD"][-1][1])
        print(f"  {name:14} {statistics.median(result[0] for result in results):8.3f} s  {100 * same:.1f} % the same choices", flush=True)


if __name__ == "__main__":
    main()
