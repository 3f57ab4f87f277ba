# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the program does with every option of a solver what the table in docs/solvers.md says: it is refused by solvers that do
not take it, and honoured or refused at a restart; reports have the values that runs used; `plan` refuses what `solve` refuses.
options_test.py LAUNCH PROGRAM"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2] / "rules")]
import program  # noqa: E402  (found by the line before)
from solver_options import PAGE, in_page  # noqa: E402

SWEEP = ["--rhs", "b.npy", "--damps", "0.1:1:4"]
# For each option the words of a run, of a restart with another value, and what both need besides.
CASES = {
    "iterations": (["--iterations", 3], ["--iterations", 7], []),
    "tolerance": ([], ["--tolerance", 1e-3], []),
    "tolerances": (["--tolerances", "T1.npy"], ["--tolerances", "T2.npy"], []),
    "atol": ([], ["--atol", 1e-3], []),
    "btol": ([], ["--btol", 1e-3], []),
    "conlim": (["--conlim", 1e8], ["--conlim", 1e9], []),
    "damp": (["--damp", 0.25], ["--damp", 0.5], []),
    "damp-relative": (["--damp-relative", 0.25], ["--damp-relative", 0.5], []),
    "damps": (["--damps", "0.25:1:3"], ["--damps", "0.5:1:3"], []),
    "choose": (["--choose", "lcurve"], ["--choose", "discrepancy", "--noise", 1], SWEEP),
    "noise": (["--noise", 1], ["--noise", 2], [*SWEEP, "--choose", "discrepancy"]),
    "save": (["--save", "all"], ["--save", "chosen"], [*SWEEP, "--choose", "discrepancy", "--noise", 1]),
    "lambda": (["--lambda", 0.25], ["--lambda", 0.5], []),
    "lambda-relative": (["--lambda-relative", 0.25], ["--lambda-relative", 0.5], []),
    "nonnegative": (["--upper", 0.5], ["--upper", 0.5, "--nonnegative"], []),
    "lower": (["--lower", -0.5], ["--lower", 0.25], []),
    "upper": (["--upper", 0.5], ["--upper", 0.25], []),
    "threshold": (["--threshold", "soft"], ["--threshold", "hard"], []),
    "step": (["--step", 0.001], ["--step", 0.002], []),
    "backtracking": ([], ["--backtracking"], []),
    "monotone": ([], ["--monotone"], []),
    "initial": ([], ["--initial", "X0.npy"], []),
    "precondition": ([], ["--precondition", "column-norms"], []),
    "one-pass": (["--one-pass", "off"], ["--one-pass", "on"], []),
    "weights": (["--weights", "W1.npy"], ["--weights", "W2.npy"], []),
    "holes": ([], ["--holes", "nan"], []),
    "misfit": ([], ["--misfit", "huber"], []),
    "misfit-scale": ([], ["--misfit-scale", 2], ["--misfit", "huber"]),
    "variances": ([], ["--variances", "V.npy"], []),
    "error": (["--error", 1e-3], ["--error", 1e-2], ["--damp", 0.25]),
    "sigma-min": (["--sigma-min", 0.5], ["--sigma-min", 0.25], []),
    "batch": ([], ["--batch", 2], []),
    "column-stable": ([], ["--column-stable"], []),
    "algorithm": (["--algorithm", "block"], ["--algorithm", "stationary-a"], []),
    "panel": (["--panel", 8], ["--panel", 4], []),
    "storage": (["--storage", "columns"], ["--storage", "packed"], ["--algorithm", "stationary-a"]),
    "guard": ([], ["--guard", 2], []),
    "verify-matrix": ([], ["--verify-matrix"], []),
}
# What is said of values that the library compares, and of those that have a word.
SAID = {"damps": "with damp 0.25 in entry 0, but here it is 0.5", "step": "with step 0.001, but here it is 0.002",
        "initial": "--initial is given here, and was none", "variances": "--variances is given here, and was none",
        "weights": "other weights: column 0 has the norm", "holes": "--holes is nan here, and was none",
        "backtracking": "--backtracking is on here, and was off", "monotone": "--monotone is on here, and was off",
        "nonnegative": "--nonnegative is on here, and was off",
        "precondition": "--precondition is column-norms here, and was none", "batch": "--batch is 2 here, and was 0"}
# Small sizes for use cases.
SMALL = {"lsm": ["--nx", 9, "--nz", 8, "--sources", 4, "--samples", 90, "--last", 80],
         "mdd": ["--nx", 6, "--ny", 7, "--samples", 250, "--nf", 60, "--dtype", "f64"],
         "poststack": ["--lines", 4, "--traces", 300, "--samples", 70],
         "reflectivity": ["--lines", 4, "--traces", 12, "--samples", 60]}


