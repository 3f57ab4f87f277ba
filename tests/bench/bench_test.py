# SPDX-License-Identifier: BSD-3-Clause
"""Checks what `gridlops-bench` writes: every combination of the lists, flops and bytes by the formulas, and small errors.
Times are not judged. bench_test.py LAUNCH PROGRAM"""
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

COMMON = {"rows": int, "cols": int, "nrhs": int, "dtype": str, "adjoint": bool, "grid": list, "algorithm": str, "form": str,
          "copies": int, "panel": int, "storage": str, "high_plane": bool, "transport": str, "device": str, "asked": dict, "repetitions": int, "samples": list, "seconds": float, "gflops": float, "limit_gflops": float,
          "limit_read_gbs": float, "roofline_seconds": float, "roofline_fraction": float, "bytes_sent": int, "waiting": float,
          "error": float, "allowed_error": float}
SOLVE = {**COMMON, "solver": str, "seconds_per_iteration": float, "launches_per_iteration": int}
ENVIRONMENT = {"version", "commit", "cpu", "cores", "ranks", "mpi", "blas", "blas_kernel", "blas_pinned_by", "fft", "load_average"}
QUICK = ["--reps", 1, "--limit-order", 64, "--limit-mib", 8, "--json", "F.json"]
TRANSPORT = "mpi-staged" if (program.DEVICE, program.TRANSPORT) == ("gpu", "mpi") else program.TRANSPORT


def results_of(suite, run, fields, count):
    """The results in the file, after checking what all files must have."""
    if not suite.succeeded(run):
        return []
    document = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"), parse_constant=program.not_json)
    suite.check(document["schema"] == "gridlops.bench/1", "schema", document["schema"])
    suite.check(ENVIRONMENT <= set(document["environment"]), "environment", document["environment"])
    results = document["results"]
    suite.check(len(results) == count, len(results), "results instead of", count)
    suite.check(len(run.output.splitlines()) == count + 1, "the table", run.output)
    for result in results:
        suite.check({key: type(value) for key, value in result.items()} == fields, "fields", result)
        suite.check(min(value for value in result.values() if isinstance(value, float)) >= 0, "signs", result)
        seconds = result.get("seconds_per_iteration", result["seconds"])
        products = 1 if result.get("solver", "cg") == "cg" else 2
        flops = products * (8 if result["dtype"].startswith("c") else 2) * result["rows"] * result["cols"] * result["nrhs"]
        suite.check(abs(result["gflops"] * 1e9 * seconds - flops) <= 1e-9 * flops, "flops", result)
        single = result["dtype"] in ("f32", "c64")
        suite.check(result["error"] <= (1e-5 if single else 1e-13) and result["error"] <= result["allowed_error"], "error", result)
    return results


def bytes_of(result):
    """The bytes that all ranks send in one product by stationary-a."""
    (p, q), size = result["grid"], {"f32": 4, "f64": 8, "c64": 8, "c128": 16}[result["dtype"]]
    return size * result["nrhs"] * ((p - 1) * result["cols"] + (q - 1) * result["rows"])


def check_matmul(suite):
    run = suite.run("matmul", "--rows", "40", "--cols", "31", "--rhs", "1..2,5", "--dtype", "f64,c64", "--grid", "2x1,1x2",
                    "--algorithm", "stationary-a,summa", "--both", *QUICK, ranks=2, timeout=120)
    results = results_of(suite, run, COMMON, 3 * 2 * 2 * 2 * 2)
    suite.check(all(result["storage"] == "columns" for result in results), "small matrices are not packed", results)
    keys = ["rows", "nrhs", "dtype", "algorithm", "adjoint"]
    found = sorted([*(result[key] for key in keys), result["grid"]] for result in results)
    wanted = itertools.product([40], [1, 2, 5], ["f64", "c64"], ["stationary-a", "summa"], [False, True], [[2, 1], [1, 2]])
    suite.check(found == sorted(map(list, wanted)), "combinations", found)
    for result in results:
        if result["algorithm"] == "stationary-a":
            suite.check(result["bytes_sent"] == bytes_of(result), "bytes", result)


