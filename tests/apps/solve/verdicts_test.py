# SPDX-License-Identifier: BSD-3-Clause
"""Checks that what `gridlops solve` calls solved is solved, with norms that NumPy computes in long double: on plateaus, for singular
systems, after restarts, from far guesses, and for A, B and D of any size. verdicts_test.py LAUNCH PROGRAM"""
import itertools
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import conditioned  # noqa: E402

PRECONDITIONED = ["cgls", "lsqr", "lsmr", "block-cgls"]
LEAST_SQUARES = [*PRECONDITIONED, "direct"]
WIDE = program.WIDE


def norms(A, B, X, damp=0.0):
    """Of each column ‖b − Ax‖, ‖Aᴴ(b − Ax) − D²x‖, and ‖Aᴴb‖."""
    kind = np.clongdouble if np.iscomplexobj(A) else np.longdouble
    A, B, X = A.astype(kind), B.astype(kind), X.astype(kind)
    D = np.longdouble(damp)
    R = B - A @ X
    size = lambda M: np.sqrt((np.abs(M) ** 2).sum(axis=0))  # noqa: E731
    return size(R), size(A.conj().T @ R - D * D * X), size(A.conj().T @ B)


class Case:
    """Files of one problem, and solves of it."""

    def __init__(self, suite, A, B):
        self.suite, self.A, self.B = suite, A, B.reshape(len(B), -1)
        np.save(suite.folder / "A.npy", A)
        np.save(suite.folder / "B.npy", self.B)

    def solve(self, *words, status=0):
        """X and the report, after comparing its norms with the true ones; None for both if the status is another."""
        run = self.suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", *words)
        if not self.suite.succeeded(run, status):
            return None, None
        return np.load(self.suite.folder / "X.npy"), self.suite.report("R.json", "solve", 1, (1, 1))

    def is_solved(self, X, tolerance, *what, damp=0.0):
        """By the test of cgls, to within twice what rounding of X to its type may add."""
        if X is None:
            return
        _, gradient, of_data = norms(self.A, self.B, X, damp)
        largest = np.linalg.norm(self.A.astype(WIDE[type_of(self.A)]).astype(complex), 2)
        rounding = 20 * np.finfo(self.A.dtype).eps * largest * (largest * np.linalg.norm(X.astype(complex), axis=0) +
                                                                np.linalg.norm(self.B.astype(complex), axis=0))
        self.suite.check((gradient <= tolerance * of_data + rounding).all(), "is not solved:", gradient, of_data, *what)


def type_of(A):
    return {value: key for key, value in program.TYPES.items()}[A.dtype.type]


def reasons(report):
    return [column["reason"] for column in report["columns"]]


