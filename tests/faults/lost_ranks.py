#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that no rank waits for ever: lost_ranks.py LAUNCH PROGRAM [REPEATS [TRANSPORT FAULT]].
With --restless SECONDS in place of repeats nothing fails, but eight ranks are slow: none may be taken for lost.

A rank of four, or of twelve, is killed, stopped, or leaves an operation out. The job must end with the documented status, each rank that
still can must say who is silent and where the others are, and no process may be left. A rank that works for longer than
the limit, and says so, or does so within the library, must not be taken for lost, nor any when the whole job is suspended.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
from program import own_lines  # noqa: E402  (found by the line before)

RANKS = 4
MANY = 12
LIMIT = 3
# Beyond the limit, on a busy machine.
PATIENCE = 60.0
AT_ONCE = 6

ALL = range(RANKS)
SILENT = r"gridlops: rank {} on \S+: waited in vain .*: no rank got on for 3 s .*; no word from rank {fault}: stopped, lost, "
MISSING = r"gridlops: rank {} on \S+: waited in vain after .*: no rank got on for 3 s .*; no word from rank {fault}: stopped, lost, "
SKIPPED = r"gridlops: rank {} on \S+: waited in vain .*; all ranks answer; .*rank {fault}: .*"
WITHIN = r"gridlops: rank {} on \S+: waited in vain in all_reduce #\d+ .*: all ranks began it, and it lasts for longer than 3 s "
CAUGHT = r"rank {} caught 75: waited in vain .*: no rank got on for 3 s .*; all ranks answer; "

# Transport, fault, status (None: any but 0), ranks that say a line, the line.
CASES = [
    ("mpi", "1:product:50:kill", None, [], ""),
    ("mpi", "3:product:50:stop", 75, [0, 1, 2], SILENT),
    ("mpi", "0:sum:20:stop", 75, [1, 2, 3], SILENT),
    ("mpi", "9:product:50:stop", 75, [rank for rank in range(MANY) if rank != 9], SILENT),
    ("mpi", "1:grid:1:stop", 75, [0, 2, 3], MISSING),
    ("mpi", "2:grid:1:skip", 75, ALL, SKIPPED),
    ("mpi", "1:gemm:50:stop", 75, [0, 2, 3], SILENT),
    ("tests", "1:sum:20:stop", 75, [0, 2, 3], SILENT),
    ("tests", "1:sum:20:skip", 75, ALL, SKIPPED),
    ("chain", "2:product:50:stop", 75, [0, 1, 3], SILENT),
    ("shared", "1:product:50:stop", 75, [0, 2, 3], SILENT),
    ("one-sided", "3:product:50:stop", 75, [0, 1, 2], SILENT),
    ("mpi", "2:product:50:skip", 75, ALL, SKIPPED),
    ("mpi", "1:sum:100:skip", 75, ALL, SKIPPED),
    ("mpi", "1:call:3:stop", 75, [0, 2, 3], WITHIN),
    ("mpi", "1:product:50:work", 0, [], ""),
    ("mpi", "1:gemm:50:block", 0, [], ""),
    ("mpi", "11:gemm:50:block", 0, [], ""),
    ("mpi", "1:flush:1:block", 0, [], ""),
    ("mpi", "1:product:50:suspend", 0, [], ""),
    ("lent", "1:sum:50:work", 0, [], ""),
    ("lent", "1:sum:50:skip", 0, [0, 1, 2], CAUGHT),
]


def processes_of(mark):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if name.isdigit() and mark.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def ranks_of(fault):
    return RANKS if int(fault.split(":")[0]) < RANKS else MANY


def suspend(program, mark):
    """Stops all ranks for longer than the limit, while three wait for one that works."""
    def ranks():
        return [process for process in processes_of(mark) if os.path.realpath(f"/proc/{process}/exe") == os.path.realpath(program)]
    while len(ranks()) < RANKS:
        time.sleep(0.1)
    time.sleep(2)
    stopped = ranks()
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    time.sleep(2 * LIMIT)
    for process in stopped:
        os.kill(process, signal.SIGCONT)


def left_behind(mark):
    """The processes of a job that are still there a while after its end; ends them."""
    deadline = time.monotonic() + 10
    while (found := processes_of(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    for process in found:
        os.kill(process, signal.SIGKILL)
    return found


def run(launch, program, case):
    transport, fault, status, speakers, pattern = case
    mark = uuid.uuid4().hex
    begin = time.monotonic()
    command = ["timeout", "-k", "2", str(LIMIT + PATIENCE), launch, str(ranks_of(fault)), program, transport, mark]
    environment = {**os.environ, "GRIDLOPS_TIMEOUT": str(LIMIT), "GRIDLOPS_FAULT": fault, "GRIDLOPS_KERNELS": "blas"}
    suspension = threading.Thread(target=suspend, args=(program, mark), daemon=True)
    if fault.endswith("suspend"):
        suspension.start()
    job = subprocess.run(command, text=True, capture_output=True, env=environment)
    seconds = time.monotonic() - begin
    wrong = []
    # mpirun of Open MPI 4.1 may crash itself when it is to end a job.
    is_crash = status == 75 and "ORTE_ERROR_LOG" in job.stderr and job.returncode not in (0, 124)
    if not is_crash and (job.returncode != status if status is not None else job.returncode in (0, 124)):
        wrong.append(f"status {job.returncode} instead of {status}")
    wrong += [f"rank {rank} does not say so" for rank in speakers
              if not re.search(pattern.replace("{}", str(rank)).replace("{fault}", fault.split(":")[0]), job.stderr)]
    if status == 0 and not speakers and own_lines(job.stderr):
        wrong.append("complains although nothing is wrong")
    if left := left_behind(mark):
        wrong.append(f"left the processes {left}")
    line = f"{'FAILED' if wrong else 'ok':6} {transport} {fault} ({seconds:.1f} s) {'; '.join(wrong)}"
    return bool(wrong), line + (f"\n{job.stdout}{job.stderr}" if wrong else "")


def is_patient(launch, program, seconds):
    environment = {**os.environ, "GRIDLOPS_TIMEOUT": str(LIMIT), "GRIDLOPS_TEST_SECONDS": seconds}
    job = subprocess.run([launch, "8", program, "restless"], text=True, capture_output=True, env=environment)
    print(f"restless for {seconds} s: status {job.returncode}\n{job.stderr}")
    return job.returncode == 0 and not own_lines(job.stderr)


def main():
    launch, program = sys.argv[1:3]
    if sys.argv[3:4] == ["--restless"]:
        return 0 if is_patient(launch, program, sys.argv[4]) else 1
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    jobs = [case for case in CASES for _ in range(repeats) if not sys.argv[4:] or case[:2] == tuple(sys.argv[4:6])]
    failed = False
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for is_wrong, line in pool.map(lambda case: run(launch, program, case), jobs):
            print(line, flush=True)
            failed = failed or is_wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
