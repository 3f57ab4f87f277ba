# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops solve --damps`: solutions, curve and choices are those of the singular value decomposition.
sweep_test.py LAUNCH PROGRAM"""
import csv
import json
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

RANGE = "3e-3:1:15"
DAMPS = np.geomspace(3e-3, 1, 15)
NOISE = 0.05


class Problem:
    """An ill-posed A x = b with noise of a known norm, and its solutions by filter factors."""

    def __init__(self, suite, name, m, n, dtype="f64", columns=1):
        rng = np.random.default_rng(7)
        self.name, self.type, k = name, program.TYPES[dtype], min(m, n)
        draw = lambda rows, cols: program.random_matrix(rng, (rows, cols), dtype).astype(np.result_type(self.type, np.float64))
        U, V = np.linalg.qr(draw(m, k))[0], np.linalg.qr(draw(n, k))[0]
        sigma = 10.0 ** np.linspace(0, -4, k)
        x = V @ (np.sqrt(sigma)[:, None] * draw(k, columns))
        noise = draw(m, columns)
        self.A = ((U * sigma) @ V.conj().T).astype(self.type)
        self.b = (self.A @ x + NOISE * noise / np.linalg.norm(noise, axis=0)).astype(self.type)
        self.U, self.sigma, Vh = np.linalg.svd(self.A.astype(np.result_type(self.type, np.float64)), full_matrices=False)
        self.V = Vh.conj().T
        np.save(suite.folder / f"{name}_A.npy", self.A)
        np.save(suite.folder / f"{name}_b.npy", self.b[:, 0] if columns == 1 else self.b)

    def words(self, output, *more, iterations=2000, rhs=None):
        return ["solve", "--matrix", f"{self.name}_A.npy", "--rhs", rhs or f"{self.name}_b.npy", "--output", output, "--iterations", iterations,
                *([] if "--tolerances" in more else ["--tolerance", "1e-11" if self.type in (np.float64, np.complex128) else "1e-5"]), *more]

    def solutions(self, damps, b=None):
        """A column for each damping, of the first right-hand side or of one each."""
        b = self.b if b is None else b
        beta = self.U.conj().T @ (b if b.shape[1] == len(damps) else np.repeat(b[:, :1], len(damps), 1))
        return self.V @ (self.sigma[:, None] / (self.sigma[:, None] ** 2 + np.square(damps)) * beta)

    def curvature(self, damps):
        """Of the L-curve: first derivatives are exact, second ones their differences over a thousandth of a per cent."""
        step = 1e-5
        (le, lr), (le0, lr0), (le1, lr1) = (self.slopes(damps * np.exp(shift)) for shift in (0, -step, step))
        dle, dlr = (le1 - le0) / (2 * step), (lr1 - lr0) / (2 * step)
        return (dle * lr - le * dlr) / (le ** 2 + lr ** 2) ** 1.5

    def slopes(self, damps):
        """d log |x| and d log |b - A x| over d log D."""
        beta = np.abs(self.U.conj().T @ self.b)
        f = self.sigma[:, None] ** 2 / (self.sigma[:, None] ** 2 + np.square(damps))
        outside = np.linalg.norm(self.b) ** 2 - (beta ** 2).sum()
        eta = ((f * beta / self.sigma[:, None]) ** 2).sum(0)
        rho = (((1 - f) * beta) ** 2).sum(0) + outside
        eta_slope = -4 * ((1 - f) * f ** 2 * beta ** 2 / self.sigma[:, None] ** 2).sum(0)
        return eta_slope / (2 * eta), -damps ** 2 * eta_slope / (2 * rho)


def sweep(suite, problem, *more, ranks=None, grid=(1, 1), status=0, damps=RANGE):
    """The report of a sweep and its solutions."""
    run = suite.run(*problem.words("X.npy", "--damps", damps, "--report", "r.json", "--curve", "curve.csv", *more), ranks=ranks)
    if not suite.succeeded(run, status):
        return None, None, run
    return suite.report("r.json", "solve", ranks or 1, grid), np.load(suite.folder / "X.npy"), run


def check_points(suite, problem, report, damps, *what):
    """The curve in JSON and CSV is that of the filtered solutions, and so is the objective."""
    points = report["columns"][:len(damps)]
    expected = problem.solutions(damps)
    right = problem.b if problem.b.shape[1] == len(damps) else problem.b[:, :1]
    bound = 1e-6 if problem.type in (np.float64, np.complex128) else 2e-3
    found = np.array([[point[key] for key in ("damp", "residual_norm", "x_norm", "objective")] for point in points])
    norms = np.array([damps, np.linalg.norm(right - problem.A @ expected, axis=0), np.linalg.norm(expected, axis=0)]).T
    norms = np.column_stack([norms, norms[:, 1] ** 2 + (damps * norms[:, 2]) ** 2])
    suite.close(found, norms, bound * norms + 1e-12, "curve", *what)
    with open(suite.folder / "curve.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    suite.check([float(row["damp"]) for row in rows] == [point["damp"] for point in points]
                and [float(row["x_norm"]) for row in rows] == [point["x_norm"] for point in points]
                and [row["reason"] for row in rows] == [point["reason"] for point in points]
                and [k for k, row in enumerate(rows) if row["chosen"] == "1"] == [k for k in [report["sweep"]["chosen"]] if k is not None],
                "curve.csv", rows[:2], *what)
    files = {file["option"]: file for file in report["files"]}
    suite.check(files["--output"]["shape"] == list(np.load(suite.folder / "X.npy").shape) and "--curve" in files
                and report["sweep"]["dampings"] == len(damps) and report["options"]["damps"] and "damp" not in report["options"],
                "record", report["files"], report["options"], *what)


def check_solutions(suite, full):
    """The same on any grid, in any type, with every solver that can."""
    cases = [("tall", 60, 40, "f64", None, (1, 1), []), ("wide", 30, 50, "c128", 4, (2, 2), ["--algorithm", "summa", "--grid", "2x2"]),
             ("tall", 60, 40, "f64", 3, (1, 3), ["--algorithm", "block", "--grid", "1x3", "--solver", "lsqr", "--initial", "x0.npy"]),
             ("wide", 30, 50, "c128", 2, (1, 2), ["--solver", "lsmr", "--grid", "1x2", "--batch", "4"]),
             ("single", 60, 40, "f32", None, (1, 1), []), ("tall", 60, 40, "f64", None, (1, 1), ["--one-pass", "on", "--initial", "x0.npy"]),
             ("single_wide", 30, 50, "c64", 6, (3, 2), ["--grid", "3x2", "--algorithm", "stationary-b"])]
    np.save(suite.folder / "x0.npy", np.ones(40))
    for name, m, n, dtype, ranks, grid, more in cases if full else (cases[k] for k in (1, 2, 4)):
        problem, damps = Problem(suite, name, m, n, dtype), DAMPS if dtype in ("f64", "c128") else np.geomspace(0.1, 1, 15)
        report, X, run = sweep(suite, problem, *more, ranks=ranks, grid=grid, damps=f"{damps[0]}:1:15")
        if report is None:
            continue
        expected = problem.solutions(damps)
        bound = 1e-6 if dtype in ("f64", "c128") else 1e-2
        suite.close(X, expected, bound * np.abs(expected).max(), "solutions", name, more)
        check_points(suite, problem, report, damps, name, more)
        suite.check(f"{damps[3]:.4e}" in run.output and "chosen" not in run.output, "table", run.output)
    # As single solves with these dampings.
    problem = Problem(suite, "tall", 60, 40)
    report, X, _ = sweep(suite, problem)
    for k in (0, 7, 14) if full else (7,):
        damp = report["columns"][k]["damp"]
        if suite.succeeded(suite.run(*problem.words("x.npy", "--damp", damp, "--report", "one.json"))):
            x, one = np.load(suite.folder / "x.npy"), json.loads((suite.folder / "one.json").read_text(encoding="utf-8"))["columns"][0]
            suite.check(x.shape == (40,), "shape", x.shape)
            suite.close(X[:, k], x, 1e-7 * np.abs(x).max(), "not as alone", damp)
            suite.check(abs(one["iterations"] - report["columns"][k]["iterations"]) <= max(2, 0.15 * one["iterations"]) and one["reason"] == report["columns"][k]["reason"],
                        "another verdict than alone", one, report["columns"][k])


def check_files(suite):
    """Dampings from files: in any order, with 0, and one for each of several right-hand sides."""
    damps = np.array([0.3, 0, 1e-2, 0.3, 2])
    for kind in (np.float64, np.float32):
        for shape in ((5,), (1, 5), (5, 1)):
            if kind == np.float64 or shape == (5,):
                np.save(suite.folder / f"damps_{kind.__name__}_{len(shape)}{shape[0]}.npy", damps.reshape(shape).astype(kind))
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((9, 6)), rng.standard_normal((9, 5))
    np.save(suite.folder / "well_A.npy", A)
    for columns in (1, 5):
        np.save(suite.folder / "well_b.npy", b[:, :columns])
        for file, kind in (("damps_float64_15.npy", np.float64), ("damps_float64_21.npy", np.float64), ("damps_float32_15.npy", np.float32)):
            run = suite.run("solve", "--matrix", "well_A.npy", "--rhs", "well_b.npy", "--output", "well.npy", "--damps", file,
                            "--tolerance", "1e-13", "--report", "r.json")
            if suite.succeeded(run):
                given = damps.astype(kind).astype(float)
                expected = np.array([np.linalg.solve(A.T @ A + d * d * np.eye(6), A.T @ b[:, min(k, columns - 1)]) for k, d in enumerate(given)]).T
                suite.close(np.load(suite.folder / "well.npy"), expected, 1e-9, "solutions", file, columns)


def probe(rows):
    """The random vector of GCV: signs of gridlops/base/random.hpp's counter_uniform."""
    mask, step = (1 << 64) - 1, 0x9e3779b97f4a7c15

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & mask
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
        return z ^ (z >> 31)

    begin = mix((0x676376 + step) & mask)
    numbers = [mix(mix(begin ^ ((i + step) & mask)) ^ (2 * step & mask)) >> 11 for i in range(rows)]
    return np.array([-1.0 if number < 1 << 52 else 1.0 for number in numbers])


