# SPDX-License-Identifier: BSD-3-Clause
"""Compares products of `gridlops multiply` with NumPy's in extended precision: grids, algorithms, types, directions, file
orders, and shapes that no grid divides. multiply_test.py LAUNCH PROGRAM [--full: every combination]"""
import itertools
import random

import numpy as np

import program

ALGORITHMS = ["block", "summa", "stationary-a", "stationary-b"]
# Grid, and the ranks that it runs on: more than it needs in one case.
GRIDS = [((1, 1), 1), ((1, 3), 3), ((2, 1), 2), ((2, 2), 4), ((2, 2), 5), ((2, 3), 6), ((3, 2), 6)]
# rows, columns, right-hand sides: not divisible; smaller than the grid; with a dimension of zero.
USUAL = (31, 23, 7)
ODD = [(1, 1, 1), (2, 1, 1), (1, 5, 3), (40, 3, 2), (3, 40, 1), (0, 4, 3), (4, 0, 3), (4, 5, 0), (0, 0, 0)]


def check_product(suite, rng, grid, ranks, algorithm, name, adjoint, fortran, shape=USUAL, panel=0, transport=None,
                  reported=None):
    rows, cols, nrhs = shape
    A = program.random_matrix(rng, (rows, cols), name)
    X = program.random_matrix(rng, (rows if adjoint else cols, nrhs), name)
    order = np.asfortranarray if fortran else np.ascontiguousarray
    np.save(suite.folder / "A.npy", order(A))
    np.save(suite.folder / "X.npy", order(X))
    what = [f"{grid[0]}x{grid[1]} on {ranks}", algorithm, name, "adjoint" if adjoint else "forward",
            "Fortran" if fortran else "C", shape, f"panel {panel}"]
    run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy", "--report", "R.json",
                    "--grid", f"{grid[0]}x{grid[1]}", "--algorithm", algorithm, "--panel", panel,
                    *(["--adjoint"] if adjoint else []), *(["--transport", transport] if transport else []), ranks=None if ranks == 1 else ranks)
    if not suite.succeeded(run):
        return
    Y = np.load(suite.folder / "Y.npy")
    suite.check(Y.dtype == program.TYPES[name], "type", Y.dtype, *what)
    op = (A.conj().T if adjoint else A).astype(program.WIDE[name])
    wide = X.astype(program.WIDE[name])
    # The error of a sum of k products is some √k·ε times its bound by Cauchy and Schwarz.
    size = np.linalg.norm(op.astype(complex), axis=1)[:, None] * np.linalg.norm(wide.astype(complex), axis=0)
    suite.close(Y, op @ wide, (4 + np.sqrt(op.shape[1])) * program.epsilon(name) * size, *what)
    report = suite.report("R.json", "multiply", ranks, grid, reported or transport)
    suite.check((report["rows"], report["cols"], report["nrhs"]) == shape, "report: shape", report, *what)
    suite.check((report["dtype"], report["algorithm"]) == (name, algorithm), "report: names", report, *what)
    if algorithm == "stationary-a" and 0 not in shape and transport in (None, "mpi", "chain"):
        suite.check(sum(report["bytes_received"]) == stationary_a_bytes(grid, shape, A.itemsize), "bytes", report, *what)


def stationary_a_bytes(grid, shape, size):
    """The bytes that all ranks receive together: X gathered in grid columns, Y reduce-scattered in grid rows, or the reverse."""
    return size * shape[2] * ((grid[0] - 1) * shape[1] + (grid[1] - 1) * shape[0])


def check_grids(suite, rng, full):
    choices = list(itertools.product(program.TYPES, [False, True], [False, True]))
    deck = random.Random(7)
    hand = []
    for (grid, ranks), algorithm in itertools.product(GRIDS, ALGORITHMS):
        if not hand:
            hand = deck.sample(choices, len(choices))  # every type, direction and order comes up equally often
        for name, adjoint, fortran in choices if full else [hand.pop()]:
            check_product(suite, rng, grid, ranks, algorithm, name, adjoint, fortran)