def check_storage(suite):
    run = suite.run("matmul", "--rows", "40", "--cols", "31", "--rhs", "5", "--dtype", "f32,c128", "--grid", "2x1", "--algorithm",
                    "stationary-a,block", "--storage", "columns,packed", "--both", *QUICK, ranks=2)
    results = results_of(suite, run, COMMON, 2 * 2 * 2 * 2)
    suite.check(sum(result["storage"] == "packed" for result in results) == 8, "half of them are packed", results)


def check_asked(suite):
    """A result says what was asked for besides what ran, and what each repetition took."""
    quick = [3 if word == 1 else word for word in QUICK]
    run = suite.run("matmul", "--rows", "40", "--cols", "31", "--algorithm", "auto,stationary-a", "--storage", "auto,packed", "--transport", "auto,mpi",
                    *quick, ranks=2)
    results = results_of(suite, run, COMMON, 8)
    found = sorted(tuple(result["asked"].values()) for result in results)
    wanted = itertools.product(["auto", "stationary-a"], ["auto", "packed"], ["auto", "mpi"])
    suite.check(found == sorted(wanted) and all(list(result["asked"]) == ["algorithm", "storage", "transport"] for result in results),
                "what was asked for", found)
    for result in results:
        for name, word in result["asked"].items():
            ran = result[name]
            suite.check(ran != "auto" if word == "auto" else ran == word or name == "transport", name, "asked for", word, "ran", ran)
        suite.check(len(result["samples"]) == 3 and statistics.median(result["samples"]) == result["seconds"], "samples", result)
    run = suite.run("solve", "--rows", "40", "--cols", "31", "--iterations", 4, *quick, ranks=2)
    for result in results_of(suite, run, SOLVE, 1):
        suite.check(len(result["samples"]) == 3 and statistics.median(result["samples"]) == result["seconds_per_iteration"], "samples", result)


def check_side_by_side(suite):
    """Zipped lists run entry by entry, the others are crossed with them; and what is 1-D, or copied, is called so."""
    run = suite.run("matmul", "--rows", "10,20,40", "--cols", "7", "--grid", "1x1,1x3,2x2", "--zip", "rows,grid", "--algorithm", "summa,block",
                    *QUICK, ranks=4)
    results = results_of(suite, run, COMMON, 3 * 2)
    found = [[result["rows"], result["grid"], result["algorithm"], result["form"], result["copies"]] for result in results]
    suite.check(found == [[10, [1, 1], "summa", "whole", 1], [10, [1, 1], "block", "whole", 1],
                          [20, [1, 3], "summa", "1-D cols", 1], [20, [1, 3], "block", "1-D rows", 1],
                          [40, [2, 2], "summa", "2-D", 1], [40, [2, 2], "block", "1-D rows x2", 2]], "forms", found)
    suite.check([line for line in run.warning_lines if "block on 2x2 keeps 2 copies" in line] == run.warning_lines
                and len(run.warning_lines) == 1, "a warning of copies", run.errors)
    for word in {result["form"] for result in results} | {TRANSPORT}:
        suite.check(f" {word} " in run.output, "the table does not say", word, run.output)
    run = suite.run("matmul", "--rows", "10,20", "--cols", "7", "--grid", "1x1,2x1,2x2", "--zip", "grid,rows", *QUICK, ranks=4)
    suite.check(run.status == 2 and len(run.error_lines) == 1 and "--grid has 3" in run.errors and "--rows has 2" in run.errors,
                "refusal of lists that are not equally long", run.errors)


