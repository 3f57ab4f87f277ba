#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what becomes of an operator that throws on one rank, before messages of its own for which the other ranks wait there:
own_messages.py LAUNCH ODD_RANK. All ranks must soon throw its error, with the rank, applied alone and within a solver. Where the
messages meet those by which the rank tells of it, ranks may find that at once, and say so instead."""
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

RANKS = 4
LIMIT = 6  # GRIDLOPS_TIMEOUT. A rank that has a failure to tell waits for half of it.
AT_ONCE = 8  # jobs, which mostly wait
MEETING = ["sum", "broadcast"]
EXCHANGES = ["sum", "long-sum", "row-sum", "own-sum", "broadcast", "barrier", "ring"]


def run(launch, program, case):
    exchange, rank, number, mode = case
    environment = {**os.environ, "GRIDLOPS_TIMEOUT": str(LIMIT), "GRIDLOPS_FAULT": f"{rank}:{exchange}:{number}:throw"}
    begin = time.monotonic()
    job = subprocess.run(["timeout", "-k", "2", "60", launch, str(RANKS), program, exchange, *mode], text=True, capture_output=True,
                         env=environment)
    seconds = time.monotonic() - begin
    wrong = [] if job.returncode == 70 else [f"status {job.returncode}"]
    if mode:
        its = f"rank {rank}: the flux is negative"
        meets = "" if exchange not in MEETING else "|expected .* elements from rank|MPI_ERR_TRUNCATE"
        silent = [each for each in range(RANKS)
                  if not re.search(rf"rank {each} caught 70 of rank -?\d: .*({its}{'' if each == rank else meets})", job.stderr)]  # Open MPI 5 mixes lines
        wrong += [f"ranks {silent} do not throw it"] if silent else []
    elif exchange not in MEETING and not re.search(rf"rank {rank}\b.*the flux is negative", job.stderr):
        wrong.append("nobody says so")
    line = f"{'FAILED' if wrong else 'ok':6} {exchange} on rank {rank}, {number}{' ' + mode[0] if mode else ''} ({seconds:.1f} s) {'; '.join(wrong)}"
    return bool(wrong), line + (f"\n{job.stdout}{job.stderr}" if wrong else "")


def main():
    launch, program = sys.argv[1:3]
    # The fourth application is alone, the fifteenth in a solver.
    cases = [(exchange, rank, number, mode) for exchange in EXCHANGES
             for rank, number, mode in ((1, 4, ["caught"]), (2, 15, ["caught"]), (3, 1, []))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda case: run(launch, program, case), cases))
    print("\n".join(line for _, line in results))
    return 1 if any(is_wrong for is_wrong, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
