#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compresses kernels of waves, and compares each certified error with the one that NumPy computes from all elements.

compression_errors.py BUILD [--ranks 2] [--size 4096] [--hertz 10,30,60] [--tolerances 1e-2,1e-3,1e-4] [--dtype c128] [--tile 256]
                      [--memory RANKS,…]

A is that of `gridlops make-problem --kind waves` with SIZE stations on either side. `gridlops compress` on this many ranks writes it in
the order of the file, and in that of its positions. One rank reads what was written, and multiplies it with the columns of I, some at
a time: ‖A − Ã‖_F is NumPy's norm, in double precision. Each row has the bytes of A over those that are stored, and both errors,
relative to ‖A‖_F. The exit status is 1 if an error is above its tolerance, or differs from the certified one by more than rounding.

With --memory it says instead what the rank that takes most memory takes on these numbers of ranks, more than it takes for a matrix of 64 x 64."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

def dense_error(matrix, directory):
    """Prints ‖A − Ã‖_F / ‖A‖_F from all elements, and what the files say, in a process that has MPI."""
    import gridlops as gl
    A, op = np.load(matrix, mmap_mode="r"), gl.read_compressed(directory)
    width, squares, norm = 256, 0.0, 0.0
    for begin in range(0, A.shape[1], width):
        part = np.asarray(A[:, begin:begin + width])
        columns = np.zeros((A.shape[1], part.shape[1]), A.dtype, "F")
        columns[begin + np.arange(part.shape[1]), np.arange(part.shape[1])] = 1
        exact = part.astype(np.complex128 if np.iscomplexobj(part) else np.float64)
        squares += np.linalg.norm(exact - op @ columns) ** 2
        norm += np.linalg.norm(exact) ** 2
    print(json.dumps({"dense": np.sqrt(squares / norm), **op.report}))


PEAK = ("import resource, subprocess, sys\nstatus = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(status)")


def measure(asked, folder):
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"
    of_package = {"PYTHONPATH": str((asked.build / "apps/python").resolve()), "GRIDLOPS_COMPRESSION_ERRORS": "1"}
    bad = 0

    def run(ranks, *words, **environment):
        return subprocess.run([launch, str(ranks), *map(str, words)], check=True, stdout=subprocess.PIPE, env={**os.environ, **environment}).stdout

    def program(*words):
        run(asked.ranks, asked.build / "apps/gridlops", *words)

    def make(folder, size, hertz):
        program("make-problem", "--rows", size, "--cols", size, "--rhs", 1, "--kind", "waves", "--frequency", hertz, "--dtype", asked.dtype, "--out", folder)
        return folder

    def words_of(waves, saved, tolerance, ordered):
        positions = ["--row-positions", waves / "row_positions.npy", "--col-positions", waves / "col_positions.npy"] if ordered else []
        return ["compress", "--matrix", waves / "A.npy", "--output", saved, "--tolerance", tolerance, "--tile", asked.tile, *positions]

    def stored_in(saved):
        return sum(path.stat().st_size for path in saved.rglob("*.npy"))

    def most_memory(ranks, *words):
        return 1024 * max(map(int, run(ranks, sys.executable, "-c", PEAK, asked.build / "apps/gridlops", *words).split()))

    def memory(waves, saved, tolerance, ordered):
        for ranks in asked.memory:
            shutil.rmtree(saved, ignore_errors=True)
            took = most_memory(ranks, *words_of(waves, saved, tolerance, ordered))
            shutil.rmtree(folder / "base", ignore_errors=True)
            took -= most_memory(ranks, *words_of(small, folder / "base", tolerance, False))
            share, mib = stored_in(saved) / ranks, 2**20
            print(f"{ranks} ranks: {took / mib:.1f} MiB for {share / mib:.1f} of {A.nbytes / ranks / mib:.0f}", end="; ", flush=True)
        print()

    def errors(waves, saved, tolerance, ordered):
        program(*words_of(waves, saved, tolerance, ordered))
        found = json.loads(run(1, sys.executable, __file__, waves / "A.npy", saved, **of_package))
        certified, dense = found["error"], found["dense"]
        holds = certified <= float(tolerance) and abs(dense - certified) <= 1e-6 * dense + 20 * float(np.finfo(A.dtype).eps)
        print(f"{A.nbytes / stored_in(saved):5.1f} times smaller, certified {certified:.6e}, dense {dense:.6e}, certified - dense {certified - dense:+.1e}, "
              f"{found['dense_tiles']} of {found['tiles']} tiles as they are{'' if holds else ', WRONG'}", flush=True)
        return holds

    small = make(folder / "small", 64, 10) if asked.memory else None
    for hertz in asked.hertz:
        waves = make(folder / f"waves-{hertz}", asked.size, hertz)
        A = np.load(waves / "A.npy", mmap_mode="r")
        for tolerance in asked.tolerances:
            for ordered in (False, True):
                saved = folder / "compressed"
                print(f"{hertz:>4} Hz, {tolerance}, {'positions' if ordered else 'as it is':>9}: ", end="", flush=True)
                bad += not (memory if asked.memory else errors)(waves, saved, tolerance, ordered) and not asked.memory
                shutil.rmtree(saved)
        shutil.rmtree(waves)
    return 1 if bad else 0


def main():
    if os.environ.get("GRIDLOPS_COMPRESSION_ERRORS"):
        return dense_error(*sys.argv[1:])
    texts = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--hertz", type=texts, default=["10", "30", "60"])
    parser.add_argument("--tolerances", type=texts, default=["1e-2", "1e-3", "1e-4"])
    parser.add_argument("--dtype", default="c128")
    parser.add_argument("--tile", type=int, default=256)
    parser.add_argument("--memory", type=lambda text: [int(each) for each in text.split(",")], default=[])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(asked, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
