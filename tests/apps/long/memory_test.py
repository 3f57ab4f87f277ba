# SPDX-License-Identifier: BSD-3-Clause
"""Checks the peak memory of every rank while `gridlops solve` reads a large matrix, solves and writes. It is at most the rank's
share of A, B, X and the solver's vectors, and 64 MiB above what a rank takes that only starts and ends.

Ranks send messages here: a block that ranks read in each other's memory would be counted on all of them.

memory_test.py LAUNCH PROGRAM [MEBIBYTES of the matrix, default 1024]
Run through itself with --rank, a rank reports the peak of its child to a file.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile

RANKS = 4
ALLOWANCE = 64 * 2**20


def run_as_rank(folder, command):
    status = subprocess.call(command)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"
    with open(os.path.join(folder, "peak." + rank), "w", encoding="utf-8") as file:
        file.write(str(peak))
    return status


def peaks(launch, folder, command):
    me = [sys.executable, os.path.abspath(__file__), "--rank", folder]
    subprocess.run([launch, str(RANKS), *me, *command], check=True, timeout=500, stdout=subprocess.DEVNULL)
    result = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"peak.{rank}"), encoding="utf-8") as file:
            result.append(int(file.read()))
    return result


def main(launch, program, mebibytes):
    cols = 8192
    rows = mebibytes * 2**20 // (8 * cols)
    nrhs = 8
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([launch, str(RANKS), program, "make-problem", "--rows", str(rows), "--cols", str(cols), "--rhs",
                        str(nrhs), "--out", folder], check=True, timeout=500)
        baseline = peaks(launch, folder, [program, "info"])
        failed = False
        for algorithm in ["stationary-a", "summa"]:
            report = os.path.join(folder, "report.json")
            used = peaks(launch, folder, [
                program, "solve", "--matrix", os.path.join(folder, "A.npy"), "--rhs", os.path.join(folder, "B.npy"),
                "--output", os.path.join(folder, "X.npy"), "--grid", "2x2", "--algorithm", algorithm, "--transport", "mpi",
                "--iterations", "5", "--tolerance", "0.5", "--quiet", "--report", report])
            with open(report, encoding="utf-8") as file:
                assert json.load(file)["rows"] == rows
            # The share: a quarter of A, and of B, r, q and of X, p, s and the best X.
            share = 8 * (rows * cols + 3 * rows * nrhs + 4 * cols * nrhs) // RANKS
            for rank in range(RANKS):
                above = used[rank] - baseline[rank] - share
                failed = failed or above > ALLOWANCE
                print(f"{algorithm} rank {rank}: peak {used[rank] / 2**20:.1f} MiB = start-up {baseline[rank] / 2**20:.1f}"
                      f" + share {share / 2**20:.1f} + {above / 2**20:.1f} MiB (allowed 64)")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        sys.exit(run_as_rank(sys.argv[2], sys.argv[3:]))
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1024))
