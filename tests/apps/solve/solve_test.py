# SPDX-License-Identifier: BSD-3-Clause
"""Compares solutions of `gridlops solve` with NumPy's and SciPy's, and checks what it says of them. solve_test.py LAUNCH PROGRAM [--full]"""
import csv
import itertools
import sys
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

ALGORITHMS = ["block", "summa", "stationary-a", "stationary-b"]
CONDITION = 3


def conditioned(rng, rows, cols, name, condition=CONDITION):
    """A random matrix with singular values from 1 to 1/condition."""
    u, _, vh = np.linalg.svd(program.random_matrix(rng, (rows, cols), name), full_matrices=False)
    return (u * np.geomspace(1, 1 / condition, min(rows, cols)) @ vh).astype(program.TYPES[name])


def damped_solution(A, B, damp=0.0):
    wide = np.complex128 if np.iscomplexobj(A) else np.float64
    A, B = A.astype(wide), B.astype(wide)
    if damp == 0:
        return scipy.linalg.lstsq(A, B)[0]
    zeros = np.zeros((A.shape[1], *B.shape[1:]))
    return scipy.linalg.lstsq(np.vstack([A, damp * np.eye(A.shape[1])]), np.concatenate([B, zeros]))[0]


class Problem:
    """A and B in files; solve() runs the program on them, in turn on the grids of two ranks if no grid is named."""

    def __init__(self, suite, A, B):
        self.suite, self.A, self.B = suite, A, B
        np.save(suite.folder / "A.npy", A)
        np.save(suite.folder / "B.npy", B)

    def solve(self, *options, ranks=2, grid=None, status=0, environment=None):
        """The run, X and the report; None for the two if the status is another, or one without output."""
        grid = grid or [(1, 2), (2, 1)][self.suite.runs % 2]
        run = self.suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json",
                             "--grid", f"{grid[0]}x{grid[1]}", *options, ranks=None if ranks == 1 else ranks,
                             environment=environment)
        if not self.suite.succeeded(run, status) or status not in (0, 3):
            return run, None, None
        return run, np.load(self.suite.folder / "X.npy"), self.suite.report("R.json", "solve", ranks, grid)

    def check(self, X, expected, tolerance, *what, condition=CONDITION):
        """Compares X with a solution to within 10·κ·T. If X is None, the run has failed, which was counted."""
        if X is not None:
            self.suite.check(X.dtype == self.A.dtype, "type", X.dtype, *what)
            self.suite.close(X, expected, 10 * condition * tolerance * np.abs(expected).max(initial=1e-300), *what)


def check_reasons(suite, report, allowed, *what):
    if report is not None:
        found = {column["reason"] for column in report["columns"]}
        suite.check(found <= set(allowed), "reasons", found, *what)


def check_types(suite, rng, full):
    """Every type and algorithm solves on some grid, with damping and without."""
    grids = [((2, 2), 4), ((1, 3), 3), ((3, 2), 6), ((2, 2), 5)]
    tolerance = {"f32": 1e-5, "c64": 1e-5, "f64": 1e-10, "c128": 1e-10}
    cases = itertools.product(program.TYPES, range(len(grids)), ALGORITHMS)
    for k, (name, g, algorithm) in enumerate(cases):
        if not full and ALGORITHMS.index(algorithm) != (g + list(program.TYPES).index(name)) % 4:
            continue
        grid, ranks = grids[g]
        damp = 0.5 if k % 2 else 0.0
        problem = Problem(suite, conditioned(rng, 37, 22, name), program.random_matrix(rng, (37, 5), name))
        _, X, report = problem.solve("--algorithm", algorithm, "--tolerance", tolerance[name], "--damp", damp,
                                     ranks=ranks, grid=grid)
        what = (name, algorithm, grid, ranks, f"damp {damp}")
        problem.check(X, damped_solution(problem.A, problem.B, damp), tolerance[name], *what)
        check_reasons(suite, report, program.SOLVED, *what)


