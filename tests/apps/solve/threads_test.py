# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the threads of a rank change no bit of any result, where products are column-stable or operators are the library's
own. threads_test.py LAUNCH PROGRAM"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

THREADS = (1, 2, 5)
RUNS = {
    "two passes": ["solve", "--one-pass", "off", "--storage", "columns"],
    "packed": ["solve", "--one-pass", "off", "--storage", "packed"],
    "one pass": ["solve", "--one-pass", "on"],
    "lsqr": ["solve", "--solver", "lsqr", "--damp", "0.1"],
}
USE_CASES = {
    "lsm": ["--iterations", 4],
    "mdd": ["--nx", 31, "--ny", 23, "--samples", 120, "--nf", 40, "--dtype", "f64", "--iterations", 4],
    "poststack": ["--iterations", 4],
}


def bits(suite, name, words, outputs, ranks):
    """The bytes of the outputs by the number of threads, which must be alike."""
    found = {}
    for threads in THREADS:
        run = suite.run(*words, "--report", "R.json", ranks=ranks, timeout=300, environment={"GRIDLOPS_THREADS": str(threads)})
        if not suite.check(run.status in (0, 3), name, "status", run.status, run.errors):
            return
        taken = json.loads((suite.folder / "R.json").read_text())["machine"]["threads"]
        suite.check(taken == threads, name, "took", taken, "threads instead of", threads)
        found[threads] = {path.name: path.read_bytes() for path in sorted(suite.folder.glob(outputs))}
        for path in suite.folder.glob(outputs):
            array = np.load(path)
            suite.check(np.isfinite(array).all() and np.abs(array).max() > 0, name, "computed nothing:", path)
    for threads in THREADS[1:]:
        differ = [output for output in found[1] if found[threads][output] != found[1][output]]
        suite.check(not differ, f"{name} on {ranks} ranks has other bits with {threads} threads:", *differ)


def check_products(suite):
    """A is larger than what one thread multiplies, neither its rows nor its columns fill tiles, and X has odd columns."""
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.complex128):
        for name, shape in {"A": (1201, 703), "B": (1201, 9)}.items():
            values = rng.standard_normal(shape)
            np.save(suite.folder / f"{name}.npy", (values if dtype == np.float32 else values + 1j * rng.standard_normal(shape)).astype(dtype))
        for name, words in RUNS.items():
            for ranks in (1, 2):
                bits(suite, f"{name}, {np.dtype(dtype)}", [*words, "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--column-stable",
                                                           "--iterations", 8, "--tolerance", "1e-300"], "X.npy", ranks)


def check_use_cases(suite):
    for name, words in USE_CASES.items():
        for ranks in (1, 2):
            bits(suite, name, [name, *words, "--save", "saved"], "saved/*.npy", ranks)


def test(suite, _):
    check_products(suite)
    check_use_cases(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
