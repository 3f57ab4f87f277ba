#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Solves with A on disks and with A in memory: the disks' rate that is reached, the speed beside that in memory, bits, and memory.

streamed.py BUILD [--ranks 2] [--rows 27000] [--cols 27000] [--columns 8,64,192] [--share 3] [--iterations 6] [--scratch DIR] [--turns 3]
            [--no-memory]

A has random elements, the bytes of all ranks' memory times --share. Each turn measures the disks by --dry-run, and solves with A in
tiles on disks, in its file (in place), and in memory (packed), with one pass and with two; the bits must be the same. Seconds are those
of an iteration, of the slowest rank, and of setting up; the median of the turns. With --no-memory nothing is solved in memory, because
A does not fit there."""
import argparse
import collections
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def make(folder, rows, cols, columns):
    """A in C order, some rows at a time, and B."""
    A = np.lib.format.open_memmap(folder / "A.npy", "w+", "float64", (rows, cols))
    rng = np.random.default_rng(1)
    for first in range(0, rows, 1024):
        A[first:first + 1024] = rng.random((min(1024, rows - first), cols)) - 0.5
    A.flush()
    np.save(folder / "B.npy", rng.standard_normal((rows, columns)))


def main():
    numbers = lambda text: [int(each) for each in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=27000)
    parser.add_argument("--cols", type=int, default=27000)
    parser.add_argument("--columns", type=numbers, default=[8, 64, 192])
    parser.add_argument("--share", type=float, default=3)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--no-memory", action="store_true")
    asked = parser.parse_args()
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    memory = int(8 * asked.rows * asked.cols / asked.share / asked.ranks)
    with tempfile.TemporaryDirectory(dir=asked.scratch) as temporary:
        folder = Path(temporary)
        make(folder, asked.rows, asked.cols, max(asked.columns))
        everything = np.load(folder / "B.npy")

        def solve(*options):
            run = subprocess.run([launch, str(asked.ranks), asked.build / "apps/gridlops", "solve", "--matrix", folder / "A.npy", "--rhs", folder / "b.npy", "--output",
                                  folder / "X.npy", "--report", folder / "report.json", "--algorithm", "stationary-a", "--grid", f"{asked.ranks}x1", "--damp", "10",
                                  "--iterations", str(asked.iterations), "--tolerance", "0", "--quiet", *map(str, options)], check=False, capture_output=True, text=True)
            assert run.returncode in (0, 3), run.stderr
            return run.stdout

        def solved(*options):
            solve(*options)
            return json.loads((folder / "report.json").read_text(encoding="utf-8")), (folder / "X.npy").read_bytes()

        in_place = ["--storage", "disk", "--memory", memory]
        ways = {"tiles": [*in_place, "--scratch", asked.scratch], "in place": in_place}
        for columns in asked.columns:
            np.save(folder / "b.npy", everything[:, :columns])
            figures = collections.defaultdict(list)
            for _ in range(asked.turns):
                bits = {}
                for way, options in ways.items():
                    plan = solve(*options, "--dry-run")
                    number, unit = re.search(r"deliver ([\d.]+) (\w+)/s", plan).groups()
                    rate = float(number) * UNITS[unit] / 1e9
                    figures[f"{way}: disks, GB/s"].append(rate)
                    for passes in ("on", "off"):
                        report, bits[way, passes] = solved(*options, "--one-pass", passes)
                        assert report["figures"]["disk_in_place"] == (way == "in place")
                        seconds = report["prediction"]["seconds"]["measured"]
                        read = report["figures"]["disk_bytes"] * (1 if passes == "on" else 2)
                        figures[f"{way}: seconds"].append(seconds)
                        figures[f"{way}: seconds of setting up"].append(report["seconds"]["read"])
                        figures[f"{way}: of the disks' rate"].append(read / seconds / 1e9 / rate)
                        figures[f"{way}: peak over the memory allowed"].append(max(report["memory_bytes"]["peak"]) / memory)
                for passes in () if asked.no_memory else ("on", "off"):
                    report, bits["memory", passes] = solved("--storage", "packed", "--one-pass", passes)
                    figures["in memory: seconds"].append(report["prediction"]["seconds"]["measured"])
                for passes in ("on", "off"):
                    assert len({found for (_, of), found in bits.items() if of == passes}) == 1, "other bits"
            print(f"{columns} columns, medians with one pass on, off:")
            for name, values in figures.items():
                both = (values[::2], values[1::2]) if len(values) == 2 * asked.turns else (values,)
                print(f"    {name}:", *(f"{statistics.median(each):.3g}" for each in both), flush=True)
            print("    " + plan.strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