def check_report(suite, rng):
    """The report has the norms by their definitions, the history its rows, and the run prints the verdict and the table only."""
    damp = 0.3
    problem = Problem(suite, conditioned(rng, 30, 20, "c128"), program.random_matrix(rng, (30, 6), "c128"))
    run, X, report = problem.solve("--damp", damp, "--history", "H.csv", ranks=4, grid=(2, 2))
    if X is None:
        return
    A, B = problem.A, problem.B
    residual = B - A @ X
    normal = np.linalg.norm(A.conj().T @ residual - damp**2 * X, axis=0)
    for j, column in enumerate(report["columns"]):
        suite.check(abs(column["residual_norm"] - np.linalg.norm(residual[:, j])) < 1e-12, "residual norm of", j, column)
        suite.check(abs(column["normal_residual_norm"] - normal[j]) < 1e-12, "normal residual norm of", j, column)
    suite.check("6 converged" in run.output and not run.own_lines, "verdict", run.output, run.errors)

    with open(suite.folder / "H.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    suite.check(list(rows[0]) == ["iteration", "column", "residual_norm", "tested_norm"], "header", rows[0])
    for j, column in enumerate(report["columns"]):
        mine = [row for row in rows if int(row["column"]) == j]
        suite.check([int(row["iteration"]) for row in mine] == list(range(column["iterations"] + 1)), "history of", j)
        suite.check(np.isclose(float(mine[0]["residual_norm"]), np.linalg.norm(B[:, j]), rtol=1e-12), "start of", j)
        suite.check(float(mine[0]["tested_norm"]) == 1 and float(mine[-1]["tested_norm"]) <= 1e-8, "tested norms of", j)
    run, _, _ = problem.solve("--quiet", ranks=1, grid=(1, 1))
    suite.check(run.output == "" and not run.own_lines, "--quiet prints", run.output, run.errors)


def check_starts(suite, rng):
    """With a start, damping still pulls towards zero: min |AX − B|² + D²|X|². A start at the solution needs no step."""
    problem = Problem(suite, conditioned(rng, 26, 17, "f64"), program.random_matrix(rng, (26, 4), "f64"))
    expected = damped_solution(problem.A, problem.B, 0.4)
    for start, steps in [(program.random_matrix(rng, (17, 4), "f64"), None), (expected, 1)]:
        np.save(suite.folder / "X0.npy", start)
        _, X, report = problem.solve("--initial", "X0.npy", "--damp", 0.4, "--tolerance", 1e-11, ranks=5, grid=(2, 2))
        problem.check(X, expected, 1e-11, "with a start")
        if report is not None and steps is not None:
            suite.check(report["iterations"] <= steps, "from the solution it takes", report["iterations"], "iterations")
    wide = Problem(suite, conditioned(rng, 9, 20, "f64"), program.random_matrix(rng, (9, 2), "f64"))
    _, X, _ = wide.solve()
    wide.check(X, damped_solution(wide.A, wide.B), 1e-8, "underdetermined: the shortest solution")


def check_guard(suite, rng):
    """Where nothing fails the guard is silent, changes no bit, and its products are counted. Where the recurrence of blocks leaves
    the residual, beyond what single precision bears, the alarms of the report are told."""
    problem = Problem(suite, conditioned(rng, 30, 20, "f64"), program.random_matrix(rng, (30, 4), "f64"))
    for solver in ("cgls", "lsqr"):
        _, X, report = problem.solve("--solver", solver, grid=(2, 1))
        run, guarded, of_guard = problem.solve("--solver", solver, "--guard", 3, grid=(2, 1))
        if X is None or guarded is None:
            return
        suite.check((X == guarded).all() and report["columns"] == of_guard["columns"], "the guard changes X")
        checks = sum(column["iterations"] // 3 + 1 for column in report["columns"])
        suite.check(of_guard["guard"] == {"products": 9 + checks, "alarms": []} and "guard" not in report,
                    "products of the guard", of_guard.get("guard"), checks)
        suite.check(not run.own_lines, "warnings", run.errors)
    problem = Problem(suite, conditioned(rng, 60, 30, "c64", 1e8), program.random_matrix(rng, (60, 4), "c64"))
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", "--quiet",
                    "--solver", "block-cgls", "--iterations", 60, "--guard", 1, "--grid", "1x1")
    suite.check(run.status in (0, 3), "status", run.status, run.errors)
    alarms = suite.report("R.json", "solve", 1, (1, 1))["guard"]["alarms"]
    told = [line for line in run.warning_lines if "the guard found right-hand side" in line]
    suite.check(len(told) == min(len(alarms), 5), "told of", told, "of", alarms)
    for alarm in alarms:
        suite.check(set(alarm) == {"kind", "iteration", "column", "found", "limit"}, "alarm", alarm)


def check_places_of_bad_numbers(suite, rng):
    """The warning names the input with NaN or infinity, its first place by columns, and the rank; or says that there is none."""
    A, B = conditioned(rng, 24, 15, "f64"), program.random_matrix(rng, (24, 3), "f64")
    for storage in ("columns", "packed"):
        broken = A.copy()
        broken[20, 7], broken[2, 9] = np.inf, np.nan
        run, _, _ = Problem(suite, broken, B).solve("--storage", storage, "--algorithm", "stationary-a", ranks=4, grid=(2, 2), status=3)
        suite.check("A.npy holds inf at row 20, column 7 (from 0), in the part of rank 2" in run.errors, "place in A", run.errors)
    start = np.zeros((15, 3))
    start[4, 2] = -np.inf
    np.save(suite.folder / "X0.npy", start)
    run, _, _ = Problem(suite, A, B).solve("--initial", "X0.npy", status=3)
    suite.check("X0.npy holds -inf at row 4, column 2" in run.errors, "place in X0", run.errors)
    run, _, _ = Problem(suite, A * 1e-200, B * 1e200).solve(status=3)  # X has no place in its type
    suite.check("no input holds NaN or infinity" in run.errors, "no place", run.errors)


def check_odd_columns(suite, rng):
    B = program.random_matrix(rng, (24, 5), "c128")
    B[3, 1], B[:, 3] = np.nan, 0
    problem = Problem(suite, conditioned(rng, 24, 15, "c128"), B)
    run, X, report = problem.solve(ranks=4, grid=(2, 2), status=3)
    if X is not None:
        column = report["columns"]
        suite.check(column[1]["reason"] == "non_finite" and np.isnan(X[:, 1]).all(), "NaN column", column[1], X[:, 1])
        suite.check(column[1]["residual_norm"] is None and column[1]["normal_residual_norm"] is None, "not null", column[1])
        suite.check(column[3]["iterations"] == 0 and not X[:, 3].any(), "zero column", column[3], X[:, 3])
        good = [0, 2, 4]
        problem.check(X[:, good], damped_solution(problem.A, B[:, good]), 1e-8, "beside a NaN")
        suite.check(len(run.warning_lines) == 1 and "1 non_finite" in run.warning_lines[0]
                    and "B.npy holds nan at row 3, column 1 (from 0), in the part of rank" in run.warning_lines[0], "warning", run.errors)
    for shape in [(24, 0), (24,)]:
        problem = Problem(suite, problem.A, program.random_matrix(rng, shape, "c128"))
        _, X, _ = problem.solve()
        problem.check(X, damped_solution(problem.A, problem.B) if shape == (24,) else np.zeros((15, 0)), 1e-8, shape)


def check_cg(suite, rng):
    for algorithm, name, damp in zip(ALGORITHMS, program.TYPES, [0, 0.5, 0, 0.5]):
        tolerance = 1e-5 if program.epsilon(name) > 1e-10 else 1e-10
        half = conditioned(rng, 19, 19, name)
        problem = Problem(suite, half @ half.conj().T, program.random_matrix(rng, (19, 3), name))
        _, X, report = problem.solve("--solver", "cg", "--algorithm", algorithm, "--damp", damp, "--tolerance", tolerance,
                                     ranks=4, grid=(2, 2))
        wide = problem.A.astype(np.complex128 if name.startswith("c") else np.float64)
        problem.check(X, np.linalg.solve(wide + damp**2 * np.eye(19), problem.B), tolerance, "cg", name, algorithm,
                      condition=CONDITION**2)
        check_reasons(suite, report, program.SOLVED, "cg", name)
        suite.check(report is None or report["solver"] == "cg", "report: solver is not cg")


def check_other_solvers(suite, rng):
    """LSQR and LSMR take SciPy's iterations to SciPy's solutions; all damp X, not the correction of a guess."""
    problem = Problem(suite, conditioned(rng, 60, 40, "f64"), program.random_matrix(rng, (60, 3), "f64"))
    guess = program.random_matrix(rng, (40, 3), "f64")
    np.save(suite.folder / "X0.npy", guess)
    for solver, peer in [("lsqr", scipy.sparse.linalg.lsqr), ("lsmr", scipy.sparse.linalg.lsmr), ("block-cgls", None)]:
        for damp in [0, 0.3]:
            expected = damped_solution(problem.A, problem.B, damp)
            _, X, report = problem.solve("--solver", solver, "--damp", damp, "--tolerance", 1e-10)
            problem.check(X, expected, 1e-9, solver, damp)
            check_reasons(suite, report, program.SOLVED, solver, damp)
            suite.check(report is None or report["solver"] == solver, "report: solver is not", solver)
            if peer is not None and report is not None:
                for j, column in enumerate(report["columns"]):
                    there = peer(problem.A, problem.B[:, j], damp=damp, atol=1e-10, btol=1e-10, conlim=0)[2]
                    suite.check(abs(column["iterations"] - there) <= 1, solver, damp, "column", j, column, "SciPy:", there)
                    suite.check(column["condition"] > 1 and column["operator_norm"] > 0, "estimates", column)
            _, X, _ = problem.solve("--solver", solver, "--damp", damp, "--tolerance", 1e-10, "--initial", "X0.npy")
            problem.check(X, expected, 1e-9, solver, damp, "from a guess")
    problem.solve("--solver", "block-cgls", "--algorithm", "summa", status=2)


def check_storage(suite, rng):
    """The solution does not depend on how A is stored, and an algorithm that moves A refuses to pack it."""
    for grid, ranks, algorithm in [((2, 2), 4, "stationary-a"), ((2, 1), 2, "block"), ((1, 2), 2, "stationary-a")]:
        for name in program.TYPES:
            problem = Problem(suite, conditioned(rng, 37, 22, name), program.random_matrix(rng, (37, 5), name))
            tolerance = 1e-5 if name in ("f32", "c64") else 1e-10
            _, X, report = problem.solve("--storage", "packed", "--algorithm", algorithm, "--solver", "lsqr", "--tolerance", tolerance,
                                         ranks=ranks, grid=grid)
            problem.check(X, damped_solution(problem.A, problem.B, 0.0), tolerance, "packed", name, grid, algorithm)
            check_reasons(suite, report, program.SOLVED, "packed", name, grid)
            suite.check(report is None or report["storage"] == "packed", "report", report)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--storage", "packed", "--algorithm", "summa")
    suite.succeeded(run, status=2)
    suite.check(len(run.error_lines) == 1 and "summa moves A" in run.errors, run.errors)


def check_one_pass(suite, rng, full):
    """One-pass CGLS solves for every type on every kind of grid, and the report names it. `auto` takes two passes for small
    matrices."""
    grids = [((2, 2), 4), ((1, 2), 2), ((2, 1), 2), ((2, 3), 6), ((1, 1), 1)]
    tolerance = {"f32": 1e-5, "c64": 1e-5, "f64": 1e-10, "c128": 1e-10}
    for k, (grid, ranks) in enumerate(grids):
        for name in program.TYPES if full else list(program.TYPES)[(k + 1) % 2::2]:
            damp = 0.5 if k % 2 else 0.0
            problem = Problem(suite, conditioned(rng, 37, 22, name), program.random_matrix(rng, (37, 3), name))
            run, X, report = problem.solve("--one-pass", "on", "--damp", damp, "--tolerance", tolerance[name], ranks=ranks, grid=grid)
            what = ("one pass", name, grid, damp)
            problem.check(X, damped_solution(problem.A, problem.B, damp), tolerance[name], *what)
            check_reasons(suite, report, program.SOLVED, *what)
            suite.check(report is None or (report["solver"], report["algorithm"]) == ("one-pass-cgls", "stationary-a"), report, *what)
            suite.check("one-pass-cgls with stationary-a" in run.output, run.output)
    for words, solver in [(["--one-pass", "auto"], "cgls"), (["--one-pass", "off"], "cgls"), ([], "cgls")]:
        _, _, report = problem.solve(*words, ranks=1, grid=(1, 1))
        suite.check(report is None or report["solver"] == solver, words, report)
    for damp in (0.0, 0.5):
        words = ["--one-pass", "on", "--precondition", "column-norms", "--damp", damp, "--tolerance", 1e-10]
        _, X, report = problem.solve(*words, ranks=1, grid=(1, 1))
        problem.check(X, damped_solution(problem.A, problem.B, damp), 1e-10, "one pass with scaled columns", damp)
        suite.check(report is None or report["solver"] == "one-pass-cgls", "one pass with scaled columns", report)
    _, X, report = problem.solve(ranks=1, grid=(1, 1), environment={"GRIDLOPS_SOLVE_ONE_PASS": "on"})
    suite.check(report is None or report["solver"] == "one-pass-cgls", "from the environment", report)
    for words, part in [(["--one-pass", "on", "--algorithm", "summa"], "stationary-a only, not with summa"),
                        (["--one-pass", "on", "--solver", "lsqr"], "--one-pass is an option of --solver cgls"),
                        (["--one-pass", "maybe"], "'maybe'")]:
        run, _, _ = problem.solve(*words, ranks=1, grid=(1, 1), status=2)
        suite.check(len(run.error_lines) == 1 and part in run.errors, words, run.errors)
    plan = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--grid", "2x2", "--one-pass", "on",
                     "--dry-run", ranks=4)
    suite.check(plan.status == 0 and "one-pass-cgls" in plan.output, "plan", plan.output, plan.errors)


