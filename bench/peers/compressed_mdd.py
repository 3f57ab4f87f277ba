#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Inverts a deconvolution of three-dimensional waves with the kernel and with compressed kernels: memory, time, and errors.

compressed_mdd.py BUILD [--ranks 2] [--stations 1024] [--highest 40] [--step 2] [--sources 64] [--iterations 30]
                  [--tolerances 1e-2,1e-3,1e-4] [--keep DIR] [WORD…]

The kernel has the frequencies 0, STEP, 2 STEP, … HIGHEST Hz of `gridlops make-problem --kind waves`, seen from as many stations;
frequency 0 is zero. The models are impulses at some of the stations, the virtual sources, and the data those of the kernel
itself. `gridlops mdd` gets the WORDs, such as --independent. Memory is the peak of the rank that has most."""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def make(asked, run, folder):
    """The spectra, the positions and the traces, in single precision."""
    count, frequencies = asked.stations, int(round(asked.highest / asked.step)) + 1
    kernel = np.lib.format.open_memmap(folder / "kernel.npy", "w+", "complex64", (frequencies, count, count))
    for k in range(1, frequencies):
        run("make-problem", "--rows", count, "--cols", count, "--rhs", 1, "--kind", "waves", "--dtype", "c64", "--frequency", k * asked.step, "--out", folder / "waves")
        kernel[k] = np.load(folder / "waves/A.npy")
    stations = np.linspace(0, count - 1, asked.sources).round().astype(int)
    samples = 2 * frequencies
    data = np.fft.irfft(kernel[:, :, stations], samples, axis=0).astype("f4")
    np.save(folder / "data.npy", data)
    kernel.flush()
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--stations", type=int, default=1024)
    parser.add_argument("--highest", type=float, default=40)
    parser.add_argument("--step", type=float, default=2)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--tolerances", type=lambda text: text.split(","), default=["1e-2", "1e-3", "1e-4"])
    parser.add_argument("--keep", type=Path)
    asked, words = parser.parse_known_args()
    launch = Path(__file__).resolve().parents[2] / "tests/support/launch"

    def run(*of_program):
        subprocess.run([launch, str(asked.ranks), asked.build / "apps/gridlops", *map(str, of_program)], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        make(asked, run, folder)
        dense = None
        for tolerance in (None, *asked.tolerances):
            compress = [] if tolerance is None else ["--compress", tolerance, "--receiver-positions", folder / "waves/row_positions.npy", "--source-positions", folder / "waves/col_positions.npy"]
            run("mdd", "--kernel", folder / "kernel.npy", "--data", folder / "data.npy", "--iterations", asked.iterations, "--tolerance", 0, "--save", folder / "saved",
                "--report", folder / "report.json", *compress, *words)
            inverted = np.load(folder / "saved/inverted.npy")
            report = json.loads((folder / "report.json").read_text())
            dense = inverted if dense is None else dense
            error = np.linalg.norm(inverted - dense) / np.linalg.norm(dense)
            figures = report["figures"]
            print(f"{'dense' if tolerance is None else 'compressed to ' + tolerance}: {max(report['memory_bytes']['peak']) / 2**20:.0f} MiB, "
                  f"{report['seconds']['compute']:.2f} s, read {report['seconds']['read']:.2f} s, {figures.get('times smaller', 1):.1f} times smaller, differs by {error:.1e}", flush=True)


if __name__ == "__main__":
    main()