def check_plateaus(suite, _):
    """The residuals of conjugate gradients on tridiag(-1, 2, -1) rise for n/2 iterations, and fall to 0 in the last."""
    n = 600
    case = Case(suite, 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1), np.ones(n))
    X, report = case.solve("--solver", "cg", "--iterations", n // 2 - 10, status=3)
    if X is not None:
        suite.check(reasons(report) == ["iteration_limit"] and np.abs(X).max() > 1, "plateau", reasons(report))
    X, report = case.solve("--solver", "cg", "--iterations", 2 * n)
    if X is not None:
        suite.check(report["columns"][0]["iterations"] <= n // 2 + 20, "iterations", report["columns"])
        residual = norms(case.A, case.B, X)[0]
        suite.check(residual <= 1e-8 * np.linalg.norm(case.B), "plateau", residual)


def check_singular_systems(suite, rng):
    """No x that explodes is a solution of a Hermitian system whose data are not in the range."""
    n = 60
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.concatenate([[0.0, 0.0], np.geomspace(1e-3, 1, n - 2)])
    case = Case(suite, Q * values @ Q.T, rng.standard_normal((n, 2)))
    for iterations in (50, 500, 3000):
        X, report = case.solve("--solver", "cg", "--iterations", iterations, status=3)
        if X is not None:
            suite.check(not program.SOLVED & set(reasons(report)) and np.isfinite(X).all(), "singular", iterations, reasons(report))


def check_orthogonal_data(suite, rng):
    """Data of which A sees rounding only: x = 0 to within rounding is right."""
    U = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    A = U[:, :12] * np.geomspace(1, 0.1, 12) @ np.linalg.qr(rng.standard_normal((12, 12)))[0]
    case = Case(suite, A, U[:, 20:22] * 3)
    for solver in LEAST_SQUARES:
        X, _ = case.solve("--solver", solver)
        if X is not None:
            suite.check(np.abs(X).max() <= 1e-12, solver, "x of orthogonal data", np.abs(X).max())
    # Aᴴ(b/‖b‖) is 0 in float32, and Aᴴb is not, with most orders of its sums.
    b = np.array([[0.10850609, 0.21701218, 0.32551828, 0.43402436, 0.06527804, -0.9645055, 0.87644213]], np.float32).T
    case = Case(suite, (2 * np.eye(7, 3) - np.eye(7, 3, 1) - np.eye(7, 3, -1)).astype(np.float32), b)
    for solver in LEAST_SQUARES:
        X, report = case.solve("--solver", solver)
        if X is not None:
            suite.check(np.abs(X).max() <= np.finfo(np.float32).eps * np.linalg.norm(b) and report["columns"][0]["iterations"] <= 2,
                        solver, "data orthogonal to rounding", report["columns"])


def check_restarts(suite, rng):
    """A restart with a tighter tolerance is as good as a run with that from the start, also of batches that had ended."""
    case = Case(suite, conditioned(rng, 50, 30, "f64", 40), program.random_matrix(rng, (50, 4), "f64"))
    exact = np.linalg.lstsq(case.A, case.B, rcond=None)[0]
    for solver in LEAST_SQUARES:
        for batch in ([], ["--batch", 2]):
            shutil.rmtree(suite.folder / "saved", ignore_errors=True)
            words = ["--solver", solver, *batch]
            case.solve(*words, "--tolerance", 0.1, "--checkpoint", "saved", "--checkpoint-every", 1)
            X, _ = case.solve(*words, "--tolerance", 1e-12, "--iterations", 1000, "--restart", "saved")
            if X is not None:
                suite.close(X, exact, 1e-8 * np.abs(exact).max(), "restart of", solver, batch)
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    case.solve("--solver", "lsqr", "--conlim", 2, "--checkpoint", "saved", "--checkpoint-every", 1, status=3)
    X, report = case.solve("--solver", "lsqr", "--conlim", 1e9, "--iterations", 1000, "--restart", "saved")
    if X is not None:
        suite.check(set(reasons(report)) == {"converged"}, "another limit of the condition", reasons(report))
    # ‖A‖ is remembered: what has stagnated needs no other iteration to be told so, where Aᴴb says little of A.
    U = np.linalg.svd(case.A)[0]
    case = Case(suite, case.A, U[:, 30:34] + 1e-5 * case.B)
    for solver in ("cgls", "lsqr", "lsmr"):
        for damp in (0, 0.1):
            shutil.rmtree(suite.folder / "saved", ignore_errors=True)
            words = ["--solver", solver, "--damp", damp, "--batch", 2]
            _, report = case.solve(*words, "--tolerance", 0, "--iterations", 500, "--checkpoint", "saved", "--checkpoint-every", 20)
            if report is not None:
                most = max(column["iterations"] for column in report["columns"])
                _, report = case.solve(*words, "--tolerance", 1e-300, "--iterations", most, "--restart", "saved")
            if report is not None:
                suite.check(set(reasons(report)) == {"stagnated"}, "restart of what has stagnated", solver, damp, reasons(report))


def check_guesses(suite, rng):
    """Tolerances refer to the data, however far the guess is; a guess that solves ends at once; data of 0 have the solution 0."""
    A, B = conditioned(rng, 40, 25, "f64", 20), program.random_matrix(rng, (40, 3), "f64")
    exact = np.linalg.lstsq(A, B, rcond=None)[0]
    B[:, 2] = 0
    case = Case(suite, A, B)
    far = program.random_matrix(rng, exact.shape, "f64")
    for k, solver in enumerate(LEAST_SQUARES):
        for size in (1e8, 1e12):
            np.save(suite.folder / "X0.npy", size * far)
            for damp in (0, 0.3)[k % 2:]:
                words = ["--solver", solver, "--initial", "X0.npy", "--iterations", 2000, "--damp", damp]
                X, _ = case.solve(*words)
                case.is_solved(X, 1e-7, solver, size, damp=damp)
                if X is not None:
                    suite.check(not X[:, 2].any(), "data of 0", X[:, 2])
        X = None
        if solver in PRECONDITIONED:
            X, report = case.solve("--solver", solver, "--initial", "X0.npy", "--iterations", 2000, "--precondition", "column-norms")
        if X is not None:
            lengths = np.linalg.norm(A, axis=0)
            tested = np.linalg.norm((A / lengths).T @ (B - A @ X), axis=0)[:2] / np.linalg.norm((A / lengths).T @ B, axis=0)[:2]
            suite.check((tested <= 1e-7).all(), "preconditioned", solver, tested)
        np.save(suite.folder / "X1.npy", exact)
        case_of_two = Case(suite, A, B[:, :2])
        np.save(suite.folder / "X1.npy", exact[:, :2])
        for more in ([], ["--precondition", "column-norms"]) if solver in PRECONDITIONED else ([],):
            _, report = case_of_two.solve("--solver", solver, "--initial", "X1.npy", *more)
            if report is not None:
                suite.check(max(column["iterations"] for column in report["columns"]) <= 1, "an exact guess", solver, more, report["columns"])
        case = Case(suite, A, B)


def check_useless_guesses(suite, rng):
    """Nothing of b is left in the residual of such a guess, or its norm overflows: the problem is solved all the same."""

    def solve(A, B, guess, *words):
        case = Case(suite, A, B)
        np.save(suite.folder / "X0.npy", guess)
        X, report = case.solve("--initial", "X0.npy", *words)
        if X is not None:
            suite.check(set(reasons(report)) <= {"converged", "stagnated"}, "reasons", words, report["columns"])
        return X

    square, ones = np.abs(program.random_matrix(rng, (5, 5), "f64")) + 5 * np.eye(5), np.ones((5, 1))
    for solver in (*LEAST_SQUARES, "cg", "minres"):  # A x₀ is 2^380 times b and more
        X = solve(2.0**386 * (square + square.T), 2.0**4 * ones, ones, "--solver", solver)
        if X is not None:
            right = 2.0**-382 * np.linalg.solve(square + square.T, ones)
            suite.check(np.abs(X - right).max() <= 1e-6 * np.abs(right).max(), "a guess that swallows b", solver, X, right)
    for solver in LEAST_SQUARES:  # the guess is nearly right, and its square is out of range
        X = solve(np.array([[2.0**-450]]), np.array([[2.0**118]]), np.array([[2.0**567]]), "--solver", solver)
        if X is not None:
            suite.check(abs(X[0, 0] / 2.0**568 - 1) <= 1e-7, "a long solution", solver, X)
    for solver in ("ista", "fista"):
        X = solve(square, 0 * ones, ones, "--solver", solver, "--lambda", 0)
        if X is not None:
            suite.check(not X.any(), "data of 0", solver, X)
    for damp, guess in ((0.1, 1.0), (0.1 * 2.0**360, 1e-283)):  # A is 0, so that the reference is
        for solver in LEAST_SQUARES:
            scaling = ["--precondition", "column-norms"] if solver in PRECONDITIONED else []
            X = solve(np.zeros((4, 3)), 2.0**-550 * np.ones((4, 1)), guess * rng.standard_normal((3, 1)), "--solver", solver, "--damp", damp, *scaling)
            if X is not None:
                suite.check(not X.any(), "nothing of b in the range", solver, damp, X)


def check_damped_guesses(suite, rng):
    """However large D is, it does not widen what rounding explains of b and r, which it does not multiply. The Frobenius norm is
    what lsqr and lsmr know of ‖A‖, and 100 is 10√(m + n) and some more for x, which is rounded to its type. With columns made
    equally long, D is a part of the operator."""
    damps = {"f64": ((10, 0.01), (100, 1e4), (1000, 0.01), (1000, 1e4), (1e5, 1e-4), (1e10, 0.01)),
             "f32": ((10, 0.01), (1000, 0.01), (1e5, 1), (1e6, 1e-8), (1e6, 0.01))}
    for name, pairs in damps.items():
        A, B = conditioned(rng, 40, 25, name, 20), program.random_matrix(rng, (40, 8), name)
        case, far, size = Case(suite, A, B), program.random_matrix(rng, (25, 8), name), np.linalg.norm(A.astype(float))
        for solver in LEAST_SQUARES:
            for (damp, length), precondition in itertools.product(pairs, ("none", "column-norms")):
                if precondition != "none" and solver not in PRECONDITIONED:
                    continue
                scaling = ["--precondition", precondition] if solver in PRECONDITIONED else []
                np.save(suite.folder / "X0.npy", (length * far).astype(A.dtype))
                X, report = case.solve("--solver", solver, "--initial", "X0.npy", "--damp", damp, *scaling, "--tolerance", 0, "--iterations", 500)
                if X is None:
                    continue
                what = name, solver, damp, length, precondition, reasons(report)
                suite.check(set(reasons(report)) <= program.SOLVED, *what)
                gradient, of_x = norms(A, B, X, damp)[1], np.linalg.norm(X.astype(float), axis=0)
                bound = size * (np.linalg.norm(B.astype(float), axis=0) + size * of_x) + damp**2 * of_x
                suite.check((gradient <= 100 * np.finfo(A.dtype).eps * bound).all(), *what,
                            "gradients in units of rounding:", gradient / (np.finfo(A.dtype).eps * bound))


def check_sizes(suite, rng):
    """Every size of A and B that a type has; D beside A; the same verdicts for problems that powers of two scale."""
    A, B = conditioned(rng, 30, 20, "f64", 5), program.random_matrix(rng, (30, 2), "f64")
    exact = np.linalg.lstsq(A, B, rcond=None)[0]
    sizes = {"f64": [(-60, -105), (-60, -60), (-150, 150), (150, -150), (150, 100), (-200, 90), (-150, -150)],
             "f32": [(-30, -6), (30, 6), (-19, 18), (10, 10), (-17, -30), (18, -12)]}
    for name, pairs in sizes.items():
        for k, (of_A, of_B) in enumerate(pairs):
            scaled = [(M * 10.0**p).astype(program.TYPES[name]) for M, p in ((A, of_A), (B, of_B))]
            case = Case(suite, *scaled)
            right = exact * 10.0**(of_B - of_A)
            if not np.abs(right).max() < np.finfo(program.TYPES[name]).max:
                continue
            for solver in (LEAST_SQUARES[k % 4], LEAST_SQUARES[(k + 1) % 4]):
                X, _ = case.solve("--solver", solver, "--iterations", 300)
                if X is not None:
                    suite.close(X / 10.0**(of_B - of_A), exact, (1e-2 if name == "f32" else 1e-6) * np.abs(exact).max(), name, of_A, of_B, solver)
    case = Case(suite, (A * 1e10).astype(np.float32), (B * 1e10).astype(np.float32))
    X, report = case.solve("--one-pass", "on", "--guard", 1)
    if X is not None:
        suite.check(not report["guard"]["alarms"], "alarms", report["guard"])
        suite.close(X, exact.astype(np.float32), 1e-2 * np.abs(exact).max(), "one pass of a large matrix")
    for solver in [*LEAST_SQUARES, "cg"]:  # D² is out of the range of single precision
        square, data = (A.T @ A, A.T @ B) if solver == "cg" else (A, B)
        case = Case(suite, (1e20 * square).astype(np.float32), (1e20 * data).astype(np.float32))
        X, _ = case.solve("--solver", solver, "--damp", 5e20)
        if X is not None:
            shift = 25e40 * np.eye(20)
            right = np.linalg.solve(1e20 * square + shift, 1e20 * data) if solver == "cg" else \
                np.linalg.solve(1e40 * square.T @ square + shift, 1e40 * square.T @ data)
            suite.check(np.abs(X - right).max() <= 1e-2 * np.abs(right).max(), "a large D", solver, X[:2], right[:2])
        case = Case(suite, case.A, 0 * case.B)
        np.save(suite.folder / "X0.npy", np.ones((20, 2), np.float32))
        X, _ = case.solve("--solver", solver, "--damp", 5e20, "--initial", "X0.npy")
        if X is not None:
            suite.check(not X.any(), "a large D and data of 0", solver, X)
    for power in (-60, 0, 60):  # ‖Aᴴ(b − Ax) − D²x‖ of cg, where D² is added to A
        square = A.T @ A * 10.0**power
        case, damp = Case(suite, square, A.T @ B), 0.1 * 10.0**(power / 2)
        X, report = case.solve("--solver", "cg", "--damp", damp)
        if X is not None:
            true = norms(square, case.B, X, damp)[1]
            found = np.array([column["normal_residual_norm"] for column in report["columns"]])
            suite.check((np.abs(found - true) <= 1e-6 * true).all(), "normal residual norms of cg", power, found, true)
    for solver in [*LEAST_SQUARES, "cg"]:  # x is smaller than any number, so 0 is what there is
        case = Case(suite, (A.T @ A if solver == "cg" else A) * 1e150, (A.T @ B if solver == "cg" else B) * 1e-200)
        X, report = case.solve("--solver", solver, status=3)
        if X is not None:
            residual, gradient, _ = norms(case.A, case.B, X)
            suite.check(not X.any() and reasons(report) == ["breakdown"] * 2, "x below all numbers", solver, X, reasons(report))
            for column, r, g in zip(report["columns"], residual, gradient):
                found = [column["residual_norm"] / r, column["normal_residual_norm"] / g, column["tested_norm"]]
                suite.check(np.allclose(np.array(found, float), 1, rtol=1e-12), "its norms", solver, found)
    counts = []
    for power in (0, 300, -300, 480, -480):
        case = Case(suite, A * 2.0**power, B * 2.0**(-power // 2))
        for solver in LEAST_SQUARES:
            _, report = case.solve("--solver", solver)
            if report is not None:
                counts.append((solver, power, reasons(report), [column["iterations"] for column in report["columns"]]))
    for solver in LEAST_SQUARES:
        of_solver = [count[2:] for count in counts if count[0] == solver]
        suite.check(all(count == of_solver[0] for count in of_solver), "verdicts of scaled problems", solver, of_solver)


def check_condition(suite, rng):
    """LSMR's estimate does not count what it has before the first step."""
    case = Case(suite, 1e-8 * conditioned(rng, 40, 20, "f64", 3.5), program.random_matrix(rng, (40, 1), "f64"))
    X, report = case.solve("--solver", "lsmr", "--conlim", 1e6)
    if X is not None:
        suite.check(reasons(report) == ["converged"] and 1 <= report["columns"][0]["condition"] <= 3.6, "condition", report["columns"])


def test(suite, _):
    rng = np.random.default_rng(17)
    for check in (check_plateaus, check_singular_systems, check_orthogonal_data, check_restarts, check_guesses, check_useless_guesses, check_sizes, check_condition,
                  check_damped_guesses):
        check(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