def check_solve(suite):
    run = suite.run("solve", "--rows", 60, "--cols", 60, "--rhs", 3, "--dtype", "f64,c64", "--solver", "cg,ista,fista", "--iterations", 6,
                    "--algorithm", "stationary-a,block", "--grid", "1x2", *QUICK, ranks=2)
    results = results_of(suite, run, SOLVE, 2 * 2 * 3)
    suite.check([result["solver"] for result in results] == 4 * ["cg", "ista", "fista"], "names", results)
    run = suite.run("solve", "--rows", 60, "--cols", 50, "--solver", "cg", *QUICK, ranks=2)
    suite.check(run.status == 2 and len(run.error_lines) == 1 and "60 x 50" in run.errors, "refusal of cg", run.errors)

    for solver in ["cgls", "lsqr", "lsmr", "block-cgls"]:
        run = suite.run("solve", "--rows", "120", "--cols", "30", "--rhs", "1,3", "--solver", solver, "--iterations", "4",
                        "--algorithm", "stationary-a", "--grid", "1x2", *QUICK, ranks=3 if solver == "cgls" else 2)
        results = results_of(suite, run, SOLVE, 2)
        if solver != "block-cgls":
            suite.check(len({result["launches_per_iteration"] for result in results}) == 1, "launches grow with columns", results)
        for result in results:
            suite.check((result["launches_per_iteration"] >= 2) == (program.DEVICE == "gpu"), "launches", result)
            suite.check(result["solver"] == solver and result["transport"] == TRANSPORT, "names", result)
            # An iteration has two products, and sums of a few numbers per column.
            suite.check(2 * bytes_of(result) <= result["bytes_sent"] <= 2 * bytes_of(result) + 2000, "bytes", result)

    run = suite.run("solve", "--rows", "120", "--cols", "30", "--rhs", "1,3", "--one-pass", "--iterations", "4", "--algorithm",
                    "stationary-a", "--grid", "2x1,1x2", *QUICK, ranks=2)
    for result in results_of(suite, run, SOLVE, 4):
        suite.check(result["solver"] == "one-pass-cgls", "names", result)
        # An iteration has a product and two adjoint ones.
        suite.check(3 * bytes_of(result) <= result["bytes_sent"] <= 3 * bytes_of(result) + 2000, "bytes", result)


def check_kernels(suite):
    run = suite.run("kernels", "--rows", "1,5000", "--cols", "3", "--dtype", "f32,c128", "--device", program.DEVICE, "--limit-mib", 8, "--reps",
                    1, "--json", "F.json", ranks=2)
    if not suite.succeeded(run):
        return
    results = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]
    found = sorted([result["kernel"], result["rows"], result["cols"], result["dtype"]] for result in results)
    blocks = {"copy": 2, "dots": 2, "norms": 1, "axpy": 3, "xpby": 3, "scale": 2}
    suite.check(found == sorted(map(list, itertools.product(blocks, [1, 5000], [3], ["f32", "c128"]))), "combinations", found)
    for result in results:
        bytes_of_all = 2 * blocks[result["kernel"]] * result["rows"] * 3 * (16 if result["dtype"] == "c128" else 4)
        suite.check(abs(result["gbs"] * 1e9 * result["seconds"] - bytes_of_all) <= 1e-9 * bytes_of_all, "rate", result)
        suite.check(result["device"] == program.DEVICE and result["fraction"] > 0, "figures", result)


def check_operators(suite):
    run = suite.run("operators", "--rhs", "1,2", "--limit-order", 8, "--limit-mib", 1, "--reps", 1, "--json", "F.json", ranks=3)
    if not suite.succeeded(run):
        return
    results = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]
    section = 20 * 267 * 550  # lines, traces, samples, and what a product with a column takes for each of them
    flops = {"derivative": 6 * section, "laplacian": 18 * section, "gradient": 12 * section, "convolution": 82 * section,
             "nonstationary": 82 * section, "wavelets": 82 * section, "filters": 82 * 2 * 267 * 550,
             "restriction": 0, "interpolation": None, "matrix": 2 * 64 * section,
             "fourier": 2.5 * 1599 * math.log2(1599) * 121, "fredholm": 8 * 400 * 201 * 121, "kirchhoff": None}
    found = sorted((result["operator"], result["nrhs"], result["adjoint"]) for result in results)
    suite.check(found == sorted(itertools.product(flops, [1, 2], [False, True])), "combinations", found)
    for result in results:
        wanted, counted = flops[result["operator"]], result["gflops"] * 1e9 * result["seconds"]
        suite.check(counted > 0 if wanted is None else abs(counted - result["nrhs"] * wanted) <= 1e-9 * counted, "operations", result)
        suite.check(result["roofline_fraction"] > 0 and result["samples"] == [result["seconds"]], "figures", result)
    run = suite.run("operators", "--operator", "fourier", "--samples", "7,8", "--lines", 5, "--limit-order", 8, "--limit-mib", 1, "--reps", 1,
                    "--json", "F.json", ranks=2)
    if suite.succeeded(run):
        found = [result["sizes"] for result in json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]]
        suite.check(found == ["5x7 f32", "5x7 f32", "5x8 f32", "5x8 f32"], "lines of these lengths", found)
    run = suite.run("operators", "--operator", "fourier,fredholm", "--array", "8,4,2", "--kernel", "2,5,6", "--groups", "--rhs", 3, "--limit-order",
                    8, "--limit-mib", 1, "--reps", 1, "--json", "F.json", ranks=3)
    if suite.succeeded(run):
        results = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]
        wanted = [("fourier", "8x4x2 c128", 3 * 5 * 64 * 6)] * 2 + [("grouped_slices", "2x5x6", 3 * 8 * 2 * 5 * 6)] * 2
        found = [(result["operator"], result["sizes"], round(result["gflops"] * 1e9 * result["seconds"])) for result in results]
        suite.check(found == wanted, "an array cut along a dimension, and slices in groups", found)