def check_preconditioning(suite, rng, full):
    """With scaled columns every solver needs few iterations where the columns of A have very different lengths, and the report has
    the norms of the problem as it was given."""
    lengths = np.geomspace(1e-3, 1e3, 25)
    A = conditioned(rng, 40, 25, "c128", condition=2) * lengths
    guess = program.random_matrix(rng, (25, 3), "c128") / lengths[:, None]
    np.save(suite.folder / "X0.npy", guess)
    for k, solver in enumerate(["cgls", "lsqr", "lsmr", "block-cgls"]):
        for damp in [0, 0.02]:
            problem = Problem(suite, A, program.random_matrix(rng, (40, 3), "c128"))
            options = ["--solver", solver, "--damp", damp, "--tolerance", 1e-12, "--precondition", "column-norms"]
            if solver != "block-cgls":
                options += ["--algorithm", ALGORITHMS[k]]
            for start in [[], ["--initial", "X0.npy"]]:
                if not full and bool(start) == ((damp == 0) == (k % 2 == 0)):
                    continue
                _, X, report = problem.solve(*options, *start)
                if X is None:
                    continue
                what = (solver, damp, start)
                expected = damped_solution(A, problem.B, damp)
                suite.close(X * lengths[:, None], expected * lengths[:, None],
                            1e-8 * np.abs(expected * lengths[:, None]).max(), *what)
                suite.check(damp or report["iterations"] <= 25, "iterations", report["iterations"], *what)
                residual = problem.B - A @ X
                normal = A.conj().T @ residual - damp**2 * X
                for j, column in enumerate(report["columns"]):
                    suite.check(abs(column["residual_norm"] - np.linalg.norm(residual[:, j])) < 1e-9, column, *what)
                    suite.check(abs(column["normal_residual_norm"] - np.linalg.norm(normal[:, j])) < 1e-8, column, *what)
    _, _, report = problem.solve("--tolerance", 1e-12, status=3)
    suite.check(report is None or report["iterations"] == 100, "it needs no preconditioner:", report)


