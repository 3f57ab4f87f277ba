# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops plan`, and that runs choose by them and say what came of it. plan_test.py LAUNCH PROGRAM"""
import json
import time

import numpy as np

import program

ALGORITHMS = ["block", "summa", "stationary-a", "stationary-b"]


def plans(suite, *words, machine="machine.json", rows=1000, cols=600, rhs=4):
    """The plans, after checking that the table shows the same numbers of ranks."""
    run = suite.run("plan", "--matrix-size", f"{rows}x{cols}", "--rhs", rhs, "--machine", machine, "--json", "plan.json", *words)
    if not suite.succeeded(run):
        return []
    document = json.loads((suite.folder / "plan.json").read_text(encoding="utf-8"))
    suite.check(document["schema"] == "gridlops.plan/1" and document["machine"] == machine, "plan.json", document)
    table = [int(line.split()[0]) for line in run.output.splitlines()[3:]]
    suite.check(table == [result["ranks"] for result in document["results"]], "table", run.output)
    return document["results"]


def check_bad_files(suite):
    """A file without sound rates ends the run with the key and the value, on one rank and on several."""
    good = program.machine_file(suite)

    def changed(**values):
        return json.dumps({"rates": {**good, **values}})

    links = good["transports"]["mpi"]
    for text, words in [("", ["no JSON"]), ("[1]", ["no object"]), ("{}", ["rates is missing", "gridlops calibrate"]),
                        ('{"rates": 7}', ["rates is 7"]), (changed(ranks=1.5), ["ranks is 1.5"]), (changed(read_bytes_per_second=0), ["read_bytes_per_second is 0"]),
                        (changed(flops_per_second={**good["flops_per_second"], "c64": -3}), ["flops_per_second.c64 is -3"]),
                        (changed(flops_per_second=None), ["flops_per_second is null"]),
                        (changed(transports={"mpi": {**links, "reduce": {"seconds_per_call": "fast", "bytes_per_second": 1}}}),
                         ['transports.mpi.reduce.seconds_per_call is "fast"']),
                        (changed(transports={"mpi": {name: links[name] for name in program.OPERATIONS[1:]}}), ["transports.mpi.broadcast is missing"]),
                        (changed().replace("1e-06", "1e999"), ["no JSON"])]:
        (suite.folder / "bad_machine.json").write_text(text, encoding="utf-8")
        run = suite.run("plan", "--matrix-size", "9x9", "--rhs", 1, "--machine", "bad_machine.json")
        suite.check(run.status == 65 and len(run.error_lines) == 1 and all(word in run.errors for word in [*words, "bad_machine.json"]),
                    "bad file", text[:60], run.status, run.errors)
        by_variable = suite.run("plan", "--matrix-size", "9x9", "--rhs", 1, environment={"GRIDLOPS_CALIBRATION": "bad_machine.json"})
        suite.check(by_variable.status == 0 and "machine: built in" in by_variable.output, "left out of account", by_variable.output)
    for words, status in [(["--machine", "none.json"], 65), (["--ranks", "0"], 2), (["--ranks", "4..x"], 2), (["--matrix-size", "9"], 2),
                          (["--transport", "auto"], 2), (["--memory-per-rank", "some"], 2), (["--grid", "2by2"], 2)]:
        run = suite.run("plan", "--matrix-size", "9x9", "--rhs", 1, *words)
        suite.check(run.status == status and len(run.error_lines) == 1 and run.output == "", words, run.status, run.errors)
    run = suite.run("plan", "--matrix-size", "9x9", "--rhs", 1, "--ranks", 2, environment={"GRIDLOPS_CALIBRATION": "machine.json"})
    suite.check(run.status == 0 and "machine: machine.json" in run.output, "the variable", run.output, run.errors)


