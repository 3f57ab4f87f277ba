#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares bounds of errors with the errors, from NumPy's dense solutions: how many columns were above their bound, the median of bound
over error where columns ended, also without the quadrature, iterations to a certified error over those to a true one, and what asking for it costs.

certified_errors.py BUILD [--solver cgls] [--ranks 1] [--hertz 20,40] [--damps 1e-1,1e-2,1e-3] [--errors 1e-1,1e-2,1e-4] [--stations 24] [--columns 16]
                          [--sketches 0]

A is the kernel of one_space.py, with columns of one at 0.98 times the frequency and 5 % noise as data. With --sketches N only
probable_sigma_min() of N tall random matrices of each kind is compared with their smallest singular value."""
import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from one_space import kernel


class TrueErrors:
    """The iteration of each column at which ‖x − x*‖ ≤ E‖x‖ for the first time, for each E."""

    def __init__(self, gl, op, solution, errors):
        self.X, self.solution, self.errors = gl.zeros(op.domain, solution.shape[1], op.dtype), solution, errors
        self.reached = np.zeros((len(errors), solution.shape[1]), int)

    def __call__(self, iteration):
        iteration.copy_to(self.X)
        X = self.X.gather()
        if X is not None:
            relative = np.linalg.norm(X - self.solution, axis=0) / np.linalg.norm(X, axis=0).clip(1e-300)
            for reached, error in zip(self.reached, self.errors):
                reached[(reached == 0) & (relative <= error)] = iteration.iteration


def seconds_of(solve):
    """Of this process, whatever else runs."""
    begin = time.process_time()
    solve()
    return time.process_time() - begin


def measure(asked):
    import gridlops as gl
    grid, solve = gl.Grid(), getattr(gl, asked.solver)
    first = grid.rank == 0
    rng = np.random.default_rng(1)
    columns, above, over, ratios, without = 0, 0, {}, {}, {}
    known = {"record_history": False, "max_iterations": 20000}
    for hertz in asked.hertz:
        A = kernel(asked.stations, hertz)
        B = kernel(asked.stations, 0.98 * hertz)[:, rng.permutation(len(A))[: asked.columns]]
        noise = rng.normal(size=B.shape) + 1j * rng.normal(size=B.shape)
        B = B + 0.05 * np.linalg.norm(B) / np.linalg.norm(noise) * noise
        matrix = gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(np.asfortranarray(A) if first else None)
        op, known["frobenius_norm"] = gl.matrix_mult(matrix, storage="packed"), gl.frobenius_norm(matrix)
        data = op.range.scatter_array(np.asfortranarray(B) if first else None, 0, A.dtype)
        left, values, right = np.linalg.svd(A)
        for damp in asked.damps:
            solution = right.conj().T @ ((values / (values**2 + damp**2))[:, None] * (left.conj().T @ B))
            true = TrueErrors(gl, op, solution, asked.errors)
            solve(op, data, damp=damp, error=min(asked.errors) / 100, callback=true, **known)
            for error, reached in zip(asked.errors, true.reached):
                X, report = solve(op, data, damp=damp, error=error, **known)
                bounds, found = gl.error_bounds(report, data, X, known["frobenius_norm"], damp=damp), X.gather()
                plain = gl.error_bounds({**report, "quadratures": [1.0] * len(bounds)}, data, X, known["frobenius_norm"], damp=damp)
                if first:
                    errors = np.linalg.norm(found - solution, axis=0)
                    columns, above = columns + len(errors), above + int((errors > bounds).sum())
                    taken = np.asarray(report["column_iterations"])
                    over.setdefault(error, []).extend(bounds / errors)
                    ratios.setdefault(error, []).extend(taken / reached)
                    without.setdefault(error, []).extend(plain / errors)
                    print(f"{hertz:g} Hz, D {damp:g}, error {error:g}: {', '.join(sorted(set(report['reasons'])))}; true after {np.median(reached):g} "
                          f"iterations, certified after {np.median(taken):g}, ratio {np.median(taken / reached):.2f}; bound over error "
                          f"{np.median(bounds / errors):.2f}, without the quadrature {np.median(plain / errors):.2f}", flush=True)
        # What it costs: the same iterations, of which none is the last.
        times, products = [], []
        for turn in range(31):
            pair = []
            for bounded in ({"error": 1e-12}, {"error": 0, "frobenius_norm": None, "tolerance": 1e-12})[:: 1 if turn % 2 else -1]:
                before = sum(op.activity[name] for name in ("forward_columns", "adjoint_columns"))
                pair.append(seconds_of(lambda bounded=bounded: solve(op, data, damp=1e-3, **{**known, "max_iterations": 100, **bounded})))
                products.append(sum(op.activity[name] for name in ("forward_columns", "adjoint_columns")) - before)
            times.append(pair[0] / pair[1] if turn % 2 else pair[1] / pair[0])
        if first:
            print(f"{hertz:g} Hz: products with and without {sorted(set(products))}, time with it {statistics.median(times):.3f} times that without", flush=True)
    if first:
        for error in asked.errors:
            print(f"error {error:g}, all kernels: medians: bound over error {statistics.median(over[error]):.2f}, without the quadrature "
                  f"{statistics.median(without[error]):.2f}, iterations to a certified over "
                  f"those to a true one {statistics.median(ratios[error]):.2f}")
        print(f"{above} of {columns} columns above their bounds")


def sketches(asked):
    import gridlops as gl
    grid = gl.Grid()
    for dtype in (float, complex):
        for kind in ("decaying", "flat", "equal", "one small", "clustered"):
            ratios = []
            for seed in range(asked.sketches):
                rng = np.random.default_rng(seed)
                n, condition = int(rng.choice([4, 10, 40, 100])), 10.0 ** rng.uniform(0.5, 6)
                m = n * int(rng.choice([4, 6, 20]))
                values = {"decaying": condition ** -np.linspace(0, 1, n), "flat": np.linspace(1, 1 / condition, n), "equal": np.ones(n),
                          "one small": np.r_[np.ones(n - 1), 1 / condition], "clustered": condition ** (-0.5 * (np.arange(n) % 3))}[kind]
                left, right = (np.linalg.qr(rng.normal(size=(size, n)) + (1j * rng.normal(size=(size, n)) if dtype is complex else 0))[0] for size in (m, n))
                A = (left * values) @ right
                if seed % 2:
                    A[:n] *= 30  # a few rows have nearly all
                op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), A.dtype).scatter(np.asfortranarray(A) if grid.rank == 0 else None))
                ratios.append(op.probable_sigma_min(seed=seed + 1) / np.linalg.svd(A, compute_uv=False)[-1])
            if grid.rank == 0:
                print(f"{dtype.__name__}, {kind}: of {len(ratios)} sketches {min(ratios):.2f} to {max(ratios):.2f} of the smallest singular value, median "
                      f"{statistics.median(ratios):.2f}", flush=True)


def main():
    numbers = lambda text: [float(each) for each in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--solver", choices=["cgls", "lsqr", "lsmr"], default="cgls")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--hertz", type=numbers, default=[20, 40])
    parser.add_argument("--damps", type=numbers, default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--errors", type=numbers, default=[1e-1, 1e-2, 1e-4])
    parser.add_argument("--stations", type=int, default=24)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--sketches", type=int, default=0)
    asked = parser.parse_args()
    if os.environ.get("GRIDLOPS_CERTIFIED_ERRORS"):  # a single rank has no variable of a launcher
        return sketches(asked) if asked.sketches else measure(asked)
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    environment = {**os.environ, "PYTHONPATH": str((asked.build / "apps/python").resolve()), "GRIDLOPS_CERTIFIED_ERRORS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([launch, str(asked.ranks), sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
