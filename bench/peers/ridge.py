#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares ridges of many targets, each with its own damping by folds, with NumPy, himalaya and scikit-learn, in turn.

    bench/peers/ridge.py build [--size 3000x1500] [--targets 2000] [--alphas 1:1e5:20] [--folds 5] [--turns 3] [--ways gridlops,gridlops-2,…]

Every process has one thread. Ways: gridlops and gridlops-2, on one and two ranks; svd, 14 lines of NumPy with one decomposition for each
fold; himalaya's RidgeCV, and himalaya-batch with n_targets_batch; sklearn, RidgeCV, which leaves one row out, since it has no folds for each
target. Data are of single precision, with an intercept, and coefficients are wanted. Prints for each the median of the processor seconds of all
ranks, of the seconds, and of the peak memory of a rank, all without making the data; and of how many targets the choice is that of double
precision (--check; by svd), and how much their scores differ."""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make_problem(rows, cols, targets):
    """Correlated features with a mean, and targets that depend on them more or less."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((rows, cols), np.float32) * np.geomspace(3, 0.3, cols, dtype=np.float32) + np.float32(2)
    W = rng.standard_normal((cols, targets), np.float32) / np.float32(np.sqrt(cols))
    return A, A @ W + rng.standard_normal((rows, targets), np.float32) * np.geomspace(0.3, 30, targets, dtype=np.float32)


def by_svd(A, B, alphas, folds):
    scores = np.zeros((len(alphas), B.shape[1]))
    for test in np.array_split(np.arange(len(A)), folds):
        train = np.setdiff1d(np.arange(len(A)), test)
        mean, of_B = A[train].mean(0), B[train].mean(0)
        left, values, right = np.linalg.svd(A[train] - mean, full_matrices=False)
        data, Z, y = left.T @ (B[train] - of_B), (A[test] - mean) @ right.T, B[test] - of_B
        spread = np.square(B[test] - B[test].mean(0)).sum(0)
        for d, alpha in enumerate(alphas):
            scores[d] += (1 - np.square(y - Z @ ((values / (values**2 + alpha))[:, None] * data)).sum(0) / spread) / folds
    chosen = scores.argmax(0)
    mean, of_B = A.mean(0), B.mean(0)
    left, values, right = np.linalg.svd(A - mean, full_matrices=False)
    W = right.T @ (values[:, None] / (np.square(values)[:, None] + alphas[chosen]) * (left.T @ (B - of_B)))
    return chosen, scores, (W, of_B - mean @ W)


def by_himalaya(A, B, alphas, folds, **params):
    from himalaya.ridge import RidgeCV
    from sklearn.model_selection import KFold
    model = RidgeCV(alphas=alphas, fit_intercept=True, cv=KFold(folds), solver_params=params).fit(A, B)
    return np.abs(alphas[:, None] - model.best_alphas_).argmin(0), np.asarray(model.cv_scores_)


def by_sklearn(A, B, alphas, _folds):
    from sklearn.linear_model import RidgeCV
    model = RidgeCV(alphas=alphas, alpha_per_target=True).fit(A, B)
    return np.abs(alphas[:, None] - model.alpha_).argmin(0), np.zeros((0, 0))


def by_gridlops(A, B, alphas, folds):
    import gridlops as gl
    grid = gl.Grid(shape=(gl.Grid().comm.size, 1))
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(A))
    data = gl.Matrix(grid, grid.column_blocks(*B.shape), B.dtype)
    data.local[...] = B[:, data.cols]
    del B
    begin = time.process_time(), time.perf_counter(), peak()
    _, report = gl.ridge(op, data, alphas, folds=folds)
    assert set(report["reasons"]) <= {"converged", "stagnated"}
    used = [time.process_time() - begin[0], time.perf_counter() - begin[1], peak() - begin[2]]
    return report["chosen"], report["scores"], grid.comm.gather(used)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


WAYS = {"gridlops": by_gridlops, "gridlops-2": by_gridlops, "svd": by_svd, "himalaya": by_himalaya,
        "himalaya-batch": lambda *problem: by_himalaya(*problem, n_targets_batch=1000, n_targets_batch_refit=1000), "sklearn": by_sklearn}


def work(way, folder, alphas, folds):
    """One way, in a process of its own or on a rank."""
    A, B = np.load(folder / "A.npy", mmap_mode="r" if way == "gridlops-2" else None), np.load(folder / "B.npy", mmap_mode="r" if "gridlops" in way else None)
    begin = time.process_time(), time.perf_counter(), peak()
    chosen, scores, *ranks = WAYS[way](A, B, alphas, folds)
    used = ranks[0] if "gridlops" in way else [[time.process_time() - begin[0], time.perf_counter() - begin[1], peak() - begin[2]]]
    if used is None:
        return
    np.save(folder / f"{way}.chosen.npy", chosen)
    np.save(folder / f"{way}.scores.npy", scores)
    cpu, wall, memory = zip(*used)
    (folder / f"{way}.json").write_text(json.dumps([sum(cpu), max(wall), max(memory)]), encoding="utf-8")


def run(way, build, folder, asked):
    command = [sys.executable, __file__, str(build), "--alphas", asked.alphas, "--folds", str(asked.folds), "--work", way, "--folder", str(folder)]
    launch = [str(ROOT / "tests/support/launch"), "2" if way.endswith("-2") else "1"] if "gridlops" in way else []
    path = os.pathsep.join(filter(None, [str(pathlib.Path(build).resolve() / "apps/python"), os.environ.get("PYTHONPATH")]))
    subprocess.run(launch + command, check=True, capture_output=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path})
    return json.loads((folder / f"{way}.json").read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--size", default="3000x1500")
    parser.add_argument("--targets", type=int, default=2000)
    parser.add_argument("--alphas", default="1:1e5:20")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ways", default="gridlops,gridlops-2,svd,himalaya,sklearn")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    low, high, count = asked.alphas.split(":")
    alphas = np.geomspace(float(low), float(high), int(count))
    if asked.work:
        work(asked.work, pathlib.Path(asked.folder), alphas, asked.folds)
        return
    rows, cols = (int(size) for size in asked.size.split("x"))
    A, B = make_problem(rows, cols, asked.targets)
    ways = asked.ways.split(",")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        np.save(folder / "A.npy", A)
        np.save(folder / "B.npy", B)
        found = {way: [] for way in ways}
        for _ in range(asked.turns):
            for way in ways:
                found[way].append(run(way, asked.build, folder, asked))
        truth = by_svd(A.astype(float), B.astype(float), alphas, asked.folds) if asked.check else None
        print(f"{rows} x {cols}, {asked.targets} targets, alphas {asked.alphas}, {asked.folds} folds, load {os.getloadavg()[0]:.1f}")
        for way, results in found.items():
            cpu, wall, memory = (statistics.median(result[k] for result in results) for k in range(3))
            line = f"  {way:15} {cpu:8.1f} processor s  {wall:8.1f} s  {memory / 2**20:8.0f} MiB"
            if truth is not None and way != "sklearn":
                chosen, scores = (np.load(folder / f"{way}.{name}.npy") for name in ("chosen", "scores"))
                line += f"  {100 * np.mean(chosen == truth[0]):.2f} % the same choices"
                if scores.shape == truth[1].shape:
                    line += f", scores within {np.abs(scores - truth[1]).max():.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