def make_problem(suite):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((24, 24)) / 5
    for name, array in {"A": A @ A.T + np.eye(24), "B": rng.standard_normal((24, 3)), "b": rng.standard_normal((24, 1)),
                        "X0": np.ones((24, 3)), "T1": np.full(3, 1e-9), "T2": np.full(3, 1e-3), "W1": np.ones((24, 3)), "W2": np.full((24, 3), 2.0), "wide": A[:, :20], "tall_A": rng.standard_normal((900, 24)),
                        "tall_B": rng.standard_normal((900, 9))}.items():
        np.save(suite.folder / f"{name}.npy", np.asfortranarray(array))


def solve(suite, *words, ranks=None):
    """A run and its report."""
    for option, name in (("--matrix", "A.npy"), ("--rhs", "B.npy")):
        words = words if option in words else [option, name, *words]
    (suite.folder / "R.json").unlink(missing_ok=True)
    run = suite.run("solve", "--output", "X.npy", "--report", "R.json", "--quiet", *words, ranks=ranks)
    path = suite.folder / "R.json"
    return run, json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def base(name, solver):
    """What every run of a solver has, unless it is about that option."""
    words = ["--solver", solver]
    if solver in ("ista", "fista") and name not in ("lambda", "lambda-relative"):
        words += ["--lambda", 0.125]
    if solver == "bounded" and name not in ("nonnegative", "lower", "upper"):
        words += ["--upper", 0.125]
    return words


def says(suite, run, status, text):
    suite.succeeded(run, status)
    suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], f"should say {text!r}:", run.command, run.errors)


def check_taken(suite, solvers, table):
    suite.check(set(CASES) == set(table), "the table has other options:", set(CASES) ^ set(table))
    for name, (takers, _) in table.items():
        _, words, besides = CASES[name]
        for solver in sorted(set(solvers) - takers):
            run, _ = solve(suite, *base(name, solver), *besides, *words)
            shares = name in ("weights", "holes", "misfit", "misfit-scale") and solver in ("block-cgls", "direct")
            says(suite, run, 2, "share no" if shares else f"means nothing to {solver}")


def check_restarts(suite, solvers, table):
    for name, (takers, state) in table.items():
        if name.startswith("misfit"):
            continue  # they refuse checkpoints
        first, second, besides = CASES[name]
        # cg has one rule only.
        ordered = [solver for solver in solvers if solver in takers and not (name == "choose" and solver in ("cg", "minres"))]
        for solver in dict.fromkeys([ordered[0], ordered[-1]]):
            about = [*base(name, solver), *besides]
            limit = ["--iterations", 3] if name != "iterations" else []
            shutil.rmtree(suite.folder / "saved", ignore_errors=True)
            run, _ = solve(suite, *about, *first, *limit, "--checkpoint", "saved")
            suite.check(run.status in (0, 1, 3), run.command, run.status, run.errors)
            limit = ["--iterations", 6] if name != "iterations" else []
            run, report = solve(suite, *about, *second, *limit, "--restart", "saved")
            if state == "fixed":
                changed = f"--{name} is {second[-1]} here, and was {first[-1]}" if name not in SAID else SAID[name]
                says(suite, run, 65, changed)
                suite.check(report is None, "a report of a run that was refused:", run.command)
                continue
            if not suite.check(run.status in (0, 1, 3) and report, run.command, run.status, run.errors):
                continue
            found = {**report, **report["options"]}.get(name.replace("-", "_"))
            suite.check(found == (second[1] if len(second) > 1 else True), "the report of", run.command, "has", found)


def check_reports(suite):
    """The values that a run used, where they are others than those that were asked for."""
    A = np.load(suite.folder / "A.npy")
    norm = np.linalg.norm(A, 2)
    _, report = solve(suite, "--damp-relative", 0.5)
    damp = report["options"]["damp"]
    suite.check(abs(damp / (0.5 * norm) - 1) < 0.05 and report["options"]["damp_relative"] == 0.5, "damp", report["options"], norm)
    X, B = np.load(suite.folder / "X.npy"), np.load(suite.folder / "B.npy")
    suite.close(X, np.linalg.solve(A.T @ A + damp**2 * np.eye(24), A.T @ B), 1e-6, "not solved with the damping of the report")
    for form, used in (("on", True), ("off", False), ("auto", False)):
        _, report = solve(suite, "--one-pass", form)
        suite.check(report["options"]["one_pass"] is used and (report["solver"] == "one-pass-cgls") is used, form, report["options"])
    # A restart computes neither the step nor lambda anew, but has the first run's.
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    words = ["--matrix", "tall_A.npy", "--rhs", "tall_B.npy", "--solver", "fista", "--lambda-relative", 0.25, "--iterations"]
    _, begun = solve(suite, *words, 3, "--step", 2.0**-11, "--checkpoint", "saved")
    words.append(500)
    others = ["--grid", "2x1", "--algorithm", "stationary-a"]
    _, elsewhere = solve(suite, *words, *others, ranks=2)
    lambdas = [[column["lambda"] for column in report["columns"]] for report in (begun, elsewhere)]
    suite.check(lambdas[0] != lambdas[1], "two ranks do not round otherwise, so that nothing is tested", lambdas)
    for ranks in (None, 2):
        run, resumed = solve(suite, *words, *(others if ranks else []), "--restart", "saved", ranks=ranks)
        if suite.check(resumed is not None, run.command, run.errors):
            suite.check(resumed["options"]["step"] == 2.0**-11, "step of a restart", resumed["options"])
            suite.check([column["lambda"] for column in resumed["columns"]] == lambdas[0], "lambda of a restart on", ranks, "ranks")


