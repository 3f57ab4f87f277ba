# SPDX-License-Identifier: BSD-3-Clause
"""Compares `gridlops solve` with scipy.sparse.linalg, column by column: solutions, iterations and the reasons to stop. At a
condition of 3 rounding decides nothing: solutions agree to 1e-10 and iterations to one. At 30 iterations agree to max(2, 5 %).
scipy_test.py LAUNCH PROGRAM [--full]"""
import csv
import inspect
import sys
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import Problem, conditioned  # noqa: E402

PEERS = {"lsqr": scipy.sparse.linalg.lsqr, "lsmr": scipy.sparse.linalg.lsmr}
# The verdicts here that stand for these codes of SciPy's lsqr and lsmr.
REASON_OF_ISTOP = {0: "converged", 1: "converged", 2: "converged", 3: "condition_limit", 4: "stagnated", 5: "stagnated",
                   7: "iteration_limit"}


def size(condition):
    """A problem so large that the iteration ends long before it has seen all of the space."""
    return (75, 50) if condition <= 3 else (400, 300)


def compare(suite, X, report, peers, condition, tolerance, *what):
    """peers: SciPy's x and its iterations, for each column."""
    if X is None:
        return
    for j, (x, iterations) in enumerate(peers):
        column = report["columns"][j]
        allowed = 1 if condition <= 3 else max(2, 0.05 * iterations)
        suite.check(abs(column["iterations"] - iterations) <= allowed, column, "SciPy:", iterations, "column", j, *what)
        bound = 1e-10 if condition <= 3 else 10 * condition * tolerance
        suite.close(X[:, j], x, bound * np.linalg.norm(x), "column", j, *what)


def check_least_squares(suite, rng):
    for condition, tolerance in [(3, 1e-12), (30, 1e-8)]:
        rows, cols = size(condition)
        problem = Problem(suite, conditioned(rng, rows, cols, "f64", condition), program.random_matrix(rng, (rows, 3), "f64"))
        for solver, peer in PEERS.items():
            for damp in [0, 0.1]:
                _, X, report = problem.solve("--solver", solver, "--damp", damp, "--tolerance", tolerance, "--iterations", 1000)
                results = [peer(problem.A, b, damp=damp, atol=tolerance, btol=tolerance, conlim=0) for b in problem.B.T]
                compare(suite, X, report, [(r[0], r[2]) for r in results], condition, tolerance, solver, condition, damp)


def check_damped_starts(suite, rng):
    """SciPy damps X - X0; on [A; D I] with [b - A x0; -D x0] it damps X as --damp does."""
    for condition, tolerance in [(3, 1e-12), (30, 1e-8)]:
        rows, cols = size(condition)
        problem = Problem(suite, conditioned(rng, rows, cols, "f64", condition), program.random_matrix(rng, (rows, 2), "f64"))
        start, damp = program.random_matrix(rng, (cols, 2), "f64"), 0.2
        np.save(suite.folder / "X0.npy", start)
        stacked = np.vstack([problem.A, damp * np.eye(cols)])
        for solver, peer in PEERS.items():
            _, X, report = problem.solve("--solver", solver, "--damp", damp, "--tolerance", tolerance, "--iterations", 1000,
                                         "--initial", "X0.npy", ranks=3, grid=(3, 1))
            peers = []
            for j in range(2):
                data = np.concatenate([problem.B[:, j] - problem.A @ start[:, j], -damp * start[:, j]])
                result = peer(stacked, data, atol=tolerance, btol=tolerance, conlim=0)
                peers.append((start[:, j] + result[0], result[2]))
            compare(suite, X, report, peers, condition, tolerance, solver, condition, "damped, from a start")


RELATIVE = "rtol" if "rtol" in inspect.signature(scipy.sparse.linalg.minres).parameters else "tol"