def check_variances(suite, rng):
    """The variances are SciPy's, column by column, before rounding repeats directions. After as many iterations as unknowns they
    are the diagonal of (A^H A + D^2 I)^-1 itself."""
    problem = Problem(suite, conditioned(rng, 60, 40, "f64", condition=10), program.random_matrix(rng, (60, 4), "f64"))
    for damp in [0, 0.2]:
        _, _, report = problem.solve("--solver", "lsqr", "--damp", damp, "--tolerance", 1e-9, "--iterations", 12,
                                     "--variances", "V.npy", status=3)
        if report is None:
            continue
        V = np.load(suite.folder / "V.npy")
        for j, column in enumerate(report["columns"]):
            peer = scipy.sparse.linalg.lsqr(problem.A, problem.B[:, j], damp=damp, atol=1e-9, btol=1e-9, conlim=0,
                                            iter_lim=column["iterations"], calc_var=True)
            suite.check(peer[2] == column["iterations"], "SciPy takes", peer[2], "iterations, not", column)
            suite.close(V[:, j], peer[9], 1e-8 * peer[9].max(), "variances of", j, damp)
    problem = Problem(suite, conditioned(rng, 14, 9, "c128"), program.random_matrix(rng, (14, 3), "c128"))
    np.save(suite.folder / "X0.npy", program.random_matrix(rng, (9, 3), "c128"))
    exact = np.diag(np.linalg.inv(problem.A.conj().T @ problem.A + 0.3**2 * np.eye(9)))
    for start in [[], ["--initial", "X0.npy"]]:
        problem.solve("--solver", "lsqr", "--damp", 0.3, "--tolerance", 1e-13, "--variances", "V.npy", *start)
        V = np.load(suite.folder / "V.npy")
        suite.close(V, np.tile(exact[:, None], 3), 1e-9, "variances", start)
        suite.check(not V.imag.any(), "variances are complex")


