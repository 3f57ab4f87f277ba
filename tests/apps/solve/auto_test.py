# SPDX-License-Identifier: BSD-3-Clause
"""Checks which solver `gridlops solve --solver auto` takes, when direct takes its place, and what it says of that. auto_test.py LAUNCH PROGRAM"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from solve_test import Problem, conditioned, damped_solution  # noqa: E402


def check_chosen_solvers(suite, rng):
    """--solver auto takes direct where a factor pays off, block-cgls where right-hand sides can share a space, else cgls; it says why, and goes on
    with what it took."""
    problem = Problem(suite, conditioned(rng, 600, 400, "f64", condition=10), program.random_matrix(rng, (600, 4), "f64"))
    expected = damped_solution(problem.A, problem.B, 0)
    np.save(suite.folder / "b.npy", problem.B[:, :1])
    np.save(suite.folder / "many.npy", np.tile(problem.B, 26)[:, :101])
    scaled = ["--precondition", "column-norms"]
    # A machine on which a factor takes weeks: no solver is too slow.
    program.machine_file(suite, "slow.json", flops=1e2, read=1e6, copied=1e6)
    for words, solver, why in (([], "block-cgls", "4 right-hand sides can share a space; the model predicts"), (["--batch", 4], "block-cgls", "4 right-hand sides"),
                               (["--batch", 3], "cgls", "only 3 of"), (["--rhs", "b.npy"], "cgls", "only 1 of"),
                               (["--rhs", "many.npy"], "direct", "s for a factor with"), (["--rhs", "many.npy", "--batch", 10], "direct", "s for a factor"),
                               (["--rhs", "many.npy", *scaled], "cgls", "a block of 101"), (["--rhs", "many.npy", "--batch", 100, *scaled], "block-cgls", "100 right-hand sides"),
                               (["--one-pass", "on"], "one-pass-cgls", "--one-pass"), (["--one-pass", "auto"], "cgls", "--one-pass"),
                               (["--algorithm", "summa"], "cgls", "--algorithm"), (["--column-stable"], "cgls", "--column-stable"), (["--algorithm", "stationary-a"], "block-cgls", "4 right-hand sides"),
                               (["--damps", "0.1:1:4"], "cgls", "dampings of their own"),
                               (["--damps", "0.1:1:3", "--sweep", "space", "--choose", "lcurve"], "cgls", "a space is asked for")):
        named = ["--rhs", "B.npy"] if "--rhs" not in words else []
        run = suite.run("solve", "--matrix", "A.npy", *named, "--output", "X.npy", "--report", "R.json", "--solver", "auto", "--iterations", 1000,
                        "--machine", "slow.json", *words, ranks=2)
        if not suite.check(run.status in (0, 1), run.command, run.status, run.errors):
            continue
        report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
        suite.check((report["solver"], report["options"]["solver"]) == (solver, "auto") and why in report["options"]["why"], words, report["solver"], report["options"])
        suite.check(f"--solver auto: {report['options']['why']}" in run.output, "does not say why", run.output)
        if "--damps" not in words:
            suite.close(np.load(suite.folder / "X.npy")[:, :4], expected[:, : len(report["columns"])], 1e-5, words)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--solver", "direct", ranks=2, environment={"GRIDLOPS_TRACE": "summary"})
    suite.check(run.status == 0 and "Gram matrix" in run.output + run.errors, "a factor that is not made of rows", run.output, run.errors)
    _, _, report = problem.solve("--iterations", 2, "--checkpoint", "chosen", status=3)
    suite.check(report is None or "why" not in report["options"], "a reason for a solver that was given", report)
    _, X, report = problem.solve("--solver", "auto", "--iterations", 1000, "--restart", "chosen")
    suite.check(report is None or (report["solver"], report["options"]["why"]) == ("cgls", "the run that goes on has it"), report)
    run, _, _ = problem.solve("--solver", "auto", "--atol", 0.1, status=2)
    suite.check("--atol is an option of --solver lsqr, lsmr" in run.errors, run.errors)


def check_changed_solvers(suite, rng):
    """--solver auto takes a factor when iterations have taken as long as one would by the model, here no time, or have reached their limit; X
    is that of direct, bit by bit. It says so before and after, and says where no factor takes the place of iterations."""
    program.machine_file(suite, "fast.json", flops=1e15, read=1e15, copied=1e15, call=1e-12, rate=1e15)
    program.machine_file(suite, "slow.json", flops=1e2, read=1e6, copied=1e6)
    fast, slow = ["--machine", "fast.json"], ["--machine", "slow.json"]
    for m, n, name in ((600, 400, "f64"), (60, 90, "c64")):
        problem = Problem(suite, conditioned(rng, m, n, name, condition=10), program.random_matrix(rng, (m, 2), name))
        np.save(suite.folder / "X0.npy", program.random_matrix(rng, (n, 2), name))
        for words in ([], ["--batch", 1], ["--damp", 0.3], ["--initial", "X0.npy"]):
            same = ["--algorithm", "stationary-a", *words]
            _, X, report = problem.solve("--solver", "auto", *fast, *same, grid=(1, 2))
            _, by_direct, _ = problem.solve("--solver", "direct", *same, grid=(1, 2))
            if X is None or by_direct is None:
                continue
            suite.check((X == by_direct).all() and report["solver"] == "direct", words, m, "X is not that of direct", report["solver"])
            figures, options = report["figures"], report["options"]
            suite.check(options["changed"].startswith("after 1 iterations in ") and "direct took the place of cgls: one more would exceed" in options["changed"], options)
            suite.check(0 < figures["direct_seconds_predicted"] < 1e-4 < figures["first_solver_seconds"] + 1 and figures["first_solver_iterations"] == 1, figures)
            suite.check("direct takes its place" in options["why"], options)
    run, _, report = problem.solve("--solver", "auto", "--iterations", 3, *slow)
    suite.check(report is None or (report["solver"] == "direct" and "a column had reached the limit of iterations" in report["options"]["changed"]), report and report["options"])
    run, _, report = problem.solve("--solver", "auto", "--checkpoint", "saved", *fast)
    suite.check(report is None or (report["solver"] == "cgls" and "no factor will take its place: a checkpoint belongs to one solver" in report["options"]["why"]), report)
    run, _, report = problem.solve("--solver", "auto", "--tolerance", 1e-3, *slow)
    suite.check(report is None or (report["solver"] == "cgls" and "changed" not in report["options"] and report["figures"]["direct_seconds_predicted"] > 1), report)
    # The report is about the solver that found X.
    tall = Problem(suite, conditioned(rng, 600, 400, "f64", condition=10), program.random_matrix(rng, (600, 2), "f64"))
    for words, first in (([], "one-pass-cgls with"), (["--one-pass", "off"], "cgls with")):
        run, _, report = tall.solve("--solver", "auto", "--iterations", 3, "--storage", "disk", *fast, *words)
        suite.check(first in run.output, run.output)
        suite.check(report is None or (report["solver"], report["options"]["one_pass"]) == ("direct", False), report and report["options"])
    # Columns on disks have no rows to make a good factor of: none follows, and who names direct is told why it fails.
    problem = Problem(suite, conditioned(rng, 60, 90, "f64", condition=1e7), program.random_matrix(rng, (60, 2), "f64"))
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--dry-run", "--storage", "disk", "--solver", "auto", *fast)
    suite.check("no factor will take its place: its columns would be read from the disks again" in run.output, run.output, run.errors)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--storage", "disk", "--solver", "direct", "--tolerance", 1e-12)
    suite.check(run.status == 3 and "of columns on disks a factor is that of A A^H, which squares" in run.errors, run.status, run.output, run.errors)
    # Products alone show no singular value below 1e-3 |A| in single precision: what needs one is not solved, and auto takes no such factor.
    np.save(suite.folder / "A.npy", np.array([[1, 0, 0], [0, 3e-4, 0]], dtype=np.float32))
    np.save(suite.folder / "B.npy", np.ones((2, 1), dtype=np.float32))
    wide = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--solver"]
    for words, hint in ((["--algorithm", "summa"], ""), (["--storage", "disk"], "of columns on disks a factor is that of A A^H")):
        run = suite.run(*wide, "direct", *words, ranks=2)
        suite.check(run.status == 3 and "stagnated" not in run.output and hint in run.errors, words, run.status, run.output, run.errors)
    for algorithm in ("summa", "stationary-b"):
        run = suite.run(*wide, "auto", "--algorithm", algorithm, *fast, ranks=2)
        suite.check(run.status == 0 and f"no factor will take its place: {algorithm} gives no columns of A" in run.output, run.status, run.output, run.errors)
        suite.close(np.load(suite.folder / "X.npy"), np.array([[1], [1 / np.float32(3e-4)], [0]]), 1, algorithm)
    # What may follow is in the plan: A has 66 MiB, and the factor as much again.
    A = np.zeros((3000, 2900))
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", A[:, :1])
    plan = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--dry-run", *fast, "--solver"]
    vectors = {}
    for solver in ("cgls", "direct", "auto"):
        run = suite.run(*plan, solver)
        suite.succeeded(run)
        vectors[solver] = next(line for line in run.output.splitlines() if line.startswith("solver's vectors"))
    suite.check(vectors["auto"] == vectors["direct"] != vectors["cgls"], vectors)
    suite.check("--solver auto: only 1 of the right-hand sides" in run.output and "direct takes its place" in run.output, run.output)
    run = suite.run(*plan, "auto", "--memory", 150 * 2**20)
    suite.check(run.status == 0 and "but a rank has no memory for it" in run.output and vectors["cgls"] in run.output, run.status, run.output, run.errors)


def test(suite, _full):
    rng = np.random.default_rng(2)
    check_chosen_solvers(suite, rng)
    check_changed_solvers(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