def scipy_cg(A, b, tolerance):
    count = []
    x, _ = scipy.sparse.linalg.cg(A, b, atol=0, maxiter=1000, callback=lambda _: count.append(1), **{RELATIVE: tolerance})
    return x, len(count)


def check_cg(suite, rng):
    for condition, tolerance in [(3, 1e-12), (30, 1e-8)]:
        for name in ["f64", "c128"]:
            cols = size(condition)[1]
            half = conditioned(rng, cols, cols, name, np.sqrt(condition))
            problem = Problem(suite, half @ half.conj().T, program.random_matrix(rng, (cols, 3), name))
            _, X, report = problem.solve("--solver", "cg", "--tolerance", tolerance, "--iterations", 1000)
            peers = [scipy_cg(problem.A, b, tolerance) for b in problem.B.T]
            compare(suite, X, report, peers, condition, tolerance, "cg", name, condition)


def check_minres(suite, rng):
    """Iterates are SciPy's, with and without a shift; SciPy's is for real matrices, and shifts by a negative number."""
    n = 40
    half = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.geomspace(1, 1 / 30, n) * (-1.0) ** np.arange(n)
    A = (half * values) @ half.T
    problem = Problem(suite, 0.5 * (A + A.T), rng.standard_normal((n, 3)))
    for damp in (0, 0.3):
        for iterations in (1, 2, 3, 10, 20):
            _, X, report = problem.solve("--solver", "minres", "--damp", damp, "--tolerance", 0, "--iterations", iterations, status=3)
            for j, b in enumerate(problem.B.T):
                suite.check(report["columns"][j]["iterations"] == iterations, "minres", damp, iterations, report["columns"][j])
                peer, _ = scipy.sparse.linalg.minres(problem.A, b, shift=-damp**2, maxiter=iterations, **{RELATIVE: 1e-300})
                suite.close(X[:, j], peer, 1e-10 * np.linalg.norm(peer), "minres", damp, iterations)


def check_reasons(suite, rng):
    """Provokes every code of lsqr and lsmr that can be, and checks the verdict that stands for it."""
    A = conditioned(rng, 60, 40, "f64", 30)
    inconsistent, consistent = rng.standard_normal(60), A @ rng.standard_normal(40)
    cases = [
        ("0", np.zeros(60), dict(atol=1e-8, btol=1e-8, conlim=0)),
        ("1", consistent, dict(atol=1e-8, btol=1e-8, conlim=0)),
        ("2", inconsistent, dict(atol=1e-8, btol=1e-8, conlim=0)),
        ("2 by a looser atol", inconsistent, dict(atol=1e-3, btol=1e-12, conlim=0)),
        ("3", inconsistent, dict(atol=1e-8, btol=1e-8, conlim=5)),
        ("4", consistent, dict(atol=0, btol=0, conlim=0)),
        ("5", inconsistent, dict(atol=0, btol=0, conlim=0)),
        ("7", inconsistent, dict(atol=1e-8, btol=1e-8, conlim=0, limit=5)),
    ]
    for solver, peer in PEERS.items():
        for label, b, rules in cases:
            limit = rules.get("limit", 500)
            limits = {"iter_lim" if solver == "lsqr" else "maxiter": limit}
            result = peer(A, b, atol=rules["atol"], btol=rules["btol"], conlim=rules["conlim"], **limits)
            istop, iterations = result[1], result[2]
            suite.check(istop == int(label[0]), "SciPy's code is", istop, "where", label, "was meant to be provoked", solver)
            expected = REASON_OF_ISTOP[istop]
            problem = Problem(suite, A, b)
            _, X, report = problem.solve("--solver", solver, "--atol", rules["atol"], "--btol", rules["btol"], "--conlim",
                                         rules["conlim"], "--iterations", limit, ranks=1, grid=(1, 1),
                                         status=0 if expected in program.SOLVED else 3)
            if X is None:
                continue
            column = report["columns"][0]
            suite.check(column["reason"] == expected, solver, label, column, "SciPy:", istop)
            # At the level of rounding the two need not end in the same iteration.
            if expected != "stagnated":
                suite.check(abs(column["iterations"] - iterations) <= max(2, 0.05 * iterations), solver, label, column,
                            "SciPy:", iterations)


