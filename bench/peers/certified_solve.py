#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Solves with a compressed matrix for the original, and with the original alone: passes over A, and bytes of products in passes.

certified_solve.py BUILD [--ranks 2] [--size 4096] [--hertz 40] [--damps 1e-1,1e-2,1e-3] [--first 1e-3] [--passes 6] [--tolerance 1e-10]
                   [--folder DIR]

A is that of `gridlops make-problem --kind waves` with SIZE stations on either side, and has one right-hand side. `gridlops solve
--certify` gets A compressed to the first tolerance. Its error falls by the measured contraction in a step, which is proportional to
the tolerance: the second one is that with which this many passes over A are enough. A pass is one product with A and one with its
adjoint; products with the compressed matrix count by its bytes. Compression reads A twice, as one pass does, which is not counted."""
import argparse
import json
import math
import subprocess
import tempfile
from pathlib import Path


def one_digit(number):
    unit = 10.0 ** math.floor(math.log10(number))
    return math.floor(number / unit) * unit


def main():
    numbers = lambda text: [float(each) for each in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--hertz", type=float, default=40)
    parser.add_argument("--damps", type=numbers, default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--first", type=float, default=1e-3)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--tolerance", type=float, default=1e-10)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"

    def run(*words, statuses=(0,)):
        ended = subprocess.run([launch, str(asked.ranks), asked.build / "apps/gridlops", *map(str, words)], check=False, capture_output=True, text=True)
        if ended.returncode not in statuses:
            raise SystemExit(f"{words}: status {ended.returncode}\n{ended.stderr}")
        return ended.returncode

    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        waves = folder / f"waves-{asked.size}-{asked.hertz:g}"
        if not (waves / "B.npy").exists():
            run("make-problem", "--rows", asked.size, "--cols", asked.size, "--rhs", 1, "--kind", "waves", "--frequency", asked.hertz, "--out", waves)

        def compressed(tolerance):
            saved = folder / f"{waves.name}-{tolerance:g}"
            if not (saved / "manifest.json").exists():
                run("compress", "--matrix", waves / "A.npy", "--output", saved, "--tolerance", tolerance, "--row-positions", waves / "row_positions.npy",
                    "--col-positions", waves / "col_positions.npy")
            return saved

        def solve(damp, *words):
            run("solve", "--rhs", waves / "B.npy", "--output", folder / "X.npy", "--damp", damp, "--tolerance", asked.tolerance, "--iterations", 100000,
                "--report", folder / "report.json", "--quiet", *words, statuses=(0, 3))
            return json.loads((folder / "report.json").read_text())

        for damp in asked.damps:
            plain = solve(damp, "--matrix", waves / "A.npy", "--algorithm", "stationary-a", "--storage", "packed")
            whole = plain["iterations"] + 1.5
            print(f"{asked.hertz:g} Hz, D {damp:g}: CGLS with A {whole:g} passes, {plain['columns'][0]['reason']}, {plain['seconds']['compute']:.1f} s", flush=True)
            tolerance = asked.first
            for turn in range(2):
                report = solve(damp, "--matrix", compressed(tolerance), "--certify", waves / "A.npy")
                saved, column = report["compressed"], report["columns"][0]
                passes, share = saved["products"]["original"] / 2, saved["bytes"] / saved["dense_bytes"]
                inner = saved["products"]["compressed"] / 2
                of_bytes = passes + inner * share
                print(f"  compressed to {tolerance:.0e}, {1 / share:.1f} times smaller: {passes:g} passes over A, {inner:g} over it, {of_bytes:.1f} passes' bytes, "
                      f"{whole / of_bytes:.1f} times fewer; contraction {column['contraction']:.1e}; {column['reason']}, {report['seconds']['compute']:.1f} s"
                      f"{'; ' + saved['refusal'] if saved['refusal'] else ''}", flush=True)
                if turn or not column["contraction"]:
                    break
                # Two passes are the start and the verdict; the first step takes out what both matrices have in common.
                steps = asked.passes - 2
                tolerance = one_digit(tolerance * asked.tolerance ** (1 / steps) / column["contraction"])


if __name__ == "__main__":
    main()