def check_plans(suite):
    """Figures against formulas, and what must hold whatever the machine is."""
    program.machine_file(suite)
    found = plans(suite, "--ranks", "1..1024", rows=100000, cols=40000, rhs=16)
    suite.check([plan["ranks"] for plan in found] == [2**k for k in range(11)], "1..1024")
    for plan in found:
        p, q = plan["grid"]
        suite.check(p * q == plan["ranks"] and plan["seconds"] == 100 * plan["seconds_per_iteration"] and plan["batch"] == 16, "plan", plan)
    seconds = [plan["seconds"] for plan in found]
    suite.check(all(0.5 <= after / before < 1 for before, after in zip(seconds, seconds[1:])), "more ranks are faster, not too much", seconds)
    # One rank reads A twice: 16 columns are too few to compute as long.
    m, n, r = 100000, 40000, 16
    vectors = (9 * n + 5 * m) * r * 8 / 1e10 / 2
    products = 2 * max(2 * m * n * r / 1e10, m * n * 8 / 1e10)
    suite.check(abs(seconds[0] / 100 / (products + vectors) - 1) < 1e-9, "one rank", seconds[0], products, vectors)
    # Stationary A on 4 x 2 receives, forward and adjoint, what it gathers and what it sums.
    plan, = plans(suite, "--grid", "4x2", "--algorithm", "stationary-a", rows=800, cols=400, rhs=3)
    suite.check(plan["bytes_received"] == 2 * 8 * 3 * (400 // 2 * 3 // 4 + 800 // 4 // 2) and plan["messages"] == 4, "4 x 2", plan)
    # Everything is half as fast: everything takes twice as long.
    program.machine_file(suite, "slow.json", flops=5e9, read=5e9, copied=5e9, call=2e-6, rate=5e8)
    for fast, slow in zip(plans(suite, "--ranks", "1..64"), plans(suite, "--ranks", "1..64", machine="slow.json")):
        suite.check(abs(slow["seconds"] / fast["seconds"] - 2) < 1e-9 and slow["grid"] == fast["grid"], "twice as slow", fast, slow)
    # A tall matrix on a slow network lies in one column of the grid, or in one row with models everywhere.
    program.machine_file(suite, "network.json", call=1e-9, rate=1e6)
    plan, = plans(suite, "--ranks", "16", machine="network.json", rows=160000, cols=100)
    suite.check(sorted(plan["grid"]) == [1, 16], "tall", plan)
    for solver in ("cgls", "lsqr", "lsmr", "block-cgls", "direct", "cg", "ista", "fista"):
        plan, = plans(suite, "--ranks", "6", "--solver", solver, "--iterations", 7, rows=500, cols=500)
        suite.check(plan["seconds"] > 0 and (solver != "block-cgls" or plan["algorithm"] == "stationary-a"), solver, plan)
    # Half of A^H A, three products with 64 columns, and Cholesky on each rank, at 1e10 operations a second of 4 ranks; and the rest.
    once, often = (plans(suite, "--ranks", 4, "--solver", "direct", "--iterations", k, rows=20000, cols=1000, rhs=64)[0]["seconds"] for k in (1, 100))
    expected = (20000 * 1000 * 1000 + 3 * 2 * 20000 * 1000 * 64) / 4 / 1e10 + 1000**3 / 3 / 1e10
    suite.check(once == often and expected <= once <= 1.1 * expected, "a factor and one iteration", once, often, expected)
    suite.check(plans(suite, "--ranks", 4, "--one-pass", "on")[0]["one_pass"], "one pass")


def check_memory(suite):
    """Less memory for each rank means smaller batches that fit, and in the end none; and the same as --dry-run says."""
    everything, = plans(suite, "--ranks", 4, rhs=256)
    for limit in (everything["memory_bytes"], everything["memory_bytes"] - 1, everything["memory_bytes"] * 2 // 3):
        plan, = plans(suite, "--ranks", 4, "--memory-per-rank", limit, rhs=256)
        suite.check(plan["memory_bytes"] <= limit and (plan["batch"] == 256) == (limit >= everything["memory_bytes"]) or
                    plan["algorithm"] != everything["algorithm"] or plan["grid"] != everything["grid"], "memory", limit, plan)
    none, = plans(suite, "--ranks", 4, "--memory-per-rank", "1K", rhs=256)
    suite.check(none == {"ranks": 4, "fits": False}, "nothing fits", none)


def check_runs(suite):
    """`solve` and `multiply` take the grid and the algorithm of the plan, and count the bytes that the model says."""
    rng = np.random.default_rng(3)
    program.machine_file(suite, call=1e-9, rate=1e6)  # the bytes decide
    for rows, cols, rhs, ranks in [(300, 8, 3, 4), (8, 300, 3, 4), (60, 50, 40, 2), (37, 37, 5, 3)]:
        A = program.random_matrix(rng, (rows, cols), "f64")
        np.save(suite.folder / "A.npy", A @ A.T + np.eye(rows) if rows == cols else A)
        np.save(suite.folder / "B.npy", program.random_matrix(rng, (rows, rhs), "f64"))
        np.save(suite.folder / "X0.npy", program.random_matrix(rng, (cols, rhs), "f64"))
        plan, = plans(suite, "--ranks", ranks, rows=rows, cols=cols, rhs=rhs)
        files = ["--matrix", "A.npy", "--machine", "machine.json", "--report", "R.json"]
        solve = [*files, "--rhs", "B.npy", "--output", "X.npy", "--tolerance", 0, "--iterations", 4, "--quiet"]
        run = suite.run("solve", *solve, ranks=ranks)
        suite.check(run.status in (0, 3), "solve", run.errors)
        report = suite.report("R.json", "solve", ranks, plan["grid"])
        suite.check(report["algorithm"] == plan["algorithm"] and report["prediction"]["machine"] == "machine.json", "by the plan", plan, report)
        suite.check(abs(report["prediction"]["seconds"]["predicted"] / plan["seconds_per_iteration"] - 1) < 1e-12, "seconds", report["prediction"])
        check_prediction(suite, report, most=plan["bytes_received"])
        multiply = [*files, "--input", "X0.npy", "--output", "Y.npy"]
        if suite.succeeded(suite.run("multiply", *multiply, ranks=ranks)):
            report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
            check_prediction(suite, report)
    # Every algorithm, idle ranks, one pass, and a checkpoint's grid.
    for algorithm in ALGORITHMS:
        run = suite.run("solve", *solve, "--grid", "1x2", "--algorithm", algorithm, ranks=3)
        suite.check(run.status in (0, 3), algorithm, run.errors)
        check_prediction(suite, suite.report("R.json", "solve", 3, (1, 2)))
    for solver in (["--solver", "lsqr"], ["--one-pass", "on"], ["--solver", "cg"], ["--batch", 2], ["--damp-relative", 0.1]):
        suite.run("solve", *solve, *solver, "--grid", "2x2", ranks=4)
        check_prediction(suite, suite.report("R.json", "solve", 4, (2, 2)))
    (suite.folder / "saved").mkdir()
    suite.run("solve", *solve, "--grid", "3x1", "--checkpoint", "saved", "--checkpoint-every", 2, ranks=3)
    run = suite.run("solve", *solve, "--restart", "saved", ranks=3)
    suite.check(run.status in (0, 3) and "instead of" not in run.errors, "restart", run.errors)
    suite.report("R.json", "solve", 3, (3, 1))


def check_prediction(suite, report, most=None):
    prediction = report["prediction"]
    received, seconds = prediction["bytes_received"], prediction["seconds"]
    suite.check(received["predicted"] == received["counted"] and len(received["counted"]) == report["ranks"], "bytes", report["grid"],
                report["algorithm"], received)
    suite.check(most is None or max(received["predicted"]) == most, "most bytes", most, received)
    suite.check(seconds["predicted"] > 0 and seconds["measured"] > 0 and
                abs(seconds["measured"] / seconds["predicted"] / seconds["ratio"] - 1) < 1e-9, "seconds", seconds)


def test(suite, full):
    begin = time.monotonic()
    check_bad_files(suite)
    check_plans(suite)
    suite.check(time.monotonic() - begin < 60 or full, "plans took", time.monotonic() - begin, "s")
    check_memory(suite)
    check_runs(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
