#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares `gridlops solve --nonnegative` with block pivoting on one Gram matrix, and with scipy.optimize.nnls, in turn.

    bench/peers/bounded_solve.py build [--size 4096x2048] [--rhs 256] [--condition 10] [--damp 0] [--turns 3] [--columns 2]

Block principal pivoting is that of Kim and Park (Fast nonnegative matrix factorization, SIAM J. Sci. Comput. 33, 2011): it exchanges
all infeasible elements of every column, and solves for columns with the same passive set together. The program has two ranks of one
thread each, and NumPy two threads. nnls solves a few of the columns, and its time is multiplied. Half of the elements of the true X
are 0, and B has noise of one per cent. Prints the load, and medians of the seconds without files, with the largest f relative to block
pivoting's, and the largest difference of x."""
import argparse
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
import scipy.linalg
import scipy.optimize

import direct_solve


def make_problem(rows, cols, rhs, condition):
    rng = np.random.default_rng(0)
    A, B = direct_solve.make_problem(rows, cols, 1, condition)
    B = A @ (abs(rng.standard_normal((cols, rhs))) * (rng.random((cols, rhs)) < 0.5))
    return A, B + 1e-2 * np.linalg.norm(B, axis=0) / np.sqrt(rows) * rng.standard_normal(B.shape)


def block_pivoting(A, B, damp):
    """X and the seconds."""
    begin = time.perf_counter()
    H, C = A.T @ A, A.T @ B
    H[np.diag_indices_from(H)] += damp**2
    n, rhs = C.shape
    passive, X, Y = np.zeros((n, rhs), bool), np.zeros((n, rhs)), -C
    tries, least = np.full(rhs, 3), np.full(rhs, n + 1)
    slack = 1e-12 * np.abs(C).max()
    while True:
        wrong = (passive & (X < 0)) | (~passive & (Y < -slack))
        count = wrong.sum(axis=0)
        open_columns = np.flatnonzero(count)
        if not open_columns.size:
            return X, time.perf_counter() - begin
        for j in open_columns:
            if count[j] < least[j]:
                least[j], tries[j] = count[j], 3
            elif tries[j] > 0:
                tries[j] -= 1
            else:  # the last one alone, which ends
                wrong[: np.flatnonzero(wrong[:, j])[-1], j] = False
        passive[:, open_columns] ^= wrong[:, open_columns]
        groups = {}
        for j in open_columns:
            groups.setdefault(passive[:, j].tobytes(), []).append(j)
        for columns in groups.values():
            of = passive[:, columns[0]]
            X[:, columns] = 0
            if of.any():
                X[np.ix_(of, columns)] = scipy.linalg.cho_solve(scipy.linalg.cho_factor(H[np.ix_(of, of)], overwrite_a=True, check_finite=False),
                                                                C[np.ix_(of, columns)], check_finite=False)
        Y[:, open_columns] = H @ X[:, open_columns] - C[:, open_columns]
        Y[passive] = 0


def by_nnls(A, B, damp, columns):
    """The seconds that all columns would take."""
    stacked = np.vstack([A, damp * np.eye(A.shape[1])]) if damp else A
    begin = time.perf_counter()
    for b in B.T[:columns]:
        scipy.optimize.nnls(stacked, np.concatenate([b, np.zeros(len(stacked) - len(b))]), maxiter=100 * A.shape[1])
    return (time.perf_counter() - begin) * B.shape[1] / columns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--size", default="4096x2048")
    parser.add_argument("--rhs", type=int, default=256)
    parser.add_argument("--condition", type=float, default=10)
    parser.add_argument("--damp", type=float, default=0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--columns", type=int, default=2)
    asked = parser.parse_args()
    A, B = make_problem(*(int(size) for size in asked.size.split("x")), asked.rhs, asked.condition)
    seconds = {"bounded": [], "block pivoting": [], "nnls": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        np.save(folder / "A.npy", np.asfortranarray(A))
        np.save(folder / "B.npy", np.asfortranarray(B))
        for _ in range(asked.turns):
            time_of_program, iterations, _ = direct_solve.by_program(asked.build, folder, "bounded", asked.damp, "--nonnegative")
            seconds["bounded"].append(time_of_program)
            Y, time_of_pivots = block_pivoting(A, B, asked.damp)
            seconds["block pivoting"].append(time_of_pivots)
        X = np.load(folder / "X.npy")
        if asked.columns:
            seconds["nnls"].append(by_nnls(A, B, asked.damp, asked.columns))
    f, of_pivots = (np.linalg.norm(B - A @ Z, axis=0) ** 2 + asked.damp**2 * np.linalg.norm(Z, axis=0) ** 2 for Z in (X, Y))
    print(f"{asked.size}, {asked.rhs} right-hand sides, condition {asked.condition:g}, damping {asked.damp:g}, load {os.getloadavg()[0]:.1f}")
    for name, found in seconds.items():
        if found:
            print(f"  {name:14} {statistics.median(found):9.3f} s")
    print(f"  {iterations} iterations; f is at most 1 + {np.max(f / of_pivots - 1):.1e} times that of block pivoting; x differs by at most "
          f"{np.max(np.linalg.norm(X - Y, axis=0) / np.linalg.norm(Y, axis=0)):.1e}")


if __name__ == "__main__":
    main()
