#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An element of A changes in the memory of one rank during a solve: --verify-matrix and --guard notice, and say where."""
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)


def test(suite, _):
    rng = np.random.default_rng(1)
    np.save(suite.folder / "A.npy", program.random_matrix(rng, (30, 20), "f64") + 10 * np.eye(30, 20))
    np.save(suite.folder / "B.npy", program.random_matrix(rng, (30, 4), "f64"))
    output = suite.folder / "X.npy"
    # The program's BLAS multiplies, for which the library stands that changes A.
    faulty = {"LD_PRELOAD": os.environ["GRIDLOPS_TEST_INJECTED"], "GRIDLOPS_FAULT": "1:cblas_dgemm:10:flip", "GRIDLOPS_KERNELS": "blas"}

    def solve(*options, environment, status):
        output.unlink(missing_ok=True)
        run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", "--grid", "1x2",
                        "--algorithm", "stationary-a", "--storage", "columns", *options, ranks=2, environment=environment)
        suite.succeeded(run, status)
        return run

    if program.DEVICE != "cpu":
        return
    sound = solve("--verify-matrix", "--guard", 3, environment={"GRIDLOPS_KERNELS": "blas"}, status=0)
    suite.check(not sound.own_lines and output.exists(), "without a fault", sound.errors)

    run = solve("--verify-matrix", environment=faulty, status=1)
    suite.check(len(run.error_lines) == 1 and "A.npy has changed in memory" in run.errors
                and "these blocks: that of rank 1, rows 0 to 29, columns 10 to 19." in run.errors, "no place", run.errors)
    suite.check(not output.exists(), "X was written")

    run = solve("--guard", 3, environment=faulty, status=0)
    report = suite.report("R.json", "solve", 2, (1, 2))
    alarms = report["guard"]["alarms"]
    suite.check({alarm["column"] for alarm in alarms} == {0, 1, 2, 3} and all(alarm["found"] > alarm["limit"] for alarm in alarms),
                "alarms", alarms)
    suite.check(len(run.warning_lines) == len(alarms) and "the guard found right-hand side 0 wrong after iteration" in run.errors,
                "warnings", run.errors)


if __name__ == "__main__":
    program.main(test, __doc__)