def check_choices(suite, full):
    """Discrepancy exactly, GCV with its random vector exactly, and the corner of the L-curve to a neighbour."""
    for name, m, n, dtype, ranks, grid in (("tall", 60, 40, "f64", None, (1, 1)), ("wide", 30, 50, "c128", 4, (2, 2))):
        problem = Problem(suite, name, m, n, dtype)
        on = ["--grid", f"{grid[0]}x{grid[1]}", "--algorithm", "summa"] if ranks else []

        def chosen(rule, *more):
            """Of the quick run one process tries two rules, and four the third."""
            if not full and (rule == "gcv") != (ranks == 4):
                return None, None, None
            return sweep(suite, problem, "--choose", rule, *more, *on, ranks=ranks, grid=grid)

        expected = problem.solutions(DAMPS)
        residuals = np.linalg.norm(problem.b - problem.A @ expected, axis=0)

        # A noise between two residual norms, so that rounding decides nothing.
        noise = (residuals[9] + residuals[10]) / 2
        report, X, run = chosen("discrepancy", "--noise", noise, "--save", "chosen")
        if report is not None:
            suite.check(report["sweep"]["chosen"] == 9 and ", chosen by discrepancy" in run.output, "discrepancy", report["sweep"]["chosen"], run.output)
            suite.close(X, expected[:, 9], 1e-6 * np.abs(X).max(), "the chosen solution alone")
            check_points(suite, problem, report, DAMPS, "discrepancy")

        report, X, run = chosen("lcurve")
        if report is not None:
            exact = int(np.argmax(problem.curvature(DAMPS)[1:-1])) + 1
            suite.check(abs(report["sweep"]["chosen"] - exact) <= 1, "corner", report["sweep"]["chosen"], "exact", exact, problem.curvature(DAMPS))
            found = np.array([point["curvature"] for point in report["columns"]], dtype=float)
            suite.check(np.isnan(found[[0, -1]]).all(), "the ends have no curvature", found)
            suite.check(report["options"]["choose"] == "lcurve" and ", chosen by lcurve" in run.output, "choice in the table", run.output)

        report, X, run = chosen("gcv")
        if report is not None:
            z = probe(m)
            free = np.array([z @ (z - (problem.A @ np.linalg.solve(problem.A.conj().T @ problem.A + d * d * np.eye(n), problem.A.conj().T @ z))).real
                             for d in DAMPS])
            gcv = (residuals / free) ** 2
            found = np.array([point["gcv"] for point in report["columns"][:15]], dtype=float)
            suite.close(found, gcv, 1e-5 * gcv, "GCV function", name)
            suite.check(report["sweep"]["chosen"] == int(np.argmin(gcv)), "GCV", report["sweep"]["chosen"], np.argmin(gcv))
            suite.check(X.shape == (n, 15) and report["nrhs"] == 30, "columns", X.shape, report["nrhs"])
            # The estimate of the trace is that of a random vector: some standard deviations from the trace at most.
            f = problem.sigma[:, None] ** 2 / (problem.sigma[:, None] ** 2 + DAMPS ** 2)
            deviation = np.sqrt(2 * (((1 - f) ** 2).sum(0) + m - len(problem.sigma)))
            suite.check((np.abs(free - (m - f.sum(0))) <= 4 * deviation).all(), "trace", free, m - f.sum(0))

    # D = 0 is compared where data are left to do it with, and else the program says that it is not.
    for m, chosen in ((60, 0.0), (20, 3.0)):
        rng = np.random.default_rng(1)
        A = rng.standard_normal((m, 20))
        arrays = {"gcv_A": A, "gcv_b": A @ rng.standard_normal(20) + 0.01 * rng.standard_normal(m), "gcv_D": np.array([0, 3.0, 10, 30])}
        for name, array in arrays.items():
            np.save(suite.folder / f"{name}.npy", array)
        for way in ("columns", "space"):
            run = suite.run("solve", "--matrix", "gcv_A.npy", "--rhs", "gcv_b.npy", "--output", "X.npy", "--damps", "gcv_D.npy", "--sweep", way,
                            "--choose", "gcv", "--curve", "curve.csv", "--iterations", "1000")
            with open(suite.folder / "curve.csv", encoding="utf-8") as file:
                found = [float(row["damp"]) for row in csv.DictReader(file) if row["chosen"] == "1"]
            suite.check(run.status == 0 and found == [chosen] and any("D = 0 was left out" in line for line in run.warning_lines) == (m == 20),
                        "gcv without damping", m, way, found, run.errors)

    # Nothing to choose: all solutions are written, and the status says so.
    problem = Problem(suite, "tall", 60, 40)
    report, X, run = sweep(suite, problem, "--choose", "discrepancy", "--noise", "1e-9", "--save", "chosen", "--quiet", status=1)
    suite.check(X is not None and X.shape == (40, 15) and report["sweep"]["chosen"] is None and run.output == ""
                and any("no damping was chosen: the smallest |B - A X|" in line for line in run.warning_lines), run.errors, run.output)
    # At the end of the range; the curvature is known from the second damping on, and falls.
    exact = np.argmax(problem.curvature(DAMPS)[1:-1]) + 1
    damps = DAMPS[exact:exact + 4]
    report, X, run = sweep(suite, problem, "--choose", "lcurve", damps=f"{damps[0]}:{damps[-1]}:4")
    suite.check(report is not None and report["sweep"]["chosen"] == 1 and any("at an end of the range" in line for line in run.warning_lines),
                problem.curvature(damps), run.errors, run.output)
    report, X, run = sweep(suite, problem, "--choose", "discrepancy", "--noise", "1e9")
    suite.check(report is not None and report["sweep"]["chosen"] == 14 and any("at an end of the range" in line for line in run.warning_lines), run.errors)