def check_guess_in_the_system(suite):
    """With scaled columns a guess is part of the system, and may not be left out. Elsewhere it may."""
    for words, is_part in ((["--precondition", "column-norms"], True), (["--solver", "lsmr", "--damp", 0.5], False)):
        shutil.rmtree(suite.folder / "saved", ignore_errors=True)
        solve(suite, *words, "--initial", "X0.npy", "--iterations", 3, "--checkpoint", "saved")
        if is_part:
            says(suite, solve(suite, *words, "--restart", "saved")[0], 65, "--initial is none here, and was given")
        else:
            suite.succeeded(solve(suite, *words, "--restart", "saved")[0])
        suite.succeeded(solve(suite, *words, "--initial", "X0.npy", "--restart", "saved")[0])


def check_combinations(suite):
    for words in (["--solver", "lsqr", "--one-pass", "on"], ["--solver", "block-cgls", "--algorithm", "summa"],
                  ["--one-pass", "on", "--algorithm", "block"]):
        solved, _ = solve(suite, *words)
        planned = suite.run("plan", "--matrix-size", "1000x500", "--rhs", 3, *words)
        says(suite, solved, 2, words[0])
        says(suite, planned, 2, words[0])
        suite.check(solved.error_lines == planned.error_lines, "plan refuses otherwise:", planned.errors, solved.errors)
    says(suite, suite.run("plan", "--matrix-size", "1000x500", "--rhs", 3, "--solver", "cg"), 2, "needs a square matrix")
    says(suite, suite.run("solve", "--matrix", "wide.npy", "--rhs", "B.npy", "--output", "X.npy", "--solver", "cg"), 65,
         "needs a square matrix")
    says(suite, solve(suite, "--one-pass", "on", "--storage", "columns")[0], 2, "--storage columns exclude each other")
    run, report = solve(suite, "--one-pass", "auto", "--storage", "columns")
    suite.check(suite.succeeded(run) and report["storage"] == "columns", "storage", report and report["storage"])


def check_use_cases(suite):
    """A tolerance that is not reached ends with 3, and says so; without one the limit of iterations is the end."""
    for command, words in SMALL.items():
        run = suite.run(command, *words, "--iterations", 2, "--tolerance", 1e-12, "--quiet", ranks=2 if command == "lsm" else None)
        suite.succeeded(run, 3)
        suite.check(len(run.warning_lines) == 1 and "not every column was solved: 1 iteration_limit" in run.warning_lines[0],
                    "should say what was not solved:", run.command, run.errors)
        suite.succeeded(suite.run(command, *words, "--iterations", 2, "--report", "U.json", "--quiet"))
        options = json.loads((suite.folder / "U.json").read_text(encoding="utf-8"))["options"]
        suite.check((options["iterations"], options["tolerance"]) == (2, 0), command, options)
    suite.succeeded(suite.run("mdd", *SMALL["mdd"], "--independent", "--report", "U.json", "--quiet"))
    options = json.loads((suite.folder / "U.json").read_text(encoding="utf-8"))["options"]
    suite.check((options["tolerance"], options["independent"], options["domain"]) == (1e-8, True, "frequency"), options)
    suite.succeeded(suite.run("reflectivity", *SMALL["reflectivity"], "--step", 0.0078125, "--report", "U.json", "--quiet"))
    options = json.loads((suite.folder / "U.json").read_text(encoding="utf-8"))["options"]
    suite.check((options["step"], options["sigma"]) == (0.0078125, 0.01), options)


def test(suite, full):
    make_problem(suite)
    solvers, table = in_page((program.ROOT / PAGE).read_text(encoding="utf-8"))
    suite.check("cgls" in solvers, "solvers of the table", solvers)
    check_taken(suite, solvers, table)
    check_restarts(suite, solvers, table)
    check_reports(suite)
    check_guess_in_the_system(suite)
    check_combinations(suite)
    check_use_cases(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