def check_picture(suite):
    """bench/roofline draws products, where a Python has matplotlib."""
    root = Path(__file__).resolve().parents[2]
    # The first python3 of PATH has no modules other than its own.
    bare = suite.folder / "bare"
    bare.mkdir()
    (bare / "python3").write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n", encoding="utf-8")
    (bare / "python3").chmod(0o755)
    environment = {**os.environ, "PATH": f"{bare}:{os.environ['PATH']}"}
    if subprocess.run([root / "scripts/python", "matplotlib"], capture_output=True, check=False, env=environment).returncode != 0:
        print("not tested: bench/roofline, which needs matplotlib")
        return
    run = suite.run("matmul", "--rows", "40", "--cols", "31", "--rhs", "1,5", "--both", *QUICK)
    if suite.succeeded(run):
        drawn = subprocess.run([root / "bench/roofline", "--output", "R.svg", "F.json"], cwd=suite.folder, check=False,
                               capture_output=True, text=True, timeout=120, env=environment)
        if suite.check(drawn.returncode == 0, "roofline", drawn.stderr):
            suite.check("40 x 31 times 1, 5 columns" in (suite.folder / "R.svg").read_text(encoding="utf-8"), "title")


def check_environment(suite):
    """The program reads the variables of its own options, and not those of `gridlops solve`, which has other options."""
    words = ["solve", "--rows", "9", "--cols", "3", *QUICK]
    run = suite.run(*words, environment={"GRIDLOPS_SOLVE_SOLVER": "fista", "GRIDLOPS_SOLVE_ITERATIONS": "0", "GRIDLOPS_SOLVE_DAMP": "1",
                                         "GRIDLOPS_KERNELS": "auto", "GRIDLOPS_BENCH_SOLVE_SOLVER": "lsmr"})
    suite.succeeded(run)
    suite.check(not run.warning_lines, "warnings:", run.errors)
    results = results_of(suite, run, SOLVE, 1)
    suite.check([result["solver"] for result in results] == ["lsmr"], "GRIDLOPS_BENCH_SOLVE_SOLVER is not heard:", results)
    run = suite.run(*words, environment={"GRIDLOPS_BENCH_SOLVE_SOLVR": "lsmr", "GRIDLOPS_KERNEL": "blas"})
    suite.succeeded(run)
    for meant in ("GRIDLOPS_BENCH_SOLVE_SOLVER", "GRIDLOPS_KERNELS"):
        suite.check(sum(f"did you mean '{meant}'?" in line for line in run.warning_lines) == 1, "no suggestion of", meant, ":", run.errors)