def corner(damps, residuals, norms):
    """Where the curvature of log |x| over log |b - A x| is largest, but at the ends, from η = |x|² and η' (Hansen 2001, §5)."""
    s, t = np.gradient(2 * np.log(norms), np.log(damps)), (damps * norms / residuals) ** 2
    return int(np.argmax((-2 * t * (2 + s * (1 + t)) / (s * (1 + t * t) ** 1.5))[1:-1])) + 1


def check_saved_space(suite, problem, ranks, noise):
    """A space that one job keeps solves other data in another job, on another grid."""
    making = ("--damps", RANGE, "--sweep", "space", "--choose", "discrepancy", "--noise", noise, "--checkpoint", "space")
    suite.succeeded(suite.run(*problem.words("X.npy", *making), ranks=ranks))
    vectors = np.load(next((suite.folder / "space").glob("generation-*/vectors-0.npy")))
    suite.check(np.allclose(vectors.conj().T @ vectors, np.eye(vectors.shape[1]), atol=1e-5), "the vectors are not orthonormal")
    run = suite.run(*problem.words("X.npy", *making))
    suite.check(run.status == 74 and "space/manifest.json: names what an earlier run saved" in run.errors, run.status, run.errors)
    b = problem.b @ np.random.default_rng(8).standard_normal((3, 5))
    np.save(suite.folder / "others.npy", b.astype(problem.b.dtype))
    words = ("solve", "--matrix", f"{problem.name}_A.npy", "--rhs", "others.npy", "--output", "X.npy", "--damp", "0.2", "--report", "r.json")
    run = suite.run(*words, "--space", "space", "--grid", "1x3", ranks=3)
    if suite.succeeded(run):
        columns = suite.report("r.json", "solve", 3, (1, 3))["columns"]
        suite.check([column["iterations"] for column in columns] == [0] * 5, "iterations", columns)
        exact = np.linalg.solve(problem.A.conj().T @ problem.A + 0.04 * np.eye(problem.A.shape[1]), problem.A.conj().T @ b)
        suite.close(np.load(suite.folder / "X.npy"), exact, 1e-6 * np.abs(exact).max(), "other data")
    for more, status, text in ((("--space", "nowhere"), 65, "there is no manifest.json"), (("--space", "space", "--matrix", "others.npy"), 65, "holds a solution space of a"),
                               (("--space", "space", "--initial", "X.npy"), 2, "--space and --initial exclude each other"),
                               (("--space", "space", "--checkpoint", "c"), 2, "--space and --checkpoint exclude each other"),
                               (("--space", "space", "--solver", "lsqr"), 2, "--space is for cgls, not for lsqr")):
        given = words if "--matrix" not in more else ("solve", "--rhs", "others.npy", "--output", "X.npy")
        run = suite.run(*given, *more)
        suite.check(run.status == status and text in run.errors, more, run.status, run.errors)


