#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes a matrix as .npy, as a dataset, and by HDF5's parallel driver, in turn, on 1, 2 and 4 ranks.

    bench/peers/hdf5_rates.py build [ROWS COLS [PAIRS]]

A is in blocks of a near-square grid, as `--algorithm summa` has it. The parallel driver is h5py's, with independent and with
collective transfers (Debian: python3-h5py-mpi); a rank reads or writes the same block, without turning it into columns. All that
is written is on the disk before the clock stops. Prints the rate of each way in MB/s, in the median, and the median ratios of
times to that of .npy in the same turn. GRIDLOPS_BENCH_FOLDER is where the files go."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2)}


def block_of(rank, grid, shape):
    """This rank's part, balanced: larger parts first."""
    def part(size, parts, k):
        begin = k * (size // parts) + min(k, size % parts)
        return slice(begin, begin + size // parts + (k < size % parts))
    return part(shape[0], grid[0], rank // grid[1]), part(shape[1], grid[1], rank % grid[1])


def by_driver(path, collective):
    """What every rank of h5py runs: reads its block, and writes it to another file. Rank 0 prints the seconds."""
    import contextlib
    import time

    import h5py
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    seconds = {}

    def transfer(dataset, work):
        with dataset.collective if collective else contextlib.nullcontext():
            work(dataset)

    for way in ("read", "write"):
        world.Barrier()
        begin = time.perf_counter()
        with h5py.File(path if way == "read" else f"{path}.out", "r" if way == "read" else "w", driver="mpio", comm=world) as file:
            if way == "read":
                shape = file["A"].shape
                block = block_of(world.rank, GRIDS[world.size], shape)
                mine = np.empty([part.stop - part.start for part in block])
                transfer(file["A"], lambda dataset: dataset.read_direct(mine, block))
            else:
                transfer(file.create_dataset("A", shape, "f8"), lambda dataset: dataset.__setitem__(block, mine))
        if way == "write":
            with open(f"{path}.out", "rb") as file:
                os.fsync(file.fileno())
        seconds[way] = world.allreduce(time.perf_counter() - begin, op=MPI.MAX)
    if world.rank == 0:
        print(json.dumps(seconds))


class Ways:
    """Every way to read and write the same matrix."""

    def __init__(self, build, folder, rows, cols, ranks):
        self.launch = pathlib.Path(__file__).resolve().parents[2] / "tests/support/launch"
        self.program = pathlib.Path(build).resolve() / "apps/gridlops"
        self.folder, self.rows, self.cols, self.ranks = folder, rows, cols, ranks

    def run(self, *words):
        environment = {**os.environ, "GRIDLOPS_CALIBRATION": "off", "OPENBLAS_NUM_THREADS": "1"}
        command = [str(word) for word in (self.launch, self.ranks, *words)]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def program_seconds(self, matrix, output):
        """Of reading A for A x, and of writing the outer product of two vectors."""
        grid = "x".join(map(str, GRIDS[self.ranks]))
        seconds = []
        for a, x, y in ((matrix, "x.npy", "y.npy"), ("column.npy", "row.npy", output)):
            self.run(self.program, "multiply", "--matrix", self.folder / a, "--input", self.folder / x, "--output", self.folder / y, "--grid",
                     grid, "--algorithm", "summa", "--report", self.folder / "R.json")
            seconds.append(json.loads((self.folder / "R.json").read_text(encoding="utf-8"))["seconds"])
        return {"read": seconds[0]["read"], "write": seconds[1]["write"]}

    def driver_seconds(self, collective):
        return json.loads(self.run(sys.executable, __file__, "--rank", self.folder / "A.h5", "collective" if collective else "independent"))

    def seconds(self):
        """By the name of the way. What was written before is removed, so that all write new files."""
        found = {}
        for name, work in {".npy": lambda: self.program_seconds("A.npy", "Y.npy"), "dataset": lambda: self.program_seconds("A.h5:/A", "Y.h5:/Y"),
                           "chunks": lambda: self.program_seconds("C.h5:/A", "Z.h5:/Y"), "driver, independent": lambda: self.driver_seconds(False),
                           "driver, collective": lambda: self.driver_seconds(True)}.items():
            for old in ("Y.npy", "Y.h5", "Z.h5", "A.h5.out"):
                (self.folder / old).unlink(missing_ok=True)
            found[name] = work()
        return found


def main(build, rows=6000, cols=6000, pairs=5):
    import h5py
    import numpy as np

    rows, cols = int(rows), int(cols)
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRIDLOPS_BENCH_FOLDER")) as scratch:
        folder = pathlib.Path(scratch)
        A = np.random.default_rng(1).uniform(-1, 1, (rows, cols))
        np.save(folder / "A.npy", np.asfortranarray(A))
        for name, options in {"A.h5": {}, "C.h5": {"chunks": (min(512, rows), min(512, cols))}}.items():
            with h5py.File(folder / name, "w") as file:
                file.create_dataset("A", data=A, **options)
        for name, shape in {"x": (cols, 1), "column": (rows, 1), "row": (1, cols)}.items():
            np.save(folder / f"{name}.npy", np.ones(shape))
        for ranks in GRIDS:
            ways = Ways(build, folder, rows, cols, ranks)
            turns = [ways.seconds() for _ in range(int(pairs))]
            print(f"{ranks} ranks, {rows} x {cols} f64, median of {len(turns)}:")
            for name in turns[0]:
                line = f"  {name:20}"
                for way in ("read", "write"):
                    rate = statistics.median(8e-6 * rows * cols / turn[name][way] for turn in turns)
                    ratio = statistics.median(turn[name][way] / turn[".npy"][way] for turn in turns)
                    line += f"  {way} {rate:7.0f} MB/s, {ratio:5.2f} times .npy's time"
                print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        by_driver(sys.argv[2], sys.argv[3] == "collective")
    elif 2 <= len(sys.argv) <= 5:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
