#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the promise of `--solver auto`: at most about twice the time of the better of direct and the solver that began.

    bench/peers/auto.py build [--sizes 3000x1500,60000x500,500x20000] [--rhs 1,64,1000] [--conditions 10,1e3,1e6]
                              [--damps 0,1e-3] [--turns 3]

Two ranks of one thread each; first calibrates the machine with them. A has norm 1, singular values that fall geometrically, and
B = AX + noise of one per cent, as for direct_solve.py. In turn: direct, auto, and the solver with which auto began, which is
ended where it takes 4 times as long as direct. Prints a row for each case: the load, medians of the seconds that each takes
without files, the predicted seconds of direct, auto over the better of direct and the solver that began, and what gave X."""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np

from direct_solve import RANKS, make_problem

LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "tests/support/launch"


class Program:
    def __init__(self, build, folder):
        self.program, self.folder = pathlib.Path(build).resolve() / "apps/gridlops", folder
        self.environment = {**os.environ, "GRIDLOPS_CALIBRATION": str(folder / "machine.json")}
        self.run("calibrate", "--dtype", "f64", "--transport", "mpi")

    def run(self, *words, seconds=None):
        subprocess.run([LAUNCH, str(RANKS), self.program, *map(str, words)], capture_output=True, env=self.environment, timeout=seconds,
                       check=words[0] == "calibrate")

    def solve(self, solver, damp, seconds=None):
        """The report, or none if it took longer than that."""
        report = self.folder / "R.json"
        report.unlink(missing_ok=True)
        try:
            self.run("solve", "--matrix", self.folder / "A.npy", "--rhs", self.folder / "B.npy", "--damp", damp, "--solver", solver, "--iterations", 100000,
                     "--output", self.folder / "X.npy", "--report", report, "--quiet", seconds=seconds)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(report.read_text(encoding="utf-8"))


def median(reports):
    return statistics.median(report["seconds"]["compute"] if report else float("inf") for report in reports)


def measure(program, damp, turns):
    direct, automatic, first = [], [], []
    for turn in range(turns):
        direct.append(program.solve("direct", damp))
        automatic.append(program.solve("auto", damp))
        figures, options = automatic[-1].get("figures", {}), automatic[-1]["options"]
        began = "cgls" if "took the place of cgls" in options.get("changed", "") else \
            "block-cgls" if "took the place of block-cgls" in options.get("changed", "") else automatic[-1]["solver"]
        if began == "direct":
            began = "cgls"  # the factor was made at once
        if turn == 0:
            name = began
        start = 10 + sum(direct[-1]["seconds"].values())
        first.append(program.solve(name, damp, start + 4 * direct[-1]["seconds"]["compute"]))
    last = automatic[-1]
    how = f"{last['solver']} after {figures['first_solver_iterations']:.0f} iterations of {name}" if "changed" in options else last["solver"]
    return median(direct), figures.get("direct_seconds_predicted"), name, median(first), median(automatic), how


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--sizes", default="3000x1500,60000x500,500x20000")
    parser.add_argument("--rhs", default="1,64,1000")
    parser.add_argument("--conditions", default="10,1e3,1e6")
    parser.add_argument("--damps", default="0,1e-3")
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'size':>11} {'rhs':>5} {'kappa':>6} {'D':>6} {'load':>5} {'direct':>8} {'model':>8} {'began':>10} {'alone':>8} {'auto':>8} {'ratio':>6}  X by")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        program = Program(asked.build, folder)
        for size, rhs, condition in itertools.product(asked.sizes.split(","), map(int, asked.rhs.split(",")), map(float, asked.conditions.split(","))):
            A, B = make_problem(*map(int, size.split("x")), rhs, condition)
            np.save(folder / "A.npy", np.asfortranarray(A))
            np.save(folder / "B.npy", np.asfortranarray(B))
            for damp in asked.damps.split(","):
                direct, model, name, first, automatic, how = measure(program, damp, asked.turns)
                predicted = "at once" if model is None else f"{model:.3f}"
                print(f"{size:>11} {rhs:>5} {condition:>6g} {damp:>6} {os.getloadavg()[0]:>5.1f} {direct:>8.3f} {predicted:>8} {name:>10} {first:>8.3f} "
                      f"{automatic:>8.3f} {automatic / min(direct, first):>6.2f}  {how}", flush=True)


if __name__ == "__main__":
    main()
