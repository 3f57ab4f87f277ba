# SPDX-License-Identifier: BSD-3-Clause
"""Checks that `gridlops solve --misfit` ends where reweighted least squares in NumPy do, whose weights are the textbook's.
misfit_test.py LAUNCH PROGRAM"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import Problem, check_reasons, conditioned  # noqa: E402

WEIGHTS = {
    "huber": lambda t: np.minimum(1, 1.345 / np.maximum(t, 1e-30)),
    "l1": lambda t: 1 / np.sqrt(t**2 + 0.01),
    "cauchy": lambda t: 1 / (1 + (t / 2.385) ** 2),
    "tukey": lambda t: np.where(t < 4.685, (1 - (t / 4.685) ** 2) ** 2, 0),
}


def reweighted(A, b, w, misfit, scale, damp, x, steps):
    """x after this many dense solutions with the weights of the last x."""
    for _ in range(steps):
        residual = np.where(w == 0, 0, w * (b - A @ x))
        root = w * np.sqrt(WEIGHTS[misfit](np.abs(residual) / scale))
        stacked = np.vstack([root[:, None] * A, damp * np.eye(A.shape[1])])
        x = np.linalg.lstsq(stacked, np.concatenate([root * np.where(w == 0, 0, b), np.zeros(A.shape[1])]), rcond=None)[0]
    return x


def check_misfits(suite, rng):
    for misfit, name, damp, grid, ranks, more in (
            ("huber", "f64", 0, None, 2, []), ("tukey", "c128", 0.1, (3, 1), 3, ["--batch", 2]), ("l1", "f64", 0.5, (2, 2), 4, ["--algorithm", "summa"]),
            ("cauchy", "f64", 0.1, (2, 2), 4, ["--algorithm", "block", "--solver", "auto"]), ("huber", "f64", 0.5, (1, 3), 3, ["--storage", "disk", "--guard", 5]),
            ("tukey", "f64", 0, None, 2, ["--misfit-scale", 0.3]), ("huber", "f32", 0.1, (3, 2), 6, ["--storage", "packed"])):
        tolerance = 1e-4 if name == "f32" else 1e-10
        A = conditioned(rng, 53, 12, name)
        noise = 0.1 * program.random_matrix(rng, (53, 5), name)
        problem = Problem(suite, A, (A @ program.random_matrix(rng, (12, 5), name) + noise).astype(A.dtype))
        problem.B[rng.uniform(size=(53, 5)) < 0.1] += 30
        W = np.where(rng.uniform(size=(53, 5)) < 0.1, 0, rng.uniform(0.5, 2, (53, 5))).astype(problem.A.real.dtype)
        problem.B[W == 0] = np.nan
        np.save(suite.folder / "B.npy", problem.B)
        np.save(suite.folder / "W.npy", W)
        run, X, report = problem.solve("--misfit", misfit, "--weights", "W.npy", "--damp", damp, "--tolerance", tolerance, "--iterations", 5000, *more,
                                       ranks=ranks, grid=grid)
        check_reasons(suite, report, ["converged"], misfit, name, more)
        if report is None:
            continue
        suite.check(f"--misfit {misfit}: 5 converged" in run.output, run.output)
        suite.check(report["options"]["misfit"] == misfit and report["options"]["misfit_scale"] == (0.3 if "--misfit-scale" in more else "mad"),
                    report["options"])
        for j, column in enumerate(report["columns"]):
            scale, w = column["misfit_scale"], W[:, j]
            of_huber = reweighted(problem.A, problem.B[:, j], w, "huber", scale, damp, np.zeros(12, A.dtype), 300)
            usual = 1.482602218505602 * np.median(np.abs(w * np.where(w == 0, 0, problem.B[:, j] - problem.A @ of_huber))[w > 0])
            suite.check(abs(scale / usual - 1) < 0.2 or "--misfit-scale" in more, "scale", scale, usual)
            is_convex = misfit in ("huber", "l1")
            begin = np.zeros(12, A.dtype) if is_convex else X[:, j]
            expected = reweighted(problem.A, problem.B[:, j], w, misfit, scale, damp, begin, 2000 if is_convex else 1)
            suite.close(X[:, j], expected, 1e3 * tolerance, misfit, j, more)
            weights = WEIGHTS[misfit](np.abs(np.where(w == 0, 0, w * (problem.B[:, j] - problem.A @ X[:, j]))) / scale)
            if name != "f32":
                suite.check(column["misfit_rejected"] == (weights[w > 0] < 0.5).sum(), column, weights)
            if is_convex and damp > 0 and misfit != "l1" and name != "f32":
                suite.check(np.linalg.norm(X[:, j] - expected) <= column["misfit_distance"] + 1e-12, "distance", column)
            suite.check((column["misfit_distance"] is None) != (is_convex and damp > 0), column)


def check_limits(suite, rng):
    """Too few iterations are said, and zero columns solved."""
    problem = Problem(suite, conditioned(rng, 40, 15, "f64"), rng.standard_normal((40, 3)))
    problem.B[:, 1] = 0
    np.save(suite.folder / "B.npy", problem.B)
    _, X, report = problem.solve("--misfit", "huber", "--iterations", 3, status=3)
    suite.check([column["reason"] for column in report["columns"]] == ["iteration_limit", "converged", "iteration_limit"], report["columns"])
    suite.check(not X[:, 1].any() and report["columns"][1]["misfit_scale"] == 0, X[:, 1])
    run, _, _ = problem.solve("--misfit", "tukey", "--history", "H.csv", "--iterations", 3000)
    suite.check((suite.folder / "H.csv").exists(), run.errors)


def test(suite, full):
    rng = np.random.default_rng(11)
    check_misfits(suite, rng)
    check_limits(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