def threshold(kind, z, t):
    """The x that minimises |x - z|^2 / 2 + t times the penalty, element by element."""
    size = np.abs(z)
    if kind == "soft":
        return z * np.maximum(1 - t / np.maximum(size, 1e-300), 0)
    if kind == "hard":
        return np.where(size > np.sqrt(2 * t), z, 0)
    large = size > 54 ** (1 / 3) / 4 * t ** (2 / 3)
    angle = np.arccos(np.where(large, t / 8 * (np.maximum(size, 1e-300) / 3) ** -1.5, 0))
    return np.where(large, 2 / 3 * z * (1 + np.cos(2 * np.pi / 3 - 2 / 3 * angle)), 0)


def proximal_gradient(A, B, kind, weight, step, iterations, momentum):
    """ISTA, or FISTA as Beck and Teboulle write it."""
    x = y = np.zeros((A.shape[1], B.shape[1]), dtype=A.dtype)
    t = 1.0
    for _ in range(iterations):
        x_next = threshold(kind, y + step * A.conj().T @ (B - A @ y), step * weight)
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = x_next + ((t - 1) / t_next) * (x_next - x) if momentum else x_next
        x, t = x_next, t_next
    return x


def check_sparse_solvers(suite, rng):
    """ISTA and FISTA have a reference's iterates step by step, and meet the conditions of a minimum of |Ax - b|^2 / 2 + w |x|_1
    at the end: for every i, A_i^H (b - Ax) is w x_i / |x_i|, or no larger than w where x_i = 0."""
    few, weight = 0.05, 0.15
    for k, name in enumerate(["f64", "c128"]):
        problem = Problem(suite, conditioned(rng, 30, 24, name), program.random_matrix(rng, (30, 3), name))
        A, B = problem.A, problem.B
        for (solver, momentum), kind in itertools.product([("ista", False), ("fista", True)], ["soft", "hard", "half"]):
            _, X, report = problem.solve("--solver", solver, "--lambda", few, "--step", 0.9, "--threshold", kind,
                                         "--iterations", 15, "--tolerance", 0, "--algorithm", ALGORITHMS[k], status=3)
            problem.check(X, proximal_gradient(A, B, kind, few, 0.9, 15, momentum), 1e-13, solver, kind, name)
            check_reasons(suite, report, ["iteration_limit"], solver, kind)
            suite.check(report is None or report["solver"] == solver, "report: solver is not", solver)
        for options in [("ista",), ("ista", "--backtracking"), ("fista",), ("fista", "--monotone", "--batch", 2)]:
            _, X, report = problem.solve("--lambda", weight, "--iterations", 2000, "--tolerance", 1e-12, "--solver",
                                         *options, ranks=1, grid=(1, 1))
            if X is None:
                continue
            check_reasons(suite, report, program.SOLVED, *options)
            gradient, zero = A.conj().T @ (B - A @ X), X == 0
            suite.check(0 < zero.sum() < X.size, "no zeros, or nothing else:", zero.sum(), *options)
            suite.close(gradient[~zero], weight * (X / np.maximum(np.abs(X), 1e-300))[~zero], 1e-9, "gradient", *options)
            suite.check((np.abs(gradient[zero]) <= weight + 1e-9).all(), "gradient where x = 0", *options)


