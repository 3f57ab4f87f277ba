# SPDX-License-Identifier: BSD-3-Clause
"""Checks that `gridlops solve` with a weight for each number of B finds what NumPy finds for the weighted rows of each column.
weights_test.py LAUNCH PROGRAM"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import Problem, check_reasons, conditioned  # noqa: E402


def weighted_solution(A, B, W, damp):
    """argmin ‖w∘(Ax − b)‖² + D²‖x‖² of each column by itself; 0 where all weights are 0."""
    columns = []
    for w, b in zip(W.T, np.where(W == 0, 0, B).T):
        stacked = np.vstack([w[:, None] * A, damp * np.eye(A.shape[1])])
        columns.append(np.linalg.lstsq(stacked, np.concatenate([w * b, np.zeros(A.shape[1])]), rcond=None)[0])
    return np.stack(columns, axis=1)


def check_weights(suite, rng):
    for name, solver, damp, grid, ranks, more in (
            ("f64", "cgls", 0, None, 2, []), ("c128", "lsqr", 0.1, (3, 1), 3, ["--batch", 2]), ("f64", "lsmr", 0.1, (2, 2), 4, ["--algorithm", "summa"]),
            ("f32", "cgls", 0.1, (1, 3), 3, ["--solver", "auto"]), ("f64", "cgls", 0.1, (2, 2), 4, ["--algorithm", "block"]),
            ("f64", "cgls", 0, (2, 2), 4, ["--one-pass", "auto"]), ("f64", "cgls", 0.1, None, 2, ["--storage", "disk"]),
            ("c128", "lsqr", 0, None, 2, ["--guard", 3]), ("f64", "cgls", 0.1, None, 2, ["--column-stable", "--sigma-min", 0])):
        tolerance = 1e-5 if name == "f32" else 1e-10
        problem = Problem(suite, conditioned(rng, 53, 22, name), program.random_matrix(rng, (53, 5), name))
        W = np.where(rng.uniform(size=(53, 5)) < 0.3, 0, rng.uniform(0.5, 2, (53, 5))).astype(problem.A.real.dtype)
        W[:, 3] = 0
        problem.B[W == 0] = np.nan
        np.save(suite.folder / "B.npy", problem.B)
        np.save(suite.folder / "W.npy", W)
        words = more if "--solver" in more else ["--solver", solver, *more]
        run, X, report = problem.solve("--weights", "W.npy", *words, "--damp", damp, "--tolerance", tolerance, "--iterations", 500, ranks=ranks, grid=grid)
        expected = weighted_solution(problem.A, problem.B, W, damp)
        problem.check(X, expected, tolerance, name, solver, damp, grid, more, condition=300)
        check_reasons(suite, report, ["converged", "stagnated"], name, solver, more)
        if report is None:
            continue
        said = "the weights of 1 column are all 0, so that X is 0 there: 3"
        suite.check(said in run.errors and not X[:, 3].any(), "column without data", run.errors, X[:, 3])
        residuals = np.linalg.norm(np.where(W == 0, 0, W * (problem.B - problem.A @ X)), axis=0)
        found = np.array([column["residual_norm"] for column in report["columns"]])
        suite.close(found, residuals, 1e3 * tolerance * (1 + residuals.max()), "residuals", more)
        suite.check(report["problem"] == "min |w o (A x - b)|^2 + D^2 |x|^2", report["problem"])
        suite.check("--weights" in [file["option"] for file in report["files"]], report["files"])
        if "--sigma-min" in more:
            bounds = np.array([column["error_bound"] for column in report["columns"]])
            suite.check((np.linalg.norm(X - expected, axis=0) <= bounds + 1e-13).all(), "bounds", bounds)


def check_holes(suite, rng):
    """NaN are holes where they are asked for, and one column of weights serves all."""
    problem = Problem(suite, conditioned(rng, 40, 15, "f64"), rng.standard_normal((40, 4)))
    holes = rng.uniform(size=(40, 4)) < 0.2
    problem.B[holes] = np.nan
    np.save(suite.folder / "B.npy", problem.B)
    w = rng.uniform(0.5, 2, 40)
    np.save(suite.folder / "w.npy", w)
    for words, W in ((["--holes", "nan"], np.where(holes, 0, 1)), (["--holes", "nan", "--weights", "w.npy"], np.where(holes, 0, w[:, None]))):
        run, X, report = problem.solve(*words, "--tolerance", 1e-11)
        problem.check(X, weighted_solution(problem.A, problem.B, W, 0), 1e-10, *words)
        suite.check(f"{holes.sum()} of 160 numbers of B are missing" in run.output and report["figures"]["holes"] == holes.sum(), run.output)
    problem.solve("--weights", "w.npy", status=3)  # NaN that nobody calls a hole
    np.save(suite.folder / "B.npy", np.nan_to_num(problem.B))
    _, X, _ = problem.solve("--weights", "w.npy", "--tolerance", 1e-11)
    problem.check(X, weighted_solution(problem.A, np.nan_to_num(problem.B), np.repeat(w[:, None], 4, axis=1), 0), 1e-10)
    # A sweep solves one right-hand side with its weights for each damping.
    np.save(suite.folder / "B.npy", problem.B[:, :1])
    damps = np.geomspace(0.01, 1, 3)
    run, X, report = problem.solve("--holes", "nan", "--damps", "0.01:1:3", "--tolerance", 1e-11)
    expected = [weighted_solution(problem.A, problem.B[:, :1], np.where(holes[:, :1], 0, 1), damp)[:, 0] for damp in damps]
    problem.check(X, np.stack(expected, axis=1), 1e-10, "sweep")
    missing = holes[:, 0].sum()
    suite.check(f"{missing} of 40 numbers of B are missing" in run.output and report["figures"]["holes"] == missing, run.output, report["figures"])
    # λ is relative to the weighted problem: x is 0 from 1 on.
    for share, is_zero in ((1.001, True), (0.9, False)):
        _, X, _ = problem.solve("--holes", "nan", "--weights", "w.npy", "--solver", "fista", "--lambda-relative", share, "--iterations", 3000)
        suite.check(X is None or (not X.any()) is is_zero, "lambda", share, X)


def check_compressed(suite, rng):
    """Bounds of the distance from the solution with the matrix that was compressed contain weights."""
    columns, models = np.linalg.qr(rng.standard_normal((120, 2)))[0], np.linalg.qr(rng.standard_normal((60, 2)))[0]
    A = columns @ np.diag([1, 0.005]) @ models.T  # the compression leaves the small part out
    problem = Problem(suite, A, np.outer(columns[:, 1], [1, 2]) + 0.1 * rng.standard_normal((120, 2)))
    W = np.repeat([[100.0, 1.0]], 120, axis=0)
    np.save(suite.folder / "W.npy", W)
    suite.succeeded(suite.run("compress", "--matrix", "A.npy", "--output", "compressed", "--tolerance", 0.01))
    suite.succeeded(suite.run("solve", "--matrix", "compressed", "--rhs", "B.npy", "--output", "X.npy", "--weights", "W.npy", "--damp", 1, "--tolerance", 1e-12,
                              "--report", "compressed.json"))
    X, report = np.load(suite.folder / "X.npy"), json.loads((suite.folder / "compressed.json").read_text(encoding="utf-8"))
    distances = np.linalg.norm(X - weighted_solution(A, problem.B, W, 1), axis=0)
    bounds = np.array([column["original_error_bound"] for column in report["columns"]])
    suite.check(distances[0] > 1 and (distances <= bounds).all() and (bounds <= 1e4 * distances).all(), "original bounds", distances, bounds)


def check_refusals(suite, rng):
    problem = Problem(suite, conditioned(rng, 12, 5, "f32"), program.random_matrix(rng, (12, 3), "f32"))
    for name, W in (("negative", np.where(np.arange(36).reshape(12, 3) == 22, -2, 1)), ("infinite", np.full((12, 3), np.inf)),
                    ("tiny", np.full((12, 3), 1e-38)), ("short", np.ones((11, 3))), ("wide", np.ones((12, 2)))):
        np.save(suite.folder / f"{name}.npy", W.astype("f4"))
    np.save(suite.folder / "double.npy", np.ones((12, 3)))
    for words, status, said in ((["--weights", "negative.npy"], 2, "the weight of row 7 of column 1 is -2"),
                                (["--weights", "infinite.npy"], 2, "column 0 is inf"), (["--weights", "short.npy"], 65, "short.npy is 11 x 3"),
                                (["--weights", "wide.npy"], 65, "wide.npy is 12 x 2"), (["--weights", "missing.npy"], 65, "missing.npy"),
                                (["--weights", "double.npy"], 65, "save the weights as f32"),
                                (["--weights", "tiny.npy"], 2, "multiply the weights or B by a constant"),
                                (["--holes", "nan", "--solver", "block-cgls"], 2, "--holes nan gives every column an operator of its own, and these share no space"),
                                (["--holes", "nan", "--solver", "direct"], 2, "share no factor: take another solver than direct"),
                                (["--weights", "wide.npy", "--damps", "0.1:1:3", "--sweep", "direct", "--choose", "lcurve"], 2,
                                 "--weights gives every column an operator of its own, and these share no factor")):
        run, _, _ = problem.solve(*words, status=status)
        suite.check(len(run.error_lines) == 1 and said in run.error_lines[0], "should say", said, run.errors)


def test(suite, full):
    rng = np.random.default_rng(71)
    check_weights(suite, rng)
    check_holes(suite, rng)
    check_compressed(suite, rng)
    check_refusals(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