def solved_by(peer, A, b, iterations=500, **rules):
    """SciPy's results by their names in its documentation of lsmr, ‖r‖ being that of the damped system."""
    limit = {"iter_lim" if peer is scipy.sparse.linalg.lsqr else "maxiter": iterations}
    result = peer(A, b, **{"atol": 0, "btol": 0, "conlim": 0, **limit, **rules})
    if peer is scipy.sparse.linalg.lsqr:
        x, istop, itn, _, normr, norma, conda, normar, normx, _ = result
    else:
        x, istop, itn, normr, normar, norma, conda, normx = result
    return dict(x=x, istop=istop, itn=itn, normr=normr, normar=normar, norma=norma, conda=conda, normx=normx)


def check_estimates(suite):
    """Compares all estimates of LSQR and LSMR after k iterations, for each k. Those that have a definition are also compared
    with it, in each row of the history of the longest run. Rounding does not show after so few iterations. With these numbers
    LSMR's smallest singular value is the newest in some iterations and an older one in others. All are above 1, since SciPy
    counts the 1 that its recurrence starts with."""
    rng = np.random.default_rng(3)
    problem = Problem(suite, 100 * conditioned(rng, 60, 40, "f64", 30), program.random_matrix(rng, (60, 2), "f64"))
    A, B = problem.A, problem.B
    for solver, peer in PEERS.items():
        for damp in [0, 30]:
            residuals = {0: np.linalg.norm(B, axis=0)}
            for k in range(1, 13):
                _, X, report = problem.solve("--solver", solver, "--damp", damp, "--atol", 0, "--btol", 0, "--iterations", k,
                                             "--history", "H.csv", ranks=1, grid=(1, 1), status=3)
                if X is None:
                    return
                residuals[k] = np.linalg.norm(B - A @ X, axis=0)
                with open(suite.folder / "H.csv", newline="", encoding="utf-8") as file:
                    rows = {(int(row["iteration"]), int(row["column"])): row for row in csv.DictReader(file)}
                for j, b in enumerate(B.T):
                    there = solved_by(peer, A, b, iterations=k, damp=damp)
                    column, last, x_norm = report["columns"][j], rows[k, j], np.linalg.norm(X[:, j])
                    here = dict(norma=column["operator_norm"], conda=column["condition"], normx=x_norm,
                                normr=np.hypot(float(last["residual_norm"]), damp * x_norm),
                                normar=float(last["tested_norm"]) * np.linalg.norm(A.T @ b))
                    for name, value in here.items():
                        suite.check(abs(value - there[name]) <= 1e-9 * there[name], solver, "damp", damp, "iterations", k, name,
                                    "is", value, "SciPy:", there[name])
                    suite.check(abs(column["normal_residual_norm"] - there["normar"]) <= 1e-9 * there["normar"], solver, column, there)
                    for i, norms in residuals.items():
                        suite.check(abs(float(rows[i, j]["residual_norm"]) - norms[j]) <= 1e-9 * norms[j], solver, "damp", damp,
                                    "row", i, "of the history:", rows[i, j], "by its definition:", norms[j])


