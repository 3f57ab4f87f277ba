# SPDX-License-Identifier: BSD-3-Clause
"""Checks that errors of x are within the bounds that `gridlops solve` gives, whoever says what the smallest singular value is not
below. bounds_test.py LAUNCH PROGRAM"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import Problem, check_reasons, conditioned, damped_solution  # noqa: E402


def check_error_bounds(suite, rng):
    """With --sigma-min the report bounds the error of every column, and the last line says how large it can be."""
    problem = Problem(suite, conditioned(rng, 60, 40, "f64", condition=1e3), program.random_matrix(rng, (60, 4), "f64"))
    smallest = np.linalg.svd(problem.A, compute_uv=False)[-1]
    for solver, damp, sigma, more in [("cgls", 0.02, 0, []), ("lsqr", 0, 0.9 * smallest, []), ("block-cgls", 0.02, 0.9 * smallest, []),
                                      ("cgls", 0.02, 0, ["--precondition", "column-norms"]), ("lsmr", 0.02, 0, ["--batch", 2]),
                                      ("direct", 0.02, 0, []), ("direct", 0, 0.9 * smallest, [])]:
        for iterations, status in [(5, 0 if solver == "direct" else 3), (3000, 0)]:
            damping = ["--damp", damp] if damp else []
            run, X, report = problem.solve("--solver", solver, *damping, "--sigma-min", sigma, "--tolerance", 1e-9, "--iterations", iterations,
                                           *more, status=status)
            if report is None:
                continue
            expected = damped_solution(problem.A, problem.B, damp)
            errors, bounds = np.linalg.norm(X - expected, axis=0), np.array([column["error_bound"] for column in report["columns"]])
            relative = max(bounds / np.linalg.norm(X, axis=0))
            suite.check((errors <= bounds).all(), "errors", errors, "above their bounds", bounds, solver, damp, iterations)
            suite.check(f"|x - x*| is at most {relative:.1e} |x|" in run.output, "does not say", relative, run.output[-300:])
            suite.check(status == 3 or relative < 1e-3, "bounds of what is solved", bounds, solver)
    for solver, more in [("cgls", []), ("lsqr", ["--batch", 3]), ("lsmr", []), ("block-cgls", []), ("cgls", ["--one-pass", "on", "--algorithm", "stationary-a"])]:
        taken = {}
        for error in (1e-2, 1e-5):
            run, X, report = problem.solve("--solver", solver, "--damp", 0.02, "--error", error, "--iterations", 3000, *more)
            if report is None:
                continue
            check_reasons(suite, report, ["converged"], solver, error)
            expected = damped_solution(problem.A, problem.B, 0.02)
            errors, norms = np.linalg.norm(X - expected, axis=0), np.linalg.norm(X, axis=0)
            bounds = np.array([column["error_bound"] for column in report["columns"]])
            suite.check((errors <= bounds).all() and (bounds <= error * norms * (1 + 1e-9)).all(), "errors", errors / norms, "bounds", bounds / norms, solver)
            taken[error] = report["iterations"]
        suite.check(len(taken) < 2 or taken[1e-2] < taken[1e-5], "iterations", taken, solver)
    most = np.linalg.norm(problem.A) / np.sqrt(40)
    run, _, _ = problem.solve("--damp", 0.02, "--sigma-min", 1.001 * most, status=2)
    suite.check("is at most" in run.errors, "an impossible sigma:", run.errors[-300:])
    left = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    definite = Problem(suite, (left * np.geomspace(1, 0.01, 30)) @ left.T, program.random_matrix(rng, (30, 3), "f64"))
    for damp, sigma, given in ((0, 0.0099, []), (0.3, 0, ["--damp", 0.3])):
        expected = np.linalg.solve(definite.A + damp**2 * np.eye(30), definite.B)
        for more, status in ((["--error", 1e-3], 0), (["--iterations", 3], 3)):
            run, X, report = definite.solve("--solver", "cg", "--sigma-min", sigma, *given, *more, status=status)
            if report is not None:
                errors, bounds = np.linalg.norm(X - expected, axis=0), np.array([column["error_bound"] for column in report["columns"]])
                suite.check((errors <= bounds).all() and (status == 3 or (bounds <= 1e-3 * np.linalg.norm(X, axis=0) * (1 + 1e-9)).all()), "cg", errors, bounds)
    problem = Problem(suite, problem.A, np.where(np.arange(4) == 2, np.nan, problem.B))
    run, _, report = problem.solve("--damp", 0.02, "--sigma-min", 0, status=3)
    suite.check("nothing bounds that of column 2" in run.output, "does not say what has no bound:", run.output[-300:])
    suite.check(report is None or report["columns"][2]["error_bound"] is None, "a bound of NaN", report)
    _, _, report = problem.solve("--damp", 0.02, status=3)
    suite.check(report is None or "error_bound" not in report["columns"][0], "a bound that nobody asked for", report)
    # A norm of A beyond the range of double precision bounds nothing, and loses nothing.
    A, B = rng.uniform(-1, 1, (30, 20)), rng.standard_normal((30, 2))
    np.save(suite.folder / "A.npy", 1.5e308 * A)
    np.save(suite.folder / "B.npy", 1.5e300 * B)
    (suite.folder / "X.npy").unlink(missing_ok=True)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", "--history", "H.csv", "--sigma-min", 1e306, ranks=2)
    if suite.check((suite.folder / "X.npy").exists(), "X is lost", run.errors):
        suite.close(1e8 * np.load(suite.folder / "X.npy"), np.linalg.lstsq(A, B, rcond=None)[0], 1e-9, "X of a large A")
    if suite.succeeded(run):
        report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
        suite.check([column["error_bound"] for column in report["columns"]] == [None, None] and "nothing bounds" in run.output, "bounds", report["columns"], run.output)


def check_probable_bounds(suite, rng):
    """Where a sketch of A says what no singular value is below, that is so, and bounds are called probable."""
    for dtype, ranks, grid in (("f64", 2, None), ("c128", 3, (3, 1))):
        problem = Problem(suite, conditioned(rng, 170, 40, dtype, condition=100), program.random_matrix(rng, (170, 3), dtype))
        smallest, expected = np.linalg.svd(problem.A, compute_uv=False)[-1], damped_solution(problem.A, problem.B, 0)
        for words, least in ((["--error", 1e-3], 0), (["--tolerance", 1e-9], 0), (["--damp", 0.1], 0.1)):
            run, X, report = problem.solve("--sigma-min", "probable", *words, "--iterations", 1000, ranks=ranks, grid=grid)
            if report is None:
                continue
            errors = np.linalg.norm(X - (damped_solution(problem.A, problem.B, least) if least else expected), axis=0)
            norms, bounds = np.linalg.norm(X, axis=0), np.array([column["error_bound"] for column in report["columns"]])
            figures = report["figures"]
            suite.check(0.2 * smallest < figures["sigma_min"] <= smallest, "sigma", figures, smallest)
            suite.check((figures["sketch_rows"], figures["sketch_failure"], report["options"]["sigma_min"]) == (160, 1e-9, "probable"), figures, report["options"])
            suite.check((errors <= bounds).all() and (least or "--error" not in words or (bounds <= 1e-3 * norms * (1 + 1e-9)).all()), errors, bounds)
            gradients = np.array([column["normal_residual_norm"] for column in report["columns"]])
            by_gradients = gradients / (figures["sigma_min"]**2 + least**2)  # quadrature makes them smaller
            suite.check((bounds <= by_gradients + 1e-3 * max(bounds)).all(), "bounds by the sketch", bounds, by_gradients)
            suite.check("is probably at most" in run.output and "wrong at most once in 1e+09 times" in run.output, "is not called probable", run.output[-400:])
    singular = Problem(suite, np.hstack([problem.A[:, :39], problem.A[:, :1]]), problem.B)
    run, _, report = singular.solve("--sigma-min", "probable", "--iterations", 1000)
    suite.check("nothing bounds that of column 0" in run.output and report["figures"]["sigma_min"] == 0, run.output[-300:], report)
    run, _, _ = singular.solve("--sigma-min", "probable", "--error", 1e-2, status=2)
    suite.check("only --damp bounds errors" in run.errors, run.errors)
    singular.solve("--sigma-min", "probable", "--error", 1e-2, "--damp", 0.1)


def check_proven_bounds(suite, rng):
    """With --sigma-min proven bounds hold for certain, for square A, too, and wherever A is."""
    for shape, dtype, condition, words in (((90, 90), "f64", 1e4, []), ((50, 40), "c128", 1e3, ["--algorithm", "block"]),
                                           ((60, 40), "f64", 1e6, ["--storage", "disk", "--solver", "direct"])):
        problem = Problem(suite, conditioned(rng, *shape, dtype, condition=condition), program.random_matrix(rng, (shape[0], 3), dtype))
        smallest, expected = np.linalg.svd(problem.A, compute_uv=False)[-1], damped_solution(problem.A, problem.B, 0)
        run, X, report = problem.solve("--sigma-min", "proven", *words, "--iterations", 5000)
        if report is None:
            continue
        bounds, sigma = np.array([column["error_bound"] for column in report["columns"]]), report["figures"]["sigma_min"]
        suite.check(0.9 * smallest < sigma <= smallest * (1 + 1e-12) and report["options"]["sigma_min"] == "proven", "sigma", sigma, smallest, report["options"])
        suite.check((np.linalg.norm(X - expected, axis=0) <= bounds + 1e-13 * condition * np.linalg.norm(expected, axis=0)).all(), bounds)
        suite.check("it is proven that no singular value of A is below" in run.output, run.output[-400:])
    singular = Problem(suite, np.hstack([problem.A[:, :39], problem.A[:, :1]]), problem.B)
    run, _, report = singular.solve("--sigma-min", "proven", "--iterations", 20000)
    suite.check("nothing bounds that of column 0" in run.output and report["figures"]["sigma_min"] == 0, run.output[-300:], report)
    run, _, _ = singular.solve("--sigma-min", "proven", "--error", 1e-2, status=2)
    suite.check("what --sigma-min proven does not find" in run.errors, run.errors)
    Problem(suite, problem.A, problem.B).solve("--algorithm", "summa", "--iterations", 1, "--checkpoint", "summa", grid=(1, 2), status=3)
    run, _, _ = problem.solve("--restart", "summa", "--sigma-min", "proven", grid=(1, 2), status=2)
    suite.check("--sigma-min proven needs --algorithm stationary-a or block, and not summa" in run.errors, run.errors)
    run, _, _ = Problem(suite, problem.A[:30], problem.B[:30]).solve("--sigma-min", "proven", status=2)
    suite.check("--sigma-min is proven, but A is 30 x 40" in run.errors, run.errors)


def check_sketch_memory(suite, rng):
    """--dry-run and the report count a sketch, which is most of what a run takes beside a small one."""
    if program.DEVICE != "cpu":
        return
    peaks = []
    for rows, cols in ((2400, 600), (24, 6)):
        Problem(suite, program.random_matrix(rng, (rows, cols), "c64"), program.random_matrix(rng, (rows, 1), "c64"))
        words = ("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--grid", "2x1", "--damp", "1e3", "--sigma-min", "probable")
        plan = suite.run(*words, "--dry-run", ranks=2)
        peaks.append(suite.most_memory(*words, "--report", f"{cols}.json", "--quiet", ranks=2))
        line = next((line for line in plan.output.splitlines() if line.startswith("for --sigma-min, before the solver's vectors")), "")
        suite.check(suite.succeeded(plan) and (cols == 6 or line.endswith("MiB")), "the plan has no sketch", plan.output)
    planned = json.loads((suite.folder / "600.json").read_text(encoding="utf-8"))["memory_bytes"]["planned"]
    suite.check(planned[0] - planned[1] > 4 * 600**2 * 16 and abs(peaks[0] - peaks[1] - planned[0]) < 0.1 * planned[0], "planned", planned, "but found", peaks)


def test(suite, _full):
    rng = np.random.default_rng(3)
    check_error_bounds(suite, rng)
    check_probable_bounds(suite, rng)
    check_proven_bounds(suite, rng)
    check_sketch_memory(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
