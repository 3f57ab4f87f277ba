#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a rank which waits in vain does so for GRIDLOPS_TIMEOUT seconds, and not for twice as long: time_limit.py LAUNCH
PROGRAM.

A busy machine makes a wait longer, never shorter. So the quickest of a few attempts counts, and one that is in time is enough."""
import os
import re
import subprocess
import sys

LIMIT = 6
LATE = 1.8  # times the limit; a rank looks a hundred times a second
ATTEMPTS = 5


def waited(launch, program):
    """What each of the two ranks says, in seconds."""
    job = subprocess.run([launch, "2", program], text=True, capture_output=True, timeout=20 * LIMIT, check=False,
                         env={**os.environ, "GRIDLOPS_TIMEOUT": str(LIMIT)})
    found = [float(seconds) for seconds in re.findall(r"rank \d waited ([\d.]+) s", job.stdout)]
    if len(found) != 2 or f"no rank got on for {LIMIT} s" not in job.stdout:
        sys.exit(f"FAILED: status {job.returncode}\n{job.stdout}{job.stderr}")
    return found


def main():
    quickest = float("inf")
    for _ in range(ATTEMPTS):
        found = waited(*sys.argv[1:3])
        print(f"limit {LIMIT} s: waited {found}")
        # The clock of a wait begins at its first look, a moment after the call.
        if min(found) < LIMIT:
            sys.exit(f"FAILED: gave up after {min(found)} s")
        quickest = min(quickest, max(found))
        if quickest <= LATE * LIMIT:
            return
    sys.exit(f"FAILED: waited {quickest} s at least")


if __name__ == "__main__":
    main()
