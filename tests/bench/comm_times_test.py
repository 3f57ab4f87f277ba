# SPDX-License-Identifier: BSD-3-Clause
"""Compares the times of `gridlops-bench comm --transport mpi` with those of a loop of MPI calls that knows nothing of this project:
both in turn, on two ranks. They agree where their times, over all turns, have a range in common, give or take a tenth and what
the library takes to check and count a call.
comm_times_test.py LAUNCH PROGRAM LOOP [TURNS]"""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

OPERATIONS = ["broadcast", "reduce", "all-reduce", "all-gather", "send-receive"]
CALLS = {16: 200, 65536: 200, 4194304: 20}  # by bytes
SECONDS_OF_A_CHECK = 0.3e-6


def main(launch, program, loop, turns=5):
    found = collections.defaultdict(lambda: ([], []))  # of the program, of the loop
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "F.json")
        for _ in range(turns):
            subprocess.run([launch, "2", program, "comm", "--operation", ",".join(OPERATIONS), "--place", "both", "--bytes",
                            ",".join(map(str, CALLS)), "--reps", "5", "--json", path], check=True, stdout=subprocess.DEVNULL, timeout=300)
            for result in json.loads(path.read_text(encoding="utf-8"))["results"]:
                if result["operation"] != "all-gather" or result["place"] == "in":
                    found[result["operation"], result["bytes"]][0].append(result["seconds"])
            for size, calls in CALLS.items():
                run = subprocess.run([launch, "2", loop, str(size // 8), str(calls)], check=True, capture_output=True,
                                     text=True, timeout=300)
                for line in run.stdout.splitlines():
                    operation, seconds = line.split()
                    found[operation, size][1].append(float(seconds))
    failed = 0
    print(f"{'operation':<14}{'bytes':>9}  {'benchmark, us':<22}{'loop, us':<22}")
    for (operation, size), (mine, theirs) in found.items():
        agree = min(mine) <= 1.1 * max(theirs) + SECONDS_OF_A_CHECK and min(theirs) <= 1.1 * max(mine)
        failed += not agree
        texts = [f"{1e6 * min(times):.2f} … {1e6 * max(times):.2f}" for times in (mine, theirs)]
        print(f"{operation:<14}{size:>9}  {texts[0]:<22}{texts[1]:<22}{'' if agree else 'FAILED'}")
    complete = len(found) == len(OPERATIONS) * len(CALLS) and all(len(times) == turns for both in found.values() for times in both)
    sys.exit(0 if complete and not failed else 1)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
