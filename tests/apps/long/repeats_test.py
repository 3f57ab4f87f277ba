# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the same solve on the same grid, by the same threads and transport, has the same bits in each of 20 runs, half of
them beside busy processes. repeats_test.py LAUNCH PROGRAM"""
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

RUNS = 20
BUSY = "while True: pass"

# Transport, ranks, grid, algorithm, threads of a rank, more options.
CASES = [
    ("mpi", 4, "2x2", "summa", 1, []),
    ("mpi", 4, "4x1", "stationary-a", 1, ["--one-pass", "on"]),
    ("mpi", 2, "1x2", "stationary-a", 2, ["--solver", "lsqr"]),
    ("chain", 4, "2x2", "summa", 1, []),
    ("shared", 4, "2x2", "summa", 1, []),
    ("shared", 3, "3x1", "stationary-a", 1, ["--solver", "block-cgls"]),
    ("one-sided", 4, "2x2", "summa", 1, []),
]


@contextlib.contextmanager
def load(is_wanted):
    """A busy process on each core on which this one may run."""
    processes = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", BUSY]) for core in sorted(os.sched_getaffinity(0))] \
        if is_wanted else []
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_case(suite, case):
    transport, ranks, grid, algorithm, threads, more = case
    what = f"{transport} {grid} {algorithm}, {threads} threads {' '.join(more)}"
    first = None
    for repeat in range(RUNS):
        with load(repeat % 2 == 1):
            run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--history", "H.csv", "--quiet",
                            "--grid", grid, "--algorithm", algorithm, "--transport", transport, "--iterations", "40",
                            "--tolerance", "1e-300", *more, ranks=ranks,
                            on_each_rank=["env", f"OPENBLAS_NUM_THREADS={threads}", f"GRIDLOPS_THREADS={threads}"])
        if not suite.check(run.status in (0, 3), what, "status", run.status, run.errors):
            return
        bits = [(suite.folder / name).read_bytes() for name in ("X.npy", "H.csv")]
        first = first or bits
        suite.check(bits == first, f"run {repeat} of {what} has other bits: X",
                    "alike," if bits[0] == first[0] else "differs,", "history", "alike" if bits[1] == first[1] else "differs")
    X = np.load(suite.folder / "X.npy")
    suite.check(np.isfinite(X).all() and np.abs(X).max() > 0, what, "solved nothing")


def test(suite, _):
    rng = np.random.default_rng(11)
    for name, shape in {"A": (701, 403), "B": (701, 7)}.items():
        np.save(suite.folder / f"{name}.npy", rng.standard_normal(shape))
    for case in CASES:
        run_case(suite, case)


if __name__ == "__main__":
    program.main(test, __doc__)
