# SPDX-License-Identifier: BSD-3-Clause
"""Checks that bad input ends soon on all ranks, with the documented status, one error line that has the values, and no
output file. bad_input_test.py LAUNCH PROGRAM"""
import re
from pathlib import Path

import numpy as np

import program

ROOT = Path(__file__).resolve().parents[2]
RANKS = 4
USAGE, BAD_INPUT, NO_MEMORY, BAD_OUTPUT = 2, 65, 71, 74


def write_files(folder):
    rng = np.random.default_rng(3)
    np.save(folder / "A.npy", program.random_matrix(rng, (12, 8), "f64"))
    np.save(folder / "B.npy", program.random_matrix(rng, (12, 3), "f64"))
    np.save(folder / "X.npy", program.random_matrix(rng, (8, 3), "f64"))
    np.save(folder / "X5.npy", program.random_matrix(rng, (8, 5), "f64"))
    np.save(folder / "single.npy", program.random_matrix(rng, (8, 3), "f32"))
    np.save(folder / "single12.npy", program.random_matrix(rng, (12, 3), "f32"))
    np.save(folder / "XT.npy", program.random_matrix(rng, (3, 8), "f64"))
    np.save(folder / "BT.npy", program.random_matrix(rng, (3, 12), "f64"))
    np.save(folder / "whole.npy", np.arange(24).reshape(8, 3))
    (folder / "short.npy").write_bytes((folder / "X.npy").read_bytes()[:-8])
    (folder / "other.json").write_text('{"schema": "gridlops.bench/1"}')
    (folder / "regular").write_text("no folder\n")
    for name, shape in [("none", (0, 0)), ("none4", (0, 4)), ("most_wide", (0, 2**53)), ("most_tall", (2**53, 0))]:
        write_header(folder / f"{name}.npy", shape)


