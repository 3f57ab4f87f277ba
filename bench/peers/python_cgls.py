#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares CGLS in Python with the program: pairs of runs with the same problem, options and ranks.

    bench/peers/python_cgls.py build [PAIRS]

Prints for each pair the median time of an iteration on the slower rank. Then prints the ratio of Python's time to the
program's: the median of all pairs, and the ratio of the fastest runs."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROWS, COLS, NRHS, ITERATIONS, RANKS = 4096, 2048, 16, 30, 2


def solve(folder):
    """Every rank of Python runs this. As in the program, each rank reads its own part, and an observer takes the
    times."""
    import time

    import gridlops as gl
    import numpy as np

    grid = gl.Grid(shape=(RANKS, 1))
    A, B = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "AB")
    matrix = gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype)
    matrix.local[...] = A[matrix.rows, matrix.cols]
    op = gl.matrix_mult(matrix)
    data, X = gl.zeros(op.range, B.shape[1]), gl.zeros(op.domain, B.shape[1])
    data.local[...] = B[data.rows]
    times = []
    _, report = gl.cgls(op, data, out=X, max_iterations=ITERATIONS, tolerance=0, callback=lambda _: times.append(time.perf_counter()))
    slowest = max(grid.comm.allgather(statistics.median(np.diff(times))))
    if grid.rank == 0:
        print(json.dumps({"seconds": slowest, "iterations": report["iterations"]}))


def main(build, pairs=7):
    launch = pathlib.Path(__file__).resolve().parents[2] / "tests/support/launch"
    program = pathlib.Path(build).resolve() / "apps/gridlops"
    os.environ["PYTHONPATH"] = str(pathlib.Path(build).resolve() / "apps/python")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        run = lambda *words: subprocess.run([launch, str(RANKS), *words], check=True, capture_output=True, text=True).stdout  # noqa: E731
        run(program, "make-problem", "--rows", str(ROWS), "--cols", str(COLS), "--rhs", str(NRHS), "--out", folder)
        command = [program, "solve", "--matrix", folder / "A.npy", "--rhs", folder / "B.npy", "--output", folder / "X.npy",
                   "--grid", f"{RANKS}x1", "--algorithm", "stationary-a", "--storage", "columns", "--transport", "mpi", "--tolerance", "0",
                   "--iterations", str(ITERATIONS), "--report", folder / "R.json", "--quiet"]
        theirs, ours = [], []
        for _ in range(int(pairs)):
            # It ends with 3: no column converges.
            subprocess.run([launch, str(RANKS), *command], check=False, capture_output=True)
            report = json.loads((folder / "R.json").read_text(encoding="utf-8"))
            python = json.loads(run(sys.executable, __file__, "--rank", folder))
            assert python["iterations"] == report["iterations"], (python, report["iterations"])
            theirs.append(report["prediction"]["seconds"]["measured"])
            ours.append(python["seconds"])
            print(f"program {1e3 * theirs[-1]:.2f} ms, Python {1e3 * ours[-1]:.2f} ms, ratio {ours[-1] / theirs[-1]:.3f}", flush=True)
    median = statistics.median(python / program for python, program in zip(ours, theirs))
    print(f"{ROWS} x {COLS}, {NRHS} columns, {report['iterations']} iterations, {RANKS} ranks: median ratio {median:.3f}, "
          f"of the fastest {min(ours) / min(theirs):.3f}")


if sys.argv[1] == "--rank":
    solve(pathlib.Path(sys.argv[2]))
else:
    main(*sys.argv[1:])