def check_plans(suite, rng):
    """--dry-run knows every solver, and has the figures of the formulas on one rank without damping."""
    m, n, k = 4000, 3000, 20
    problem = Problem(suite, np.zeros((m, n), dtype=np.float32), np.zeros((m, k), dtype=np.float32))
    vectors = {"cgls": (2, 3), "lsqr": (1, 3), "lsmr": (1, 4), "block-cgls": (2, 4), "ista": (4, 3), "fista": (5, 4)}
    for solver, (of_data, of_model) in vectors.items():
        sparse = ["--lambda", 1] if "ista" in solver else []
        run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--dry-run",
                        "--solver", solver, *sparse)
        if not suite.succeeded(run):
            continue
        found = [line.split() for line in run.output.splitlines() if line.startswith("solver's vectors")]
        elements = (of_data * m + of_model * n) * k + m
        if solver == "block-cgls":
            elements += 2 * 1024 * k + 4 * k * k
        suite.check(found and found[0][2:4] == [f"{4 * elements / 2**20:.1f}", "MiB"], solver, elements, run.output)


def check_columns_alone(suite, rng):
    """Batches change rounding only. With --column-stable a column alone has the bits that it has among others."""
    problem = Problem(suite, conditioned(rng, 33, 21, "f64"), program.random_matrix(rng, (33, 7), "f64"))
    expected = damped_solution(problem.A, problem.B)
    _, X, report = problem.solve("--batch", 3, "--history", "H.csv")
    problem.check(X, expected, 1e-8, "in batches")
    check_reasons(suite, report, ["converged"], "in batches")
    with open(suite.folder / "H.csv", newline="", encoding="utf-8") as file:
        suite.check({row["column"] for row in csv.DictReader(file)} == set("0123456"), "history of batches")

    options = ["--column-stable", "--algorithm", "stationary-a"]
    _, together, _ = problem.solve(*options, ranks=4, grid=(2, 2))
    for columns in [[0], [2, 5]]:
        alone = Problem(suite, problem.A, problem.B[:, columns])
        _, X, _ = alone.solve(*options, ranks=4, grid=(2, 2))
        if together is not None and X is not None:
            suite.check(X.tobytes("F") == together[:, columns].tobytes("F"), "--column-stable: columns", columns, "differ by",
                        np.abs(X - together[:, columns]).max())