def check_condition_limits(suite, rng):
    """--conlim ends a column in the same iteration as SciPy, if the limit is not within rounding of an estimate."""
    problem = Problem(suite, 100 * conditioned(rng, 60, 40, "f64", 30), program.random_matrix(rng, (60, 1), "f64"))
    b = problem.B[:, 0]
    for solver, peer in PEERS.items():
        for damp in [0, 5]:
            estimates = [solved_by(peer, problem.A, b, iterations=k, damp=damp)["conda"] for k in range(1, 13)]
            ends = [k for k in range(2, 13) if estimates[k - 1] > 1.05 * max(estimates[:k - 1])]
            suite.check(len(ends) >= 3, solver, damp, "estimates that hardly grow:", estimates)
            for k in [ends[0], ends[len(ends) // 2], ends[-1]]:
                limit = np.sqrt(max(estimates[:k - 1]) * estimates[k - 1])
                there = solved_by(peer, problem.A, b, damp=damp, conlim=limit)
                suite.check((there["istop"], there["itn"]) == (3, k), "SciPy ends otherwise", there, limit, k)
                _, _, report = problem.solve("--solver", solver, "--damp", damp, "--atol", 0, "--btol", 0, "--conlim", limit,
                                             ranks=1, grid=(1, 1), status=3)
                if report is not None:
                    column = report["columns"][0]
                    suite.check((column["reason"], column["iterations"]) == ("condition_limit", k), solver, damp, limit, column, k)


def check_bounds(suite, rng):
    """Nonnegative least squares, and bounds in files and numbers, against scipy.optimize; f agrees to 1e-12, x where A has full rank."""
    for rows, cols in [(60, 40), (30, 40)]:
        problem = Problem(suite, rng.standard_normal((rows, cols)), rng.standard_normal((rows, 3)))
        damp = 0.3
        stacked, data = np.vstack([problem.A, damp * np.eye(cols)]), np.vstack([problem.B, np.zeros((cols, 3))])
        lower, upper = np.where(rng.random((cols, 1)) < 0.3, -np.inf, -0.1), np.where(rng.random((cols, 3)) < 0.3, np.inf, 0.2)
        np.save(suite.folder / "lower.npy", lower)
        np.save(suite.folder / "upper.npy", np.asfortranarray(upper))
        for words, low, high in [(["--nonnegative"], np.zeros((cols, 1)), np.full((cols, 3), np.inf)),
                                 (["--lower", "lower.npy", "--upper", "upper.npy"], lower, upper),
                                 (["--lower", -0.05, "--upper", "inf"], np.full((cols, 1), -0.05), np.full((cols, 3), np.inf))]:
            for ranks, grid in [(1, (1, 1)), (3, (3, 1)), (4, (2, 2))]:
                _, X, report = problem.solve(*words, "--damp", damp, "--tolerance", 1e-13, "--sigma-min", 0, "--iterations", 2000, ranks=ranks, grid=grid)
                for j in range(3):
                    peer = scipy.optimize.lsq_linear(stacked, data[:, j], (low[:, 0], high[:, j]), method="bvls", tol=1e-15).x
                    f, of_peer = (np.linalg.norm(data[:, j] - stacked @ x) ** 2 for x in (X[:, j], peer))
                    suite.check(report["columns"][j]["reason"] in ("converged", "stagnated"), report["columns"][j], words)
                    suite.check((X[:, j] >= low[:, 0]).all() and (X[:, j] <= high[:, j]).all(), "x is outside of its bounds", words, "column", j)
                    suite.check(f <= (1 + 1e-12) * of_peer, f, "is more than SciPy's", of_peer, words, "column", j)
                    suite.close(X[:, j], peer, 1e-8 * np.linalg.norm(peer), words, "column", j)
                    suite.check(np.linalg.norm(X[:, j] - peer) <= report["columns"][j]["error_bound"] + 1e-12, "the bound of", words, "column", j)


def test(suite, _):
    rng = np.random.default_rng(7)
    check_least_squares(suite, rng)
    check_damped_starts(suite, rng)
    check_cg(suite, rng)
    check_minres(suite, np.random.default_rng(5))
    check_reasons(suite, rng)
    check_estimates(suite)
    check_condition_limits(suite, rng)
    check_bounds(suite, np.random.default_rng(11))


if __name__ == "__main__":
    program.main(test, __doc__)
