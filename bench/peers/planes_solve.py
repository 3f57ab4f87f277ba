#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares least squares by steps with A and inner iterations with its high plane with CGLS: bytes of A that products read, and times.

planes_solve.py BUILD [--ranks 1] [--sizes 384x256,300x300,256x384] [--damps 1e-1,1e-2,1e-3] [--tolerances 1e-6,1e-8,1e-10]
                      [--conditions 1e1,1e3,1e5] [--each] [--timed 4096] [--columns 1,2,4] [--turns 5]

A has singular values from 1 to 1/CONDITION, in geometric order or spread evenly, and random singular vectors; b = A x + 1 % of noise for
random x. Of each combination both solvers solve one problem to each tolerance, with D as given, and products with the high plane read
half of the bytes. Then a square float64 matrix of the timed size with 1e3 and D = 1e-2, to 1e-8: seconds of both in turn, A packed for CGLS."""
import argparse
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def known(rng, rows, cols, values):
    left, right = (np.linalg.qr(rng.standard_normal((length, len(values))))[0] for length in (rows, cols))
    return (left * values) @ right.T


def data_for(rng, A, columns):
    b, noise = A @ rng.standard_normal((A.shape[1], columns)), rng.standard_normal((A.shape[0], columns))
    return b + 0.01 * np.linalg.norm(b, axis=0) / np.linalg.norm(noise, axis=0) * noise


def measure(asked):
    import gridlops as gl
    grid = gl.Grid(shape=(asked.ranks, 1))
    first = grid.rank == 0
    ends = {"max_iterations": 20000, "record_history": False}

    def operator_of(A, shape, storage):
        return gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*shape), np.float64).scatter(np.asfortranarray(A) if first else None), storage=storage)
    shares, unsolved = [], 0
    for (rows, cols), condition, kind in itertools.product(asked.sizes, asked.conditions, ("geometric", "even")):
        rng, count = np.random.default_rng(1), min(rows, cols)
        values = np.geomspace(1, 1 / condition, count) if kind == "geometric" else np.linspace(1, 1 / condition, count)
        A = known(rng, rows, cols, values)
        b = data_for(rng, A, 1)
        op = operator_of(A, A.shape, "planes")
        rough, data = gl.high_plane(op), op.range.scatter_array(b if first else None, 0, A.dtype)
        for damp, tolerance in itertools.product(asked.damps, asked.tolerances):
            how = {"damp": damp, "tolerance": tolerance, **ends}
            plain = gl.cgls(op, data, **how)[1]
            report = gl.solve_refined(op, rough, data, **how)[1]
            steps = report["refinement"]
            unsolved += sum(each["reasons"][0] not in ("converged", "stagnated") for each in (plain, report))
            share = (steps["products_with_A"] + 0.5 * steps["products_with_approximation"]) / (2 * plain["iterations"] + 3)
            shares.append(share)
            if first and asked.each:
                print(f"{rows} x {cols}, {kind}, condition {condition:g}, D {damp:g}, to {tolerance:g}: CGLS {plain['iterations']}, {report['iterations']} steps, "
                      f"{steps['inner_iterations'][0]} inner iterations: {share:.2f}", flush=True)
    if first and shares:
        print(f"{len(shares)} problems: bytes over those of CGLS: median {np.median(shares):.2f}, 90 % below {np.quantile(shares, 0.9):.2f}, "
              f"most {max(shares):.2f}; {unsolved} not solved", flush=True)
    if not asked.timed:
        return
    shape = (asked.timed, asked.timed)
    rng = np.random.default_rng(2)
    A = known(rng, *shape, np.geomspace(1, 1e-3, asked.timed)) if first else None
    packed, planes = operator_of(A, shape, "packed"), operator_of(A, shape, "planes")
    rough = gl.high_plane(planes)
    b = data_for(rng, A, max(asked.columns)) if first else None
    del A
    for columns in asked.columns:
        data = packed.range.scatter_array(b[:, :columns] if first else None, 0, np.float64)
        how = {"damp": 1e-2, "tolerance": 1e-8, **ends}
        ratios, seconds = [], []
        for turn in range(asked.turns + 1):  # the first one takes memory
            begin = time.perf_counter()
            plain = gl.cgls(packed, data, **how)[1]
            middle = time.perf_counter()
            report = gl.solve_refined(planes, rough, data, **how)[1]
            end = time.perf_counter()
            if turn:
                seconds.append((middle - begin, end - middle))
                ratios.append((middle - begin) / (end - middle))
        if first:
            print(f"{columns} columns: CGLS {plain['iterations']} iterations in {np.median([s[0] for s in seconds]):.2f} s, refined {report['iterations']} steps and "
                  f"{max(report['refinement']['inner_iterations'])} inner iterations in {np.median([s[1] for s in seconds]):.2f} s: {np.median(ratios):.2f} times "
                  f"({min(ratios):.2f} to {max(ratios):.2f}), load {os.getloadavg()[0]:.1f}", flush=True)


def main():
    numbers = lambda text: [float(each) for each in text.split(",")]  # noqa: E731
    counts = lambda text: [int(each) for each in text.split(",")]  # noqa: E731
    sizes = lambda text: [tuple(map(int, each.split("x"))) for each in text.split(",") if each]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--sizes", type=sizes, default=[(384, 256), (300, 300), (256, 384)])
    parser.add_argument("--conditions", type=numbers, default=[1e1, 1e3, 1e5])
    parser.add_argument("--damps", type=numbers, default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--tolerances", type=numbers, default=[1e-6, 1e-8, 1e-10])
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--timed", type=int, default=4096)
    parser.add_argument("--columns", type=counts, default=[1, 2, 4])
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    if os.environ.get("GRIDLOPS_PLANES_SOLVE"):  # a single rank has no variable of a launcher
        return measure(asked)
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    environment = {**os.environ, "PYTHONPATH": str((asked.build / "apps/python").resolve()), "GRIDLOPS_PLANES_SOLVE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([launch, str(asked.ranks), sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