def check_compressed(suite):
    """Products with a compressed matrix are those of the matrix, to the error that compression states."""
    generator = np.random.default_rng(5)
    low = generator.standard_normal((90, 4)) @ generator.standard_normal((4, 70)) + 1e-4 * generator.standard_normal((90, 70))
    np.save(suite.folder / "A.npy", low)
    np.save(suite.folder / "P.npy", generator.random((90, 2)))
    run = suite.run("compressed", "--matrix", "A.npy", "--rhs", "1,5", "--tolerance", "1e-2", "--row-positions", "P.npy", "--grid", "2x1", *QUICK, ranks=2)
    if suite.succeeded(run):
        results = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]
        suite.check([(result["nrhs"], result["adjoint"]) for result in results] == [(1, False), (1, True), (5, False), (5, True)], "results", results)
        for result in results:
            suite.check(0 < result["error"] <= result["allowed_error"] <= 1.001e-2 and result["times_smaller"] > 3, "error", result)
            suite.check(result["times_faster"] == result["seconds_dense"] / result["seconds"] and result["seconds_to_compress"] > 0, "times", result)
    run = suite.run("compressed", "--matrix", "A.npy", "--col-positions", "P.npy", *QUICK)
    suite.check(run.status == 65 and "70 columns" in run.errors, "refusal of positions", run.errors)


def check_columns(suite):
    """The help of each subcommand explains every column of its tables, and no other."""
    np.save(suite.folder / "A.npy", np.eye(3))
    sizes = ["--rows", 4, "--cols", 3, "--reps", 1]
    limits = ["--limit-order", 8, "--limit-mib", 1, "--reps", 1]
    for name, *words in (["matmul", *sizes, *limits[:4]], ["solve", *sizes, *limits[:4]], ["kernels", *sizes, *limits[2:4]],
                         ["operators", "--operator", "laplacian", *limits], ["compressed", "--matrix", "A.npy", "--rhs", 1, *limits],
                         ["comm", "--bytes", 8, "--reps", 1], ["messages", "--bytes", 8, "--messages", "1,2", "--up-to", 1024, "--reps", 1]):
        run = suite.run(name, *words, ranks=2, timeout=120)
        if not suite.succeeded(run):
            continue
        text = suite.run(name, "--help").output.split("Columns:\n")[1].split("\n\n")[0]
        suite.check(max(map(len, text.splitlines())) <= 100, "wide lines in the help of", name, text)
        explained = [column for line in text.splitlines() if (names := line[2:].split("  ")[0]) for column in names.split(", ")]
        titles = [line for line in run.output.splitlines() if re.match("(work|kernel|operator|operation|grid|way) ", line)]
        rest = titles
        for column in sorted(set(explained), key=len, reverse=True):
            suite.check(any(column in line for line in rest), name, "explains", column, "which is no column of", titles)
            rest = [line.replace(column, "") for line in rest]
        suite.check(titles and not "".join(rest).strip(), name, "does not explain", rest, "of", titles)


def check_refusals(suite):
    for wrong, word in [("0..8", "never ends"), ("4,x", "x"), ("8..", "whole number"), ("", "whole number")]:
        run = suite.run("matmul", "--rows", wrong, "--cols", "3")
        suite.check(run.status == 2 and len(run.error_lines) == 1 and word in run.errors, "refusal of", wrong, run.errors)
    for words in (["--solver", "lsqr"], ["--algorithm", "summa"]):
        run = suite.run("solve", "--rows", "9", "--cols", "3", "--grid", "1x2", "--one-pass", *words, ranks=2)
        suite.check(run.status == 2 and len(run.error_lines) == 1, "refusal of one pass", words, run.errors)
    run = suite.run("kernels", "--rows", 9 * 10**18, "--cols", 4)
    suite.check(run.status == 2 and len(run.error_lines) == 1 and str(9 * 10**18) in run.errors, "refusal of sizes", run.errors)
    run = suite.run("matmul", "--rows", "4", "--cols", "3", "--dtype", "f64,f16")
    suite.check(run.status == 2 and "f16" in run.errors, "refusal", run.errors)


def test(suite, _):
    check_matmul(suite)
    check_storage(suite)
    check_asked(suite)
    check_side_by_side(suite)
    check_solve(suite)
    check_kernels(suite)
    check_operators(suite)
    check_picture(suite)
    check_compressed(suite)
    check_environment(suite)
    check_columns(suite)
    check_refusals(suite)


if __name__ == "__main__":
    program.main(test, __doc__, probe=("matmul", "--rows", 2, "--cols", 2))
