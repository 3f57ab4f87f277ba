# SPDX-License-Identifier: BSD-3-Clause
"""Measures how accurate a solution each solver of `gridlops solve` attains at conditions from 1 to 1e10 when it runs until it
stagnates, beside dense least squares (LAPACK) and the bound of perturbation theory. Errors are those of x against
solutions in exact rational arithmetic. Prints the tables of docs/solvers.md.
accuracy_test.py LAUNCH PROGRAM"""
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

ROWS, COLS = 40, 20
CONDITIONS = [1e0, 1e2, 1e4, 1e6, 1e8, 1e10]
LEAST_SQUARES = ["cgls", "one-pass", "lsqr", "lsmr", "block-cgls"]
OPTIONS = {"one-pass": ["--solver", "cgls", "--one-pass", "on"]}
CLUSTERS, TRIALS = [2, 3, 5], 6
EPSILON = np.finfo(np.float64).eps


def exact_solution(matrix, data):
    """Solves for all columns of data by Gaussian elimination in rationals; matrix is nonsingular."""
    rows = [list(a) + list(b) for a, b in zip(matrix, data)]
    for k, pivot in enumerate(rows):
        for other in rows[k + 1:]:
            factor = other[k] / pivot[k]
            for j in range(k, len(pivot)):
                other[j] -= factor * pivot[j]
    size = len(rows)
    for k in reversed(range(size)):
        for j in range(size, len(rows[k])):
            rows[k][j] = (rows[k][j] - sum(rows[k][i] * rows[i][j] for i in range(k + 1, size))) / rows[k][k]
    return np.array([[float(value) for value in row[size:]] for row in rows])


def rationals(array):
    return [[Fraction(float(value)) for value in row] for row in array]


def exact_least_squares(A, B):
    wide_A, wide_B = rationals(A), rationals(B)
    normal = [[sum(a[i] * a[j] for a in wide_A) for j in range(A.shape[1])] for i in range(A.shape[1])]
    right = [[sum(a[i] * b[j] for a, b in zip(wide_A, wide_B)) for j in range(B.shape[1])] for i in range(A.shape[1])]
    return exact_solution(normal, right)


def orthogonal(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def attained(suite, solver, A, B, exact):
    """The relative errors of the columns when the solver has stagnated."""
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy",
                    *OPTIONS.get(solver, ["--solver", solver]), "--tolerance", 0, "--iterations", 100000, "--quiet", "--report",
                    "R.json")
    if not suite.succeeded(run):
        return np.full(B.shape[1], np.nan)
    report = suite.report("R.json", "solve", 1, (1, 1))
    suite.check(all(column["reason"] in program.SOLVED for column in report["columns"]), solver, report["columns"])
    return errors(np.load(suite.folder / "X.npy"), exact)


def errors(X, exact):
    return np.linalg.norm(X - exact, axis=0) / np.linalg.norm(exact, axis=0)


def check_clusters(suite, rng):
    """The error of one-pass CGLS is at most ten times that of CGLS. Singular values lie in few clusters and differ by up to a
    per mille within one, so that without rounding CGLS needs few iterations. Errors are geometric means over columns, since it
    is chance when rounding ends an iteration."""
    print(f"{'cond(A)':>10}{'clusters':>10}{'cgls':>11}{'one-pass':>11}   data in the range of A, singular values in clusters")
    for condition in CONDITIONS[1:]:
        for clusters in CLUSTERS:
            values = condition ** -((np.arange(COLS) % clusters) / (clusters - 1)) * (1 + 1e-3 * rng.random(COLS))
            A = orthogonal(rng, ROWS)[:, :COLS] * values @ orthogonal(rng, COLS).T
            B = A @ rng.standard_normal((COLS, TRIALS))
            exact = exact_least_squares(A, B)
            twice, once = (np.exp(np.log(attained(suite, solver, A, B, exact)).mean()) for solver in ("cgls", "one-pass"))
            print(f"{condition:10.0e}{clusters:10}{twice:11.1e}{once:11.1e}", flush=True)
            suite.check(once <= 10 * twice, "one pass", condition, clusters, once, "and CGLS", twice)


def test(suite, _):
    rng = np.random.default_rng(3)
    check_clusters(suite, np.random.default_rng(4))
    print(f"{'':10}{'data in the range of A':^77}{'':3}{'as far outside as inside':^77}{'':3}{'A definite':^22}")
    names = LEAST_SQUARES + ["LAPACK", "theory"]
    print(f"{'cond(A)':>10}" + 2 * ("".join(f"{name:>11}" for name in names) + "   ") + f"{'cg':>11}{'theory':>11}")
    for condition in CONDITIONS:
        values = np.geomspace(1, 1 / condition, COLS)
        left, right = orthogonal(rng, ROWS), orthogonal(rng, COLS)
        A = left[:, :COLS] * values @ right.T
        inside = A @ rng.standard_normal(COLS)
        outside = left[:, COLS:] @ rng.standard_normal(ROWS - COLS)
        outside *= np.linalg.norm(inside) / np.linalg.norm(outside)
        B = np.stack([inside, inside + outside], axis=1)
        exact = exact_least_squares(A, B)
        residuals = np.linalg.norm(B - A @ exact, axis=0)
        # Wedin's bound for a change of A by epsilon.
        theory = EPSILON * condition * (1 + condition * residuals / np.linalg.norm(exact, axis=0))
        found = {solver: attained(suite, solver, A, B, exact) for solver in LEAST_SQUARES}
        found["LAPACK"] = errors(scipy.linalg.lstsq(A, B)[0], exact)
        found["theory"] = theory

        H = right * values @ right.T
        H = (H + H.T) / 2
        b = rng.standard_normal((COLS, 1))
        definite = attained(suite, "cg", H, b, exact_solution(rationals(H), rationals(b)))[0]
        row = f"{condition:10.0e}"
        for j in range(2):
            row += "".join(f"{found[name][j]:11.1e}" for name in names) + "   "
        print(row + f"{definite:11.1e}{EPSILON * condition:11.1e}", flush=True)
        for solver in LEAST_SQUARES:
            for j in range(2):
                suite.check(found[solver][j] <= 100 * max(theory[j], EPSILON), solver, condition, j, found[solver][j], theory[j])
        suite.check(definite <= 100 * EPSILON * condition, "cg", condition, definite)


if __name__ == "__main__":
    program.main(test, __doc__)
