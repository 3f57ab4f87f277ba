#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares one space for all right-hand sides and dampings with block CGLS and CGLS of the smallest damping alone, and with
--all with CGLS of all columns, in turn: products of columns with A or Aᴴ, seconds, and the verdicts of the solutions.

one_space.py BUILD HERTZ|decaying|clustered|flat|equal|FOLDER [--ranks 2] [--columns 64] [--dampings 30] [--stations 32] [--least 1e-3]
             [--noise 0] [--turns 1] [--all | --no-cgls]

A frequency names the kernel of four reflectors with a dip, seen from stations 15 m apart with 2 m of jitter; its data are columns of
a kernel of 0.98 times the frequency. The other matrices are 576 x 576 with such singular values, and random data in their range. A
folder has A.npy and B.npy of make-problem; A is divided by its norm. The limit of products is 1.5 times those of block CGLS and one
block."""
import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def kernel(side, hertz, spacing=15.0, speed=1800.0):
    along, across = (axis.ravel() * spacing for axis in np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
    receivers = np.stack([along, across], 1)
    sources = receivers + np.random.default_rng(0).normal(0, 2, receivers.shape)
    G = np.zeros((len(sources), len(receivers)), complex)
    for depth, strength in ((300.0, 1.0), (500.0, -0.6), (700.0, 0.5), (900.0, 0.3)):
        dx = sources[:, :1] - receivers[:, 0] + 0.1 * depth
        dy = sources[:, 1:] - receivers[:, 1]
        length = np.sqrt(dx**2 + dy**2 + (2 * depth) ** 2)
        G += strength * np.exp(-2j * np.pi * hertz / speed * length) / length
    return G / np.linalg.norm(G, 2)


def matrix(kind, n=576):
    rng = np.random.default_rng(5)
    values = {"decaying": 10.0 ** (-6 * np.linspace(0, 1, n)), "flat": np.linspace(1, 1e-3, n), "equal": np.linspace(1, 0.5, n),
              "clustered": np.sort(np.array([1, .3, .1, 1e-2, 1e-3, 1e-4])[rng.integers(0, 6, n)] * (1 + 1e-3 * rng.uniform(-1, 1, n)))[::-1]}[kind]
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return (left * values) @ right


def problem(asked):
    rng, columns = np.random.default_rng(1), asked.columns
    if asked.kind[0].isdigit():
        A = kernel(asked.stations, float(asked.kind))
        B = kernel(asked.stations, 0.98 * float(asked.kind))[:, rng.permutation(len(A))[:columns]]
    elif Path(asked.kind).is_dir():
        A, B = np.load(Path(asked.kind, "A.npy")), np.load(Path(asked.kind, "B.npy"))[:, :columns]
        A = A / np.linalg.norm(A, 2)
    else:
        A = matrix(asked.kind)
        B = A @ rng.normal(size=(len(A), columns))
    noise = rng.normal(size=B.shape) + (1j * rng.normal(size=B.shape) if np.iscomplexobj(B) else 0)
    return A, B + asked.noise * np.linalg.norm(B) / np.linalg.norm(noise) * noise


def timed(solve):
    begin = time.perf_counter()
    result = solve()
    return time.perf_counter() - begin, result


def measure(asked):
    import gridlops as gl
    A, B = problem(asked)
    grid, damps = gl.Grid(), np.geomspace(asked.least, 1, asked.dampings)
    first = grid.rank == 0
    matrix = gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(np.asfortranarray(A) if first else None)
    op = gl.matrix_mult(matrix, storage="packed")
    data, copies = (op.range.scatter_array(np.asfortranarray(array) if first else None, 0, A.dtype) for array in (B, np.tile(B, asked.dampings if asked.all else 0)))
    ends = {"tolerance": 1e-6, "max_iterations": 20000, "record_history": False}
    for _ in range(asked.turns):
        seconds, space = timed(lambda: gl.SolutionSpace(op, data, damps, tolerance=1e-6))
        chosen = [curve["damps"][curve["chosen"]] if curve["chosen"] is not None else asked.least for curve in space.curves()]
        of_chosen, (_, report) = timed(lambda: space.solve(data, chosen, **ends))
        of_block, (_, block) = timed(lambda: gl.block_cgls(op, data, damp=asked.least, **ends))
        of_products = asked.columns * (2 * block["iterations"] + 1)
        text = (f"{asked.kind}, {len(A)} x {A.shape[1]}, {asked.columns} columns, D >= {asked.least:g}: space {space.products} products (limit "
                f"{1.5 * of_products + asked.columns:g}), {space.dimension} vectors, {seconds:.2f} s, "
                f"and {of_chosen:.2f} s for the chosen ({max(report['column_iterations'])} iterations, {', '.join(sorted(set(report['reasons'])))}); "
                f"smallest D: block CGLS {of_products} products, {of_block:.2f} s")
        if not asked.no_cgls:
            of_one, (_, one) = timed(lambda: gl.cgls(op, data, damp=asked.least, **ends))
            text += f", CGLS {2 * sum(one['column_iterations']) + asked.columns} products, {of_one:.2f} s"
        if asked.all:
            of_all, (_, every) = timed(lambda: gl.cgls(op, copies, damp=np.repeat(damps, asked.columns), **ends))
            text += (f"; CGLS of all columns {2 * sum(every['column_iterations']) + asked.dampings * asked.columns} products, {of_all:.1f} s, "
                     f"{of_all / (seconds + of_chosen):.1f} times the space and the chosen")
        if first:
            print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("kind")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--dampings", type=int, default=30)
    parser.add_argument("--stations", type=int, default=32)
    parser.add_argument("--least", type=float, default=1e-3)
    parser.add_argument("--noise", type=float, default=0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--no-cgls", action="store_true")
    asked = parser.parse_args()
    if "OMPI_COMM_WORLD_RANK" in os.environ or "PMI_RANK" in os.environ:
        return measure(asked)
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    environment = {**os.environ, "PYTHONPATH": str((asked.build / "apps/python").resolve()), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([launch, str(asked.ranks), sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