def check_transports(suite, rng, full):
    if program.DEVICE != "cpu":
        return
    transports = ["mpi", "chain", "one-sided", "shared", "mixed", "auto"]
    for (k, transport), algorithm, adjoint in itertools.product(enumerate(transports), ["summa", "stationary-a"], [False, True]):
        if full or adjoint == ((algorithm == "summa") == (k % 2 == 0)):
            reported = "shared" if transport in ("mixed", "auto") else transport
            check_product(suite, rng, (2, 2), 4, algorithm, "c128", adjoint, True, transport=transport, reported=reported)
    check_product(suite, rng, (1, 1), 1, "summa", "f64", False, True, transport="auto", reported="mpi")


def check_shapes(suite, rng, full):
    deck = random.Random(8)
    for k, (shape, algorithm) in enumerate(itertools.product(ODD, ALGORITHMS)):
        adjoint, name = deck.random() < 0.5, deck.choice(list(program.TYPES))
        if full or program.DEVICE == "cpu" or k % 4 == k // 4 % 4:
            check_product(suite, rng, (1, 1), 1, algorithm, name, adjoint, False, shape)
    for k, (shape, algorithm) in enumerate(itertools.product(ODD, ALGORITHMS)):
        if full or k % 4 == k // 4 % 4:
            check_product(suite, rng, (2, 3), 6, algorithm, "c64", k % 2 == 1, True, shape)
    for algorithm, adjoint in itertools.product(["summa", "stationary-b"], [False, True]):
        if full or adjoint == (algorithm == "summa"):
            check_product(suite, rng, (2, 3), 6, algorithm, "f64", adjoint, False, panel=3)


def check_vectors(suite, rng):
    """One-dimensional X gives one-dimensional Y; `auto` chooses; tall products take the grid that moves least."""
    A, x = program.random_matrix(rng, (9, 5), "f64"), program.random_matrix(rng, (5,), "f64")
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "x.npy", x)
    run = suite.run("multiply", "--matrix", "A.npy", "--input", "x.npy", "--output", "y.npy", "--report", "R.json", ranks=4)
    if suite.succeeded(run):
        suite.close(np.load(suite.folder / "y.npy"), A @ x, 20 * program.epsilon("f64"), "one-dimensional")
        report = suite.report("R.json", "multiply", 4, (1, 4))
        suite.check(report["algorithm"] in ALGORITHMS, "auto is reported as", report["algorithm"])
        suite.check(len(run.output.splitlines()) == 1, "prints one line, not", run.output)


def check_bytes_of_ranks(suite, rng):
    """Of five rows of X the first rank has three: it sends them, and receives two."""
    np.save(suite.folder / "A.npy", program.random_matrix(rng, (9, 5), "f64"))
    np.save(suite.folder / "X.npy", program.random_matrix(rng, (5, 2), "f64"))
    run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy", "--report", "R.json", "--grid", "2x1", "--algorithm",
                    "stationary-a", ranks=2)
    if suite.succeeded(run):
        report = suite.report("R.json", "multiply", 2, (2, 1))
        suite.check((report["bytes_sent"], report["bytes_received"]) == ([48, 32], [32, 48]), "bytes of ranks", report)


def check_first_rank_decides(suite):
    """Arguments and environments of ranks other than 0, which launchers may lose or change, do not matter."""
    script = ('if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" != 0 ]; then'
              ' export GRIDLOPS_MULTIPLY_PANEL=wide GRIDLOPS_MULTIPLY_ADJOINT=1; set -- "$1" info --unknown; fi; exec "$@"')
    run = suite.run("multiply", "--matrix", "A.npy", "--input", "x.npy", ranks=3, on_each_rank=["sh", "-c", script, "sh"],
                    environment={"GRIDLOPS_MULTIPLY_OUTPUT": "z.npy"})
    if suite.succeeded(run):
        suite.close(np.load(suite.folder / "z.npy"), np.load(suite.folder / "A.npy") @ np.load(suite.folder / "x.npy"),
                    20 * program.epsilon("f64"), "with other words on other ranks")


def test(suite, full):
    rng = np.random.default_rng(1)
    check_grids(suite, rng, full)
    check_transports(suite, rng, full)
    check_shapes(suite, rng, full)
    check_vectors(suite, rng)
    check_bytes_of_ranks(suite, rng)
    check_first_rank_decides(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
