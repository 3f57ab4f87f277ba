#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares least squares by steps with A and a compressed A with CGLS: passes over A, inner iterations, bytes, and verdicts.

refined_solve.py BUILD [--ranks 1] [--hertz 20,40] [--damps 1e-1,1e-2,1e-3] [--errors 1e-2,1e-3,1e-4] [--stations 32] [--tile 128]
                       [--tolerance 1e-10] [--refuse]

A is the kernel of four reflectors of one_space.py, seen from stations x stations points; its tiles are cut off by their singular
values, so that the Frobenius norm of all that is left out is at most each of these fractions of ‖A‖_F. A product reads the factors
of a tile, or the tile where they are larger. With --refuse the solver is told so, and ends where it gains nothing."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from one_space import kernel


def compressed(A, error, tile):
    """The approximation, and its numbers over those of A."""
    tiles, rough, numbers = len(A) // tile, np.empty_like(A), 0
    for rows in (slice(i * tile, (i + 1) * tile) for i in range(tiles)):
        for columns in (slice(j * tile, (j + 1) * tile) for j in range(tiles)):
            U, values, V = np.linalg.svd(A[rows, columns])
            left_out = np.sqrt(np.cumsum(values[::-1] ** 2))[::-1]
            rank = int((left_out > error * np.linalg.norm(A) / tiles).sum())
            rough[rows, columns] = (U[:, :rank] * values[:rank]) @ V[:rank]
            numbers += min(2 * tile * rank, tile * tile)
    return rough, numbers / A.size


def measure(asked):
    import gridlops as gl
    grid = gl.Grid()
    first = grid.rank == 0
    ends = {"tolerance": asked.tolerance, "max_iterations": 5000, "record_history": False}
    for hertz in asked.hertz:
        A, rng = kernel(asked.stations, hertz), np.random.default_rng(2)
        normal = lambda: rng.normal(size=len(A)) + 1j * rng.normal(size=len(A))  # noqa: E731
        b, noise = A @ normal(), normal()
        b += 0.05 * np.linalg.norm(b) / np.linalg.norm(noise) * noise
        operator_of = lambda M: gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*M.shape), M.dtype).scatter(np.asfortranarray(M) if first else None))  # noqa: E731
        op = operator_of(A)
        data = op.range.scatter_array(b[:, None] if first else None, 0, A.dtype)
        plain = {damp: gl.cgls(op, data, damp=damp, **ends)[1] for damp in asked.damps}
        for error in asked.errors:
            rough, share = compressed(A, error, asked.tile)
            approximation = operator_of(rough)
            costs = {"cost_of_A": 1.0, "cost_of_approximation": share} if asked.refuse else {}
            for damp in asked.damps:
                _, report = gl.solve_refined(op, approximation, data, damp=damp, **costs, **ends)
                steps, of_cgls = report["refinement"], plain[damp]["iterations"] + 1.5
                bytes_read = (steps["products_with_A"] + share * steps["products_with_approximation"]) / 2 / of_cgls
                if first:
                    print(f"{hertz:g} Hz, D {damp:g}, error {error:g}, {1 / share:.1f} times smaller: {report['iterations']} steps, "
                          f"{steps['products_with_A'] / 2:g} passes over A, {steps['inner_iterations'][0]} inner iterations, contraction "
                          f"{steps['contractions'][0]:.1e}, {report['reasons'][0]}; CGLS {plain[damp]['iterations']} iterations (expected "
                          f"{steps['cgls_iterations'][0]:.0f}), {plain[damp]['reasons'][0]}; {bytes_read:.2f} of its bytes"
                          + (f"; {steps['refusal']}" if steps["refusal"] else ""), flush=True)


def main():
    numbers = lambda text: [float(each) for each in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--hertz", type=numbers, default=[20, 40])
    parser.add_argument("--damps", type=numbers, default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--errors", type=numbers, default=[1e-2, 1e-3, 1e-4])
    parser.add_argument("--stations", type=int, default=32)
    parser.add_argument("--tile", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-10)
    parser.add_argument("--refuse", action="store_true")
    asked = parser.parse_args()
    if os.environ.get("GRIDLOPS_REFINED_SOLVE"):  # a single rank has no variable of a launcher
        return measure(asked)
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    environment = {**os.environ, "PYTHONPATH": str((asked.build / "apps/python").resolve()), "GRIDLOPS_REFINED_SOLVE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([launch, str(asked.ranks), sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