def check_space(suite, full):
    """One space for three right-hand sides: X, curves and choices are those of the singular value decomposition."""
    for name, m, n, dtype, ranks, grid in (("three_tall", 60, 40, "f64", 2, (2, 1)), ("three_wide", 30, 50, "c64", 4, (2, 2)))[: 2 if full else 1]:
        problem, single = Problem(suite, name, m, n, dtype, columns=3), dtype == "c64"
        damps = np.geomspace(0.1, 1, 15) if single else DAMPS
        of_all = [problem.solutions(damps, np.repeat(problem.b[:, j:j + 1], 15, 1)) for j in range(3)]
        residuals = np.array([np.linalg.norm(problem.b[:, j:j + 1] - problem.A @ x, axis=0) for j, x in enumerate(of_all)])
        noise = (residuals[:, 9].max() + residuals[:, 10].min()) / 2
        expected = [int(np.flatnonzero(residuals[j] <= noise)[-1]) for j in range(3)]
        run = suite.run(*problem.words("X.npy", "--damps", f"{damps[0]}:1:15", "--sweep", "space", "--choose", "discrepancy", "--noise", noise, "--report",
                                       "r.json", "--curve", "curve.csv", "--grid", f"{grid[0]}x{grid[1]}"), ranks=ranks)
        if not suite.succeeded(run):
            continue
        report, X = suite.report("r.json", "solve", ranks, grid), np.load(suite.folder / "X.npy")
        bound = 1e-2 if single else 1e-6
        suite.close(X, np.array([x[:, k] for x, k in zip(of_all, expected)]).T, bound * np.abs(X).max(), "solutions", name)
        found = report["sweep"]
        suite.check(found["chosen"] == expected and found["dampings"] == 15, "choices", found, expected)
        suite.check([column["damp"] for column in report["columns"]] == [float(f"{damps[0]}") * (1 / float(f"{damps[0]}")) ** (k / 14) for k in expected]
                    or np.allclose([column["damp"] for column in report["columns"]], damps[expected]), "dampings", report["columns"])
        suite.check(0 < found["space"]["dimension"] <= min(m, n) and found["space"]["end"] in ("converged", "complete")
                    and found["space"]["products"] <= 2 * found["space"]["dimension"] + 3 and report["algorithm"] == "stationary-a", "space", found)
        suite.check("one space of" in run.output and "dampings chosen by discrepancy" in run.output, "summary", run.output)
        with open(suite.folder / "curve.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        suite.check([int(row["column"]) for row in rows] == [0] * 15 + [1] * 15 + [2] * 15, "columns of the curves", rows[:1])
        suite.close(np.array([float(row["residual_norm"]) for row in rows]).reshape(3, 15), residuals, bound * residuals, "residuals", name)
        suite.close(np.array([float(row["x_norm"]) for row in rows]).reshape(3, 15), np.array([np.linalg.norm(x, axis=0) for x in of_all]),
                    bound * np.abs(X).max() * 10, "norms", name)
        suite.check([k for k, row in enumerate(rows) if row["chosen"] == "1"] == [k + 15 * j for j, k in enumerate(expected)], "chosen in the curves")
        # The same from a space that ends where it would cost more than its columns.
        run = suite.run(*problem.words("X_auto.npy", "--damps", f"{damps[0]}:1:15", "--sweep", "auto", "--choose", "discrepancy", "--noise", noise, "--report",
                                       "r.json", "--grid", f"{grid[0]}x{grid[1]}"), ranks=ranks)
        if suite.succeeded(run):
            found = suite.report("r.json", "solve", ranks, grid)["sweep"]
            suite.close(np.load(suite.folder / "X_auto.npy"), X, bound * np.abs(X).max(), "solutions of auto", name)
            suite.check(found["chosen"] == expected and found["space"]["end"] in ("converged", "complete", "cost_limit")
                        and (found["space"]["rest"]["pairs"] > 0) == (found["space"]["end"] == "cost_limit"), "choices of auto", found, expected)
            suite.check("pairs of right-hand side and damping" in run.output, "summary", run.output)
        # The corners are those of the exact curves, by a space and by columns.
        norms = np.array([np.linalg.norm(x, axis=0) for x in of_all])
        corners = [corner(damps, residuals[j], norms[j]) for j in range(3)]
        for way in ("space", "auto"):
            run = suite.run(*problem.words("X.npy", "--damps", f"{damps[0]}:1:15", "--sweep", way, "--choose", "lcurve", "--report", "r.json", "--grid",
                                           f"{grid[0]}x{grid[1]}"), ranks=ranks)
            if suite.succeeded(run):
                suite.check(suite.report("r.json", "solve", ranks, grid)["sweep"]["chosen"] == corners, "corners", way, run.output, corners)
    check_saved_space(suite, problem, ranks, noise)
    # Nothing to choose for any: the smallest D is taken, and the status says so.
    run = suite.run(*problem.words("X.npy", "--damps", RANGE, "--sweep", "space", "--choose", "discrepancy", "--noise", "1e-9", "--report", "r.json"))
    suite.check(run.status == 1 and "no damping was chosen for 3 of 3 right-hand sides, which have the smallest" in run.errors, run.status, run.errors)
    columns = json.loads((suite.folder / "r.json").read_text(encoding="utf-8"))["columns"]
    suite.check(all(np.isclose(column["damp"], 3e-3) for column in columns), columns)
    run = suite.run(*problem.words("X.npy", "--damps", RANGE, "--sweep", "space", "--choose", "discrepancy", "--noise", "1e9"))
    suite.check(run.status == 0 and any("--choose discrepancy chose the damping 1 for column 0: this is at an end of the range" in line
                                        and "3 of 3 right-hand sides" in line for line in run.warning_lines), run.status, run.errors)
    for words, text in ((["--solver", "lsqr"], "--sweep space is for cgls, not for lsqr"), (["--choose", "none"], "none"),
                        (["--algorithm", "summa"], "needs --algorithm stationary-a"), (["--space-dimension", "0"], "--space-dimension"), (["--batch", "1"], "--sweep space and --batch exclude each other"),
                        (["--initial", f"{problem.name}_b.npy"], "--sweep space and --initial exclude each other")):
        run = suite.run(*problem.words("no.npy", "--damps", RANGE, "--sweep", "space", *([] if "--choose" in words else ["--choose", "lcurve"]), *words))
        suite.check(run.status == 2 and text in run.errors, words, run.status, run.errors)
    words = problem.words("limited.npy", "--damps", RANGE, "--sweep", "space", "--choose", "lcurve", "--space-dimension", "6", "--report", "r.json")
    run = suite.run(*words)  # curves of so few vectors have no corner
    if suite.succeeded(run, status=1):
        found = suite.report("r.json", "solve", 1, (1, 1))["sweep"]["space"]
        suite.check(found["end"] == "dimension_limit" and found["dimension"] <= 6, "limit", found)
    # cgls solves those that the limit leaves, so the curves are complete.
    of_all = [problem.solutions(DAMPS, np.repeat(problem.b[:, j:j + 1], 15, 1)) for j in range(3)]
    run = suite.run(*["auto" if word == "space" else word for word in words], "--curve", "curve.csv")
    if suite.succeeded(run):
        found = suite.report("r.json", "solve", 1, (1, 1))["sweep"]["space"]
        suite.check(found["end"] in ("dimension_limit", "cost_limit") and found["dimension"] <= 6 and 0 < found["rest"]["pairs"] <= 45
                    and found["rest"]["products"] > 0 and f"cgls solved the other {found['rest']['pairs']} pairs" in run.output, "rest", found, run.output)
        with open(suite.folder / "curve.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        suite.close(np.array([float(row["x_norm"]) for row in rows]).reshape(3, 15), np.array([np.linalg.norm(x, axis=0) for x in of_all]), 1e-5, "curves of auto")
        suite.check(all(row["reason"] == "converged" for row in rows) and "error_bound" not in rows[0], "verdicts of auto")
    run = suite.run(*problem.words("bounded.npy", "--damps", RANGE, "--sweep", "space", "--choose", "lcurve", "--sigma-min", "0", "--curve", "curve.csv"))
    if suite.succeeded(run):
        with open(suite.folder / "curve.csv", encoding="utf-8") as file:
            bounds = np.array([float(row["error_bound"]) for row in csv.DictReader(file)]).reshape(3, 15)
        sizes = np.array([np.linalg.norm(x, axis=0) for x in of_all])
        suite.check((bounds > 0).all() and (bounds <= 1e-3 * sizes).all(), "bounds of errors", (bounds / sizes).max())
    run = suite.run(*words, "--dry-run")
    # V has 6 vectors and a block of 3, in a buffer of 33; U and its candidate 3 each; then small matrices and a panel.
    columns, item = 3, problem.A.dtype.itemsize
    m, n = problem.A.shape
    size = (33 * n + 2 * 33 * columns + n * columns + 2 * m * columns + 2 * columns * columns + m * columns) * item
    line = next((line for line in run.output.splitlines() if line.startswith("vectors of the space")), "")
    suite.check(run.status == 0 and line.split()[-2:] == [f"{size / 1024:.1f}", "KiB"], "memory of a space", size, line, run.output, run.errors)
    run = suite.run(*problem.words("no.npy", "--damps", RANGE, "--space-dimension", "6", "--choose", "lcurve"))
    suite.check(run.status == 2 and "--space-dimension needs --sweep space" in run.errors, run.status, run.errors)
    run = suite.run(*problem.words("no.npy", "--damps", RANGE, "--sweep", "space"))
    suite.check(run.status == 2 and "--sweep space needs --choose" in run.errors, run.status, run.errors)
    run = suite.run(*problem.words("no.npy", "--damps", RANGE, "--sweep", "auto", "--choose", "lcurve", "--batch", "1"))
    suite.check(run.status == 2 and "--sweep auto and --batch exclude each other" in run.errors, run.status, run.errors)


def check_direct(suite, full):
    """One factor for three right-hand sides and all dampings: curves, the exact GCV function, choices and X are those of the singular value decomposition."""
    for name, m, n, dtype, ranks, grid, more in (("factor_tall", 60, 40, "f64", 2, (2, 1), ()), ("factor_wide", 30, 50, "c128", 4, (2, 2), ()),
                                                 ("factor_summa", 60, 40, "c64", 3, (1, 3), ("--algorithm", "summa")))[: 3 if full else 2]:
        problem, single = Problem(suite, name, m, n, dtype, columns=3), dtype == "c64"
        damps = np.geomspace(0.1, 1, 15) if single else DAMPS
        bound = 1e-3 if single else 1e-9
        of_all = [problem.solutions(damps, np.repeat(problem.b[:, j:j + 1], 15, 1)) for j in range(3)]
        norms = {"residual_norm": np.array([np.linalg.norm(problem.b[:, j:j + 1] - problem.A @ x, axis=0) for j, x in enumerate(of_all)]),
                 "x_norm": np.array([np.linalg.norm(x, axis=0) for x in of_all])}
        norms["gcv"] = (norms["residual_norm"] / (m - (problem.sigma[:, None] ** 2 / (problem.sigma[:, None] ** 2 + damps ** 2)).sum(0))) ** 2
        noise = (norms["residual_norm"][:, 9].max() + norms["residual_norm"][:, 10].min()) / 2
        choices = {"gcv": norms["gcv"].argmin(1), "discrepancy": [np.flatnonzero(residuals <= noise)[-1] for residuals in norms["residual_norm"]],
                   "lcurve": [corner(damps, *of_column) for of_column in zip(norms["residual_norm"], norms["x_norm"])]}
        for rule, expected in choices.items():
            run = suite.run(*problem.words("X.npy", "--damps", f"{damps[0]}:1:15", "--sweep", "direct", "--choose", rule, *(("--noise", noise) if rule == "discrepancy" else ()),
                                           "--report", "r.json", "--curve", "curve.csv", "--grid", f"{grid[0]}x{grid[1]}", *more), ranks=ranks)
            if not suite.succeeded(run):
                continue
            report, X = suite.report("r.json", "solve", ranks, grid), np.load(suite.folder / "X.npy")
            suite.check(report["sweep"]["chosen"] == list(expected) and report["sweep"]["factor"]["rank"] == min(m, n), "choices", name, rule, report["sweep"], expected)
            suite.close(X, np.array([x[:, k] for x, k in zip(of_all, expected)]).T, bound * np.abs(X).max(), "solutions", name, rule)
            suite.check(report["solver"] == "direct" and "one factor of rank" in run.output and f"dampings chosen by {rule}" in run.output, "summary", run.output)
            with open(suite.folder / "curve.csv", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            for key in ("residual_norm", "x_norm", *(("gcv",) if rule == "gcv" else ())):
                suite.close(np.array([float(row[key]) for row in rows]).reshape(3, 15), norms[key], bound * norms[key], key, name, rule)
    words = ("--damps", RANGE, "--sweep", "direct", "--choose", "discrepancy", "--noise")
    run = suite.run(*problem.words("X.npy", *words, "1e-9", "--solver", "auto", "--report", "r.json"))
    suite.check(run.status == 1 and "no damping was chosen for 3 of 3 right-hand sides, which have the smallest" in run.errors, run.status, run.errors)
    run = suite.run(*problem.words("X.npy", *words, "1e-9", "--dry-run"))
    suite.check(run.status == 0 and "solver's vectors" in run.output, "a plan", run.output, run.errors)
    for more, text in ((["--solver", "cgls"], "--sweep direct is for direct, not for cgls"), (["--batch", "1"], "--sweep direct and --batch exclude each other"),
                       (["--initial", f"{problem.name}_b.npy"], "--sweep direct and --initial exclude each other"), (["--checkpoint", "c"], "--sweep direct and --checkpoint exclude each other")):
        run = suite.run(*problem.words("no.npy", *words, "1", *more))
        suite.check(run.status == 2 and text in run.errors, more, run.status, run.errors)
    hidden = Problem(suite, "factor_single", 30, 50, "c64")
    run = suite.run(*hidden.words("no.npy", "--damps", "1e-6:1:5", "--sweep", "direct", "--choose", "gcv", "--algorithm", "summa"))
    suite.check(run.status == 2 and "rounding hides the singular values that decide at D = " in run.errors, run.status, run.errors)
    run = suite.run(*problem.words("no.npy", "--damps", RANGE, "--sweep", "direct"))
    suite.check(run.status == 2 and "--sweep direct needs --choose" in run.errors, run.status, run.errors)
    suite.check(not (suite.folder / "no.npy").exists(), "a refused run wrote something")


def check_tolerances(suite):
    """Each column, or each damping, ends by its own."""
    problem, tolerances = Problem(suite, "three", 60, 40, columns=3), np.array([1e-2, 1e-9, 1e-5])
    one = Problem(suite, "tall", 60, 40)
    np.save(suite.folder / "tolerances.npy", tolerances)
    np.save(suite.folder / "three_damps.npy", np.full(3, 0.1))
    for case, more, ranks in ((problem, ("--damp", "0.1"), 2), (one, ("--damps", "three_damps.npy"), None)):
        run = suite.run(*case.words("X.npy", *more, "--tolerances", "tolerances.npy", "--report", "r.json"), ranks=ranks)
        if not suite.succeeded(run):
            continue
        report, X = json.loads((suite.folder / "r.json").read_text(encoding="utf-8")), np.load(suite.folder / "X.npy")
        tested = np.linalg.norm(case.A.T @ (case.b - case.A @ X) - 0.01 * X, axis=0) / np.linalg.norm(case.A.T @ case.b, axis=0)
        columns = report["columns"]
        suite.check([column["tolerance"] for column in columns] == list(tolerances) and "tolerance" not in report["options"], "report", columns)
        suite.check((tested <= tolerances).all() and (tested > 1e-3 * tolerances).all(), "norms", tested, tolerances)
        iterations = [column["iterations"] for column in columns]
        suite.check(iterations[0] < iterations[2] < iterations[1], "iterations", iterations)


def check_restart(suite, full):
    """A sweep that is suspended ends with the same bits, and only with the same dampings."""
    problem = Problem(suite, "tall", 60, 40)
    more = ["--choose", "gcv", "--grid", "1x2", "--algorithm", "block"]
    for solver in ("cgls", "lsqr") if full else ("cgls",):
        _, whole, _ = sweep(suite, problem, *more, "--solver", solver, ranks=2, grid=(1, 2))
        suite.succeeded(suite.run(*problem.words("part.npy", "--damps", RANGE, "--solver", solver, *more, "--checkpoint", f"saved_{solver}",
                                                 iterations=7), ranks=2), 3)
        _, again, _ = sweep(suite, problem, *more, "--solver", solver, "--restart", f"saved_{solver}", ranks=2, grid=(1, 2))
        suite.check(whole is not None and again is not None and whole.tobytes() == again.tobytes(), "the restart ends with other bits", solver)
    run = suite.run(*problem.words("other.npy", "--damps", "3e-3:2:15", *more, "--restart", "saved_cgls"), ranks=2)
    suite.check(run.status == 65 and re.search(r"with damp \S+ in entry 1, but here it is \S+:", run.errors), run.status, run.errors)


def check_refusals(suite, full):
    problem = Problem(suite, "tall", 60, 40)
    Problem(suite, "two", 60, 40, columns=2)
    save = lambda name, values: np.save(suite.folder / name, values)
    save("negative.npy", np.array([1.0, -0.5]))
    save("nan.npy", np.array([1.0, 2, np.nan]))
    save("table.npy", np.ones((2, 2)))
    save("complex.npy", np.ones(2, complex))
    save("none.npy", np.ones(0))
    save("pair.npy", np.ones(2))
    cases = [
        (65, "negative.npy holds -0.5 at 1, but a damping is a finite number from 0 on", ["--damps", "negative.npy"]),
        (65, "nan.npy holds nan at 2", ["--damps", "nan.npy"]),
        (65, "table.npy is 2 x 2, but dampings are a vector", ["--damps", "table.npy"]),
        (65, "complex.npy holds c128, but dampings are real", ["--damps", "complex.npy"]),
        (65, "none.npy holds no numbers", ["--damps", "none.npy"]),
        (65, "nothing.npy", ["--damps", "nothing.npy"]),
        (65, "15 dampings were given, but two_b.npy has 2 right-hand sides", ["--damps", RANGE], "two_b.npy"),
        (65, "--choose takes one right-hand side", ["--damps", "1:2:2", "--choose", "lcurve"], "two_b.npy"),
        (2, "cannot begin or end at 0", ["--damps", "0:1:3"]),
        (2, "'-1' is no finite number from 0 on", ["--damps=-1:1:3"]),
        (2, "'1' is no whole number from 2 on", ["--damps", "1:2:1"]),
        (2, "--damps", ["--damps", RANGE, "--damp", "1"]),
        (2, "minres, bounded, and means nothing to block-cgls", ["--damps", RANGE, "--solver", "block-cgls"]),
        (2, "means nothing to fista", ["--damps", RANGE, "--solver", "fista", "--lambda", "1"]),
        (2, "--damps and --precondition exclude each other", ["--damps", RANGE, "--precondition", "column-norms"]),
        (2, "need each other", ["--damps", RANGE, "--choose", "discrepancy"]),
        (2, "need each other", ["--damps", RANGE, "--choose", "gcv", "--noise", "1"]),
        (2, "--save requires --choose", ["--damps", RANGE, "--save", "chosen"]),
        (2, "--choose", ["--choose", "lcurve"]),
        (2, "--choose gcv is for least squares", ["--damps", RANGE, "--choose", "gcv", "--solver", "cg"]),
        (2, "'1:2' is no range D1:D2:N: it lacks the number of dampings", ["--damps", "1:2"]),
        (2, "--curve requires --damps", ["--curve", "c.csv"]),
        (65, "negative.npy holds -0.5 at 1, but a tolerance is a finite number from 0 on", ["--tolerances", "negative.npy"]),
        (65, "pair.npy holds 2 tolerances, but there must be 1, one for each right-hand side", ["--tolerances", "pair.npy"]),
        (65, "pair.npy holds 2 tolerances, but there must be 15, one for each damping", ["--damps", RANGE, "--tolerances", "pair.npy"]),
        (2, "--tolerance excludes --tolerances", ["--tolerances", "pair.npy", "--tolerance", "1e-3"]),
    ]
    for status, text, words, *rhs in cases if full else cases[::3]:
        run = suite.run(*problem.words("no.npy", *words, rhs=rhs[0] if rhs else None))
        suite.check(run.status == status and text in run.errors, status, text, "but", run.status, run.errors)
    suite.check(not (suite.folder / "no.npy").exists(), "a refused run wrote something")


def test(suite, full):
    check_solutions(suite, full)
    check_files(suite)
    check_choices(suite, full)
    check_space(suite, full)
    check_direct(suite, full)
    check_tolerances(suite)
    check_restart(suite, full)
    check_refusals(suite, full)


if __name__ == "__main__":
    program.main(test, __doc__)