def check_limits(suite, rng):
    problem = Problem(suite, conditioned(rng, 40, 30, "f64", condition=50), program.random_matrix(rng, (40, 3), "f64"))
    run, X, report = problem.solve("--iterations", 2, status=3)
    check_reasons(suite, report, ["iteration_limit"], "--iterations 2")
    suite.check(X is not None and len(run.warning_lines) == 1, "no warning, or no X", run.errors)

    (suite.folder / "X.npy").unlink()
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--grid", "2x2", "--dry-run", ranks=4)
    suite.succeeded(run)
    suite.check(not (suite.folder / "X.npy").exists(), "--dry-run writes X")
    table = {line[:38].strip(): line[38:].split() for line in run.output.splitlines()}
    suite.check(table.get("matrix") == ["2.3", "KiB"] * 2, "a quarter of 40 x 30 x 8 bytes is 2.3 KiB:", run.output)
    suite.check({"right-hand sides", "solution", "memory in all"} <= set(table), "rows are missing:", run.output)
    _, _, report = problem.solve("--iterations", 2, status=3, ranks=4, grid=(2, 2))
    planned = report["memory_bytes"]["planned"]
    suite.check([text for size in (min(planned), max(planned)) for text in (f"{size / 1024:.1f}", "KiB")] == table["memory in all"],
                "planned", planned, "but the plan was", run.output)
    suite.check(all(peak > 2 ** 20 for peak in report["memory_bytes"]["peak"]), "peaks", report["memory_bytes"])


