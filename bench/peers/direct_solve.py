#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares solvers of the program with NumPy's Cholesky factor of the normal equations, in turn, for many right-hand sides.

    bench/peers/direct_solve.py build [--size 3000x1500] [--rhs 64,1000] [--condition 1e3] [--damp 1e-2] [--turns 5]
                                      [--solvers direct,block-cgls]

The program has two ranks of one thread each, and NumPy two threads: AᴴA (or AAᴴ), Cholesky, AᴴB, and one correction. A
has singular values that fall geometrically; B = AX + noise of one per cent. Prints the load, and for each number of right-hand
sides the medians of the seconds that each takes without files, with iterations and the largest gradient relative to ‖Aᴴb‖."""
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

RANKS = 2


def make_problem(rows, cols, rhs, condition):
    rng = np.random.default_rng(0)
    rank = min(rows, cols)
    left, right = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (rows, cols))
    A = (left * np.geomspace(1, 1 / condition, rank)) @ right.T
    B = A @ rng.standard_normal((cols, rhs))
    return A, B + 1e-2 * np.linalg.norm(B, axis=0) / np.sqrt(rows) * rng.standard_normal(B.shape)


def by_numpy(A, B, damp):
    begin = time.perf_counter()
    tall = A.shape[0] >= A.shape[1]
    gram = A.T @ A if tall else A @ A.T
    gram[np.diag_indices_from(gram)] += damp**2
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True)
    data = A.T @ B
    Y = scipy.linalg.cho_solve(factor, data if tall else B)
    X = Y if tall else A.T @ Y
    rest = B - A @ X
    gradient = A.T @ rest - damp**2 * X
    largest = np.max(np.linalg.norm(gradient, axis=0) / np.linalg.norm(data, axis=0))
    if tall:
        X += scipy.linalg.cho_solve(factor, gradient)
    else:
        X += A.T @ scipy.linalg.cho_solve(factor, rest - damp**2 * Y)
    return time.perf_counter() - begin, 1, largest


def by_program(build, folder, solver, damp, *words):
    launch = pathlib.Path(__file__).resolve().parents[2] / "tests/support/launch"
    subprocess.run([launch, str(RANKS), pathlib.Path(build).resolve() / "apps/gridlops", "solve", "--matrix", folder / "A.npy", "--rhs", folder / "B.npy",
                    "--damp", str(damp), "--solver", solver, "--iterations", "2000", "--output", folder / "X.npy", "--report", folder / "R.json",
                    "--quiet", *words], check=True, capture_output=True)
    report = json.loads((folder / "R.json").read_text(encoding="utf-8"))
    return report["seconds"]["compute"], report["iterations"], max(column["tested_norm"] for column in report["columns"])


def in_turn(runs, turns):
    """The results of each run, by its name. A first turn warms up."""
    found = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            result = run()
            if turn > 0:
                found[name].append(result)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--size", default="3000x1500")
    parser.add_argument("--rhs", default="64,1000")
    parser.add_argument("--condition", type=float, default=1e3)
    parser.add_argument("--damp", type=float, default=1e-2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--solvers", default="direct,block-cgls")
    asked = parser.parse_args()
    rows, cols = (int(size) for size in asked.size.split("x"))
    for rhs in (int(number) for number in asked.rhs.split(",")):
        A, B = make_problem(rows, cols, rhs, asked.condition)
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            np.save(folder / "A.npy", np.asfortranarray(A))
            np.save(folder / "B.npy", np.asfortranarray(B))
            runs = {solver: lambda solver=solver: by_program(asked.build, folder, solver, asked.damp) for solver in asked.solvers.split(",")}
            runs["NumPy"] = lambda: by_numpy(A, B, asked.damp)
            found = in_turn(runs, asked.turns)
        print(f"{rows} x {cols}, {rhs} right-hand sides, condition {asked.condition:g}, damping {asked.damp:g}, load {os.getloadavg()[0]:.1f}")
        for name, results in found.items():
            print(f"  {name:12} {statistics.median(result[0] for result in results):8.3f} s  {results[-1][1]:5} iterations  gradient {results[-1][2]:.0e}", flush=True)


if __name__ == "__main__":
    main()