def write_header(path, shape):
    """A file of f64 without elements."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})


def multiply(**changes):
    return command("multiply", {"matrix": "A.npy", "input": "X.npy", "output": "out.npy"}, changes)


def solve(**changes):
    return command("solve", {"matrix": "A.npy", "rhs": "B.npy", "output": "out.npy"}, changes)


def make(**changes):
    return command("make-problem", {"rows": "6", "cols": "5", "rhs": "2", "out": "made"}, changes)


def command(name, options, changes):
    """Options with a value of None are left out; True makes a flag."""
    words = [name]
    for option, value in {**options, **changes}.items():
        if value is not None:
            words += ["--" + option.replace("_", "-")] + ([] if value is True else [value])
    return words


# The options, the status, and what the error must mention.
CASES = [
    (multiply(matrix="none.npy"), BAD_INPUT, ["none.npy"]),
    (multiply(input="B.npy"), BAD_INPUT, ["A.npy", "12 x 8", "B.npy", "12 x 3"]),
    (multiply(adjoint=True), BAD_INPUT, ["A.npy", "12 x 8", "X.npy", "8 x 3", "without --adjoint it would fit"]),
    (multiply(input="B.npy"), BAD_INPUT, ["with --adjoint it would fit"]),
    (multiply(input="XT.npy"), BAD_INPUT, ["XT.npy is 3 x 8", "did you transpose it?"]),
    (solve(rhs="BT.npy"), BAD_INPUT, ["BT.npy is 3 x 12", "did you transpose it?"]),
    (solve(rhs="X.npy"), BAD_INPUT, ["did you transpose A?"]),
    (solve(initial="single12.npy"), BAD_INPUT, ["single12.npy is 12 x 3", "did you transpose A?"]),
    (multiply(input="whole.npy"), BAD_INPUT, ["whole.npy", "i8"]),
    (solve(rhs="short.npy"), BAD_INPUT, ["short.npy", "incomplete"]),
    (multiply(input="."), BAD_INPUT, ["."]),
    # With these the result has too many elements.
    (multiply(matrix="most_tall.npy", input="none4.npy"), BAD_INPUT, ["none4.npy", "9007199254740992 x 4"]),
    (solve(matrix="most_wide.npy", rhs="none4.npy"), BAD_INPUT, ["none4.npy", "9007199254740992 x 4"]),
    (multiply(output="nowhere/out.npy"), BAD_OUTPUT, ["--output nowhere/out.npy: cannot "]),
    (multiply(output="nowhere/out.h5:/X"), BAD_OUTPUT, ["nowhere/out.h5: cannot "]),
    (multiply(output="regular/out.npy"), BAD_OUTPUT, ["regular/out.npy"]),
    (multiply(output="."), BAD_OUTPUT, ["."]),
    (multiply(report="regular/R.json"), BAD_OUTPUT, ["--report regular/R.json: cannot "]),
    (multiply(report="out.npy"), USAGE, ["--output", "--report", "out.npy"]),
    (multiply(grid="3x2"), USAGE, ["3", "2", "4"]),
    (multiply(grid="2by2"), USAGE, ["--grid", "'2by2'", "2x3"]),
    (multiply(grid="0x2"), USAGE, ["'0x2'"]),
    (multiply(device="gpu"), USAGE, ["GPU", "run on the CPU"]),
    (multiply(transport="nccl"), USAGE, ["no transport 'nccl' for host memory", "chain"]),
    (multiply(transport="carrier-pigeon"), USAGE, ["'carrier-pigeon'", "one-sided"]),
    (multiply(algorithm="stationary-c"), USAGE, ["'stationary-c'", "did you mean 'stationary-"]),
    (multiply(panel="-3"), USAGE, ["--panel", "'-3'"]),
    (multiply(input=None), USAGE, ["--input"]),
    (solve(rhs="X.npy"), BAD_INPUT, ["A.npy", "12 x 8", "X.npy", "8 x 3"]),
    (solve(initial="X5.npy"), BAD_INPUT, ["X5.npy", "5", "3"]),
    (solve(solver="cg"), BAD_INPUT, ["12 x 8", "square"]),
    (solve(history="regular/H.csv"), BAD_OUTPUT, ["--history regular/H.csv: cannot "]),
    (solve(tolerance="-1e-3"), USAGE, ["--tolerance", "'-1e-3'"]),
    (solve(tolerance="nan"), USAGE, ["--tolerance", "'nan'"]),
    (solve(iterations="10.5"), USAGE, ["--iterations", "'10.5'"]),
    (solve(solver="cgsl"), USAGE, ["'cgsl'", "did you mean 'cgls'?"]),
    (solve(itrations="5"), USAGE, ["'--itrations'", "did you mean '--iterations'?"]),
    (solve(damp="1", damp_relative="0.1"), USAGE, ["--damp", "--damp-relative"]),
    (solve(damp=True), USAGE, ["--damp"]),
    (solve(solver="ista"), USAGE, ["ista", "--lambda"]),
    (solve(solver="ista", lambda_relative="0.1", **{"lambda": "0.1"}), USAGE, ["--lambda", "--lambda-relative"]),
    (["report"], USAGE, ["R.json"]),
    (["report", "none.json"], BAD_INPUT, ["none.json"]),
    (["report", "regular"], BAD_INPUT, ["regular", "is not JSON"]),
    (["report", "other.json"], BAD_INPUT, ["other.json", "another schema"]),
    (solve(**{"lambda": "0.1"}), USAGE, ["--lambda", "ista, fista", "cgls"]),
    (solve(solver="ista", damp="1", **{"lambda": "0.1"}), USAGE, ["--damp", "cgls", "ista"]),
    (solve(solver="ista", monotone=True, **{"lambda": "0.1"}), USAGE, ["--monotone", "fista", "ista"]),
    (solve(solver="fista", step="0", **{"lambda": "0.1"}), USAGE, ["step", "0"]),
    (solve(solver="fista", threshold="smooth", **{"lambda": "0.1"}), USAGE, ["'smooth'", "soft"]),
    (solve(solver="cg", precondition="column-norms"), USAGE, ["--precondition", "cgls", "cg"]),
    (solve(variances="V.npy"), USAGE, ["--variances", "lsqr", "cgls"]),
    (solve(output="X.npz"), USAGE, ["--output X.npz", ".npy"]),
    (solve(solver="lsqr", variances="out.npy"), USAGE, ["--output", "--variances", "out.npy"]),
    (solve(sigma_min="0"), USAGE, ["without damping", "--sigma-min"]),
    (solve(error="1e-3"), USAGE, ["without damping", "--sigma-min"]),
    (solve(error="1e-3", damp="1", precondition="column-norms"), USAGE, ["--error", "--precondition"]),
    (solve(error="1e-3", solver="fista", **{"lambda": "1"}), USAGE, ["--error", "cgls", "fista"]),
    (solve(sigma_min="-1", damp="1"), USAGE, ["--sigma-min", "'-1'"]),
    (solve(solver="minres", sigma_min="1"), USAGE, ["--sigma-min", "cgls", "cg"]),
    (solve(matrix="XT.npy", rhs="XT.npy", sigma_min="0.1"), USAGE, ["--sigma-min is 0.1", "3 x 8"]),
    (solve(sigma_min="probable"), USAGE, ["12 x 8", "32 rows"]),
    (solve(sigma_min="probably"), USAGE, ["--sigma-min", "'probably'"]),
    (solve(conlim="10"), USAGE, ["--conlim", "lsqr, lsmr", "cgls"]),
    (["slove"], USAGE, ["'slove'", "did you mean 'solve'?"]),
    ([], USAGE, ["subcommand", "make-problem", "multiply", "solve", "info"]),
    (["plan", "--matrix-size", "9x9", "--rhs", "1", "--ranks", "1..1G+1"], USAGE, ["--ranks", "'1..1G+1'", "10000"]),
    (make(cols="-1"), USAGE, ["--cols", "'-1'"]),
    (make(kind="spd"), USAGE, ["6", "5", "square"]),
    (make(kind="multiples", dtype="f64"), USAGE, ["f64", "multiples"]),
    (make(kind="multiples", condition="9"), USAGE, ["--condition 9", "multiples"]),
    (make(kind="waves", dtype="f32"), USAGE, ["f32", "waves"]),
    (make(kind="waves", condition="9"), USAGE, ["--condition 9", "waves"]),
    (make(kind="waves", velocity="0"), USAGE, ["30 Hz at 0 m/s", "--velocity"]),
    (make(kind="waves", spacing="1e300"), USAGE, ["cannot be computed", "--spacing"]),
    (make(kind="waves", row_line="0"), USAGE, ["--row-line", "'0'"]),
    (make(kind="multiples", frequency="9"), USAGE, ["--frequency", "waves", "multiples"]),
    (make(condition="0.5"), USAGE, ["--condition", "'0.5'"]),
    (make(rows="4000000000", cols="4000000000"), USAGE, ["4000000000"]),
    (make(rows="0", cols="9007199254740993"), USAGE, ["9007199254740993"]),
    (make(out="regular/made"), BAD_OUTPUT, ["regular/made"]),
]
# These run on four ranks: two files with bad headers, of which tests/io/npy_header.cpp has every kind, and some wrong usage. All other
# usage is found before MPI matters, and one rank shows as much as four.
SEVERAL = [multiply(input="whole.npy"), solve(rhs="short.npy"),
           multiply(grid="3x2"), multiply(device="gpu"), multiply(transport="nccl"), solve(tolerance="-1e-3")]


def ranks_of(number, words, status):
    """What rank 0 finds in files, all ranks must refuse alike: two ranks show that, and some cases take four."""
    if words in SEVERAL:
        return RANKS
    return None if status == USAGE else RANKS if number % 6 == 0 else 2


def check_case(suite, words, status, mentions, ranks):
    before = sorted(suite.folder.iterdir())
    run = suite.run(*words, ranks=ranks, timeout=30)
    suite.succeeded(run, status)
    if suite.check(len(run.error_lines) == 1, "not exactly one error line:", run.command, "\n", run.errors):
        missing = [mention for mention in mentions if mention not in run.error_lines[0]]
        suite.check(not missing, "the error does not mention", missing, ":", run.error_lines[0])
    suite.check(sorted(suite.folder.iterdir()) == before, "files have come:", set(suite.folder.iterdir()) - set(before))


def check_no_elements(suite):
    """Files without elements may be wide or tall: no memory grows with such a dimension."""
    for algorithm in ("auto", "block", "summa", "stationary-a", "stationary-b"):
        for words in (multiply(matrix="most_wide.npy", input="none.npy", adjoint=True, algorithm=algorithm),
                      multiply(matrix="most_tall.npy", input="none.npy", algorithm=algorithm),
                      solve(matrix="most_wide.npy", rhs="none.npy", algorithm=algorithm, dry_run=True),
                      solve(matrix="most_tall.npy", rhs="most_tall.npy", algorithm=algorithm, dry_run=True)):
            suite.succeeded(suite.run(*words, ranks=2, shell="ulimit -v 4000000; {}"))
    suite.check(np.load(suite.folder / "out.npy").shape == (2**53, 0), "shape of a product without elements")
    (suite.folder / "out.npy").unlink()


def check_environment(suite):
    run = suite.run(*solve(), ranks=None, environment={"GRIDLOPS_SOLVE_TOLERANCE": "tight"})
    suite.succeeded(run, USAGE)
    suite.check("'tight'" in run.errors and "GRIDLOPS_SOLVE_TOLERANCE" in run.errors, "source is not told:", run.errors)
    run = suite.run(*solve(), environment={"GRIDLOPS_BENCH_SOLVE_ITERATIONS": "none"})
    suite.succeeded(run)
    suite.check(not run.warning_lines, "a variable of gridlops-bench matters to gridlops:", run.errors)
    # Unknown variables are reported once, with the name that may have been meant. Those of the library, the tests and the
    # benchmark are known.
    unknown = {"GRIDLOPS_MULTIPLY_PANNEL": "GRIDLOPS_MULTIPLY_PANEL", "GRIDLOPS_SOLVE_DAMPP": "GRIDLOPS_SOLVE_DAMP",
               "GRIDLOPS_KERNEL": "GRIDLOPS_KERNELS", "GRIDLOPS_NOTHING_OF_OURS": None}
    known = {"GRIDLOPS_CALIBRATION": "off", "GRIDLOPS_CHECK": "off", "GRIDLOPS_KERNELS": "auto", "GRIDLOPS_THREADS": "2", "GRIDLOPS_TIMEOUT": "600", "GRIDLOPS_DEVICE_MPI": "auto",
             "GRIDLOPS_TEST_SOMETHING": "1", "GRIDLOPS_EMULATION_SOMETHING": "1", "GRIDLOPS_BENCH_SOLVE_ROWS": "many", "GRIDLOPS_SOLVE_DAMP": "0.5"}
    run = suite.run(*multiply(), ranks=2, environment={**known, **dict.fromkeys(unknown, "3")})
    suite.succeeded(run)
    suite.check(len(run.warning_lines) == len(unknown), "not one warning for each unknown variable:", run.errors)
    for name, meant in unknown.items():
        lines = [line for line in run.warning_lines if f" {name} " in line]
        suite.check(len(lines) == 1 and (f"did you mean '{meant}'?" in lines[0]) == (meant is not None),
                    "no warning of", name, ":", run.errors)
    names = variables_of_library()
    suite.check(names and names <= set(known), "variables of the library that are not tested here:", names - set(known))
    (suite.folder / "out.npy").unlink()


def variables_of_library():
    return {name for path in (ROOT / "lib").rglob("*.[ch]pp") for name in re.findall(r'"(GRIDLOPS_\w+)"', path.read_text(encoding="utf-8"))}


# Values that a variable cannot have, and what the error says that it can.
WRONG_SETTINGS = {
    "GRIDLOPS_CHECK": (["foo", "ALL", "entry "], "entry, off or all"),
    "GRIDLOPS_DEVICE_MPI": (["foo"], "auto or staged"),
    "GRIDLOPS_KERNELS": (["foo", "AVX2"], "auto, blas, "),
    "GRIDLOPS_THREADS": (["foo", "0", "-1", "2x", "99999999999"], "the number of threads of each rank, at least 1"),
    "GRIDLOPS_TIMEOUT": (["-1", "soon", "1e10", "nan"], "a number of seconds, at most a billion, or 0 for no limit"),
    "GRIDLOPS_TRACE": (["foo"], "off, summary, tree, chrome:FILE"),
}


def check_wrong_settings(suite):
    """A variable with a wrong value is one line of rank 0, and a usual end, before anything is read or written."""
    others = variables_of_library() - set(WRONG_SETTINGS)
    suite.check(others == {"GRIDLOPS_CALIBRATION"}, "variables that are not the name of a file, but have no wrong value here:", others)
    cases = [(ranks, name, value, allowed, {"environment": {name: value}})
             for name, (values, allowed) in WRONG_SETTINGS.items() for value in values
             for ranks in ((None, 2, RANKS) if value == values[0] else (None,))]
    # What one rank alone has wrong, all ranks refuse. Those of the programs are rank 0's.
    alone = ["sh", "-c", 'test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 || export "$0"; exec "$@"']
    cases += [(ranks, name, values[0], allowed, {"on_each_rank": [*alone, f"{name}={values[0]}"]})
              for ranks, name in ((2, "GRIDLOPS_THREADS"), (RANKS, "GRIDLOPS_CHECK"))
              for values, allowed in (WRONG_SETTINGS[name],)]
    for ranks, name, value, allowed, how in cases:
        run = suite.run(*multiply(), ranks=ranks, timeout=30, **how)
        suite.succeeded(run, USAGE)
        prefix = "rank 1: " if "on_each_rank" in how else ""
        suite.check(len(run.own_lines) == 1 and run.own_lines[0].startswith(f"gridlops: error: {prefix}{name} is '{value}'")
                    and allowed in run.own_lines[0], name, value, "on", ranks, "ranks is not one error with what is allowed:", run.errors)
        suite.check("MPI_ABORT" not in run.errors and "MPI_Abort" not in run.errors, name, value, ": the job was aborted:", run.errors)
    suite.check(not (suite.folder / "out.npy").exists(), "an output of a run that was refused")
    # Ranks with comparisons of their own would wait for each other.
    for condition in ("=", "!="):
        on_some = ["sh", "-c", f'test "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" {condition} 0 || export GRIDLOPS_CHECK=all; exec "$0" "$@"']
        suite.succeeded(suite.run(*multiply(), ranks=2, timeout=30, on_each_rank=on_some))
    (suite.folder / "out.npy").unlink()


def check_disk_limits(suite):
    """A file that may not grow is an error on all ranks and keeps what was there. So is a full standard output."""
    (suite.folder / "out.npy").write_bytes(b"old")
    # MPI's own files stay below this limit of 64 MiB (in blocks of 512 bytes); A is a little larger.
    run = suite.run(*make(rows="3000", cols="3000", out="big"), ranks=RANKS, shell="ulimit -f 131072; {}")
    suite.succeeded(run, BAD_OUTPUT)
    suite.check(len(run.error_lines) == 1, "not exactly one error line:", run.errors)
    left = [path.name for path in (suite.folder / "big").iterdir()]
    suite.check(left == [".gridlops-problem"], "files of a failed run:", left)
    suite.succeeded(suite.run("info", shell="{} > /dev/full"), BAD_OUTPUT)
    suite.succeeded(suite.run("--help", shell="{} > /dev/full"), BAD_OUTPUT)
    suite.check((suite.folder / "out.npy").read_bytes() == b"old", "an old output was lost")


def check_memory(suite):
    run = suite.run(*make(rows="20000000", cols="20000000"), ranks=RANKS)
    suite.succeeded(run, NO_MEMORY)
    suite.check(len(run.error_lines) == 1, "not exactly one error line:", run.errors)


def test(suite, full):
    write_files(suite.folder)
    for number, (words, status, mentions) in enumerate(CASES):
        check_case(suite, words, status, mentions, ranks_of(number, words, status))
    check_no_elements(suite)
    check_environment(suite)
    check_wrong_settings(suite)
    check_disk_limits(suite)
    check_memory(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