def check_range(suite, rng, full):
    """Whatever the size of A and of columns of B, a column that is called solved is the solution, and the run says what to do about
    others. Zero stays zero."""
    solvers = ["cgls", "lsqr", "lsmr", "block-cgls", "direct", "cg"]
    half = conditioned(rng, 14, 9, "f64")
    definite = half.T @ half
    sizes = {"f64": ([1e-200, 1e-160, 1e-80, 1, 1e80, 1e200], [1e-200, 1, 1e200, 0]),
             "f32": ([1e-30, 1e-18, 1, 1e18, 1e30], [1e-30, 1, 1e30, 0])}
    for name, (of_A, of_B) in sizes.items():
        tolerance = 1e-5 if name == "f32" else 1e-8
        for (k, solver), (l, size) in itertools.product(enumerate(solvers), enumerate(of_A)):
            if not full and size != 1 and (k + l) % 2:
                continue
            A = definite if solver == "cg" else half
            B = program.random_matrix(rng, (A.shape[0], len(of_B)), "f64")
            exact = np.linalg.lstsq(A, B, rcond=None)[0]
            problem = Problem(suite, (A * size).astype(program.TYPES[name]), (B * of_B).astype(program.TYPES[name]))
            ranks, grid = (4, (2, 2)) if (name, size) == ("f64", 1e-200) else (1, (1, 1))
            run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", "--tolerance",
                            tolerance, "--solver", solver, "--grid", f"{grid[0]}x{grid[1]}", ranks=None if ranks == 1 else ranks)
            what = (solver, name, "A of", size)
            if not suite.check(run.status in (0, 3), run.status, run.errors, *what):
                continue
            X, columns = np.load(suite.folder / "X.npy"), suite.report("R.json", "solve", ranks, grid)["columns"]
            for j, column in enumerate(columns):
                solved = column["reason"] in program.SOLVED
                if of_B[j] == 0:
                    suite.check((column["reason"], column["iterations"]) == ("converged", 0) and not X[:, j].any(), column, *what)
                elif solved:
                    found = X[:, j].astype(np.longdouble) / np.longdouble(of_B[j]) * np.longdouble(size)
                    suite.close(found, exact[:, j], 100 * CONDITION**2 * tolerance * np.abs(exact[:, j]).max(), "b of", of_B[j], *what)
                else:
                    suite.check(column["reason"] in ("non_finite", "breakdown", "iteration_limit"), "b of", of_B[j], column, *what)
                    suite.check("scale A and B" in run.errors or solver == "cg" or column["reason"] == "iteration_limit", run.errors, *what)
                kind = np.finfo(program.TYPES[name])
                elements = np.abs(exact[:, j].astype(np.longdouble) * of_B[j] / size)
                has_place = of_B[j] == 0 or kind.tiny < np.linalg.norm(elements) < kind.max
                suite.check(solved or not has_place, "not solved:", column, *what)


def check_relative_damping(suite, rng):
    """--damp-relative F is --damp F·|A|, where |A| = 1 here. The command line has precedence over the environment."""
    problem = Problem(suite, conditioned(rng, 25, 16, "f64"), program.random_matrix(rng, (25, 3), "f64"))
    _, X, report = problem.solve("--damp-relative", 0.7)
    problem.check(X, damped_solution(problem.A, problem.B, 0.7), 1e-3, "--damp-relative")
    if report:
        suite.check(abs(report["options"]["damp"] - 0.7) < 1e-3, "the damping of --damp-relative", report["options"])
    environment = {"GRIDLOPS_SOLVE_DAMP": "0.6", "GRIDLOPS_SOLVE_QUIET": "1"}
    run, X, _ = problem.solve(environment=environment)
    problem.check(X, damped_solution(problem.A, problem.B, 0.6), 1e-8, "GRIDLOPS_SOLVE_DAMP")
    suite.check(run.output == "", "GRIDLOPS_SOLVE_QUIET is not heard:", run.output)
    _, X, _ = problem.solve("--damp", 0.2, ranks=1, grid=(1, 1), environment=environment)
    problem.check(X, damped_solution(problem.A, problem.B, 0.2), 1e-8, "--damp above GRIDLOPS_SOLVE_DAMP")


def test(suite, full):
    rng = np.random.default_rng(2)
    check_types(suite, rng, full)
    check_report(suite, rng)
    check_starts(suite, rng)
    check_guard(suite, rng)
    check_places_of_bad_numbers(suite, rng)
    check_odd_columns(suite, rng)
    check_cg(suite, rng)
    check_other_solvers(suite, rng)
    check_storage(suite, rng)
    check_one_pass(suite, rng, full)
    check_preconditioning(suite, rng, full)
    check_variances(suite, rng)
    check_sparse_solvers(suite, rng)
    check_plans(suite, rng)
    check_columns_alone(suite, rng)
    check_limits(suite, rng)
    check_relative_damping(suite, rng)
    check_range(suite, rng, full)


if __name__ == "__main__":
    program.main(test, __doc__)
