#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The double reports every planted fault, and it is the named detector that does: without it nothing is said.

planted_faults.py LAUNCH PLANTED_FAULTS FAILING_CALL
"""
import os
import subprocess
import sys

# Fault, ranks, the detector that finds it, what must be said.
FAULTS = [
    ("missing_ready_event", 2, "races", "race on allocation"),
    ("missing_reuse_event", 2, "races", "race on allocation"),
    ("host_reads_too_early", 1, "copies", "the host read NaN"),
    ("host_writes_source", 1, "copies", "changed the source of an asynchronous copy"),
    ("pageable_copy", 1, "pageable", "is neither device memory nor pinned"),
    ("host_touches_device", 1, "host_access", "host code touched device memory"),
    ("mpi_touches_device", 2, "host_access", "MPI_Bcast was given allocation"),
    ("mpi_adds_device", 2, "host_access", "host code touched device memory"),
    ("mpi_reads_too_early", 2, "races", "MPI_Bcast reads allocation"),
    ("wrong_count", 2, "signatures", "ncclAllReduce of 63 elements"),
    ("wrong_root", 2, "signatures", "root 1"),
    ("wrong_type", 2, "signatures", "elements of type 4"),
    ("wrong_order", 2, "signatures", "calls ncclBroadcast"),
    ("wrong_message_length", 2, "signatures", "ncclRecv of 62 elements"),
    ("skipped_collective", 2, "hangs", "hang: 'ncclBroadcast"),
    ("crossing_orders", 4, "orders", "operations lie on cycles"),
    ("crossing_orders_in_one_stream", 4, "hangs", "hang: 'ncclBroadcast"),
    ("overrun", 1, "ranges", "writes bytes 8 to 520 of allocation"),
    ("use_after_free", 1, "ranges", "freed"),
    ("early_free", 1, "races", "cudaFreeAsync"),
    ("early_free_of_host_memory", 1, "races", "may still use"),
    ("leak", 1, "leaks", "1 leaks"),
    ("leaked_stream", 1, "leaks", "1 leaks"),
    ("uninitialised_memory", 1, "uninitialised", "the memory holds NaN"),
]
# Calls of NCCL that fail on one rank of four.
FAILURES = ["1:ncclBroadcast:1", "0:ncclBroadcast:7", "3:ncclReduce:2", "2:ncclCommSplit:2"]


def run(launch, ranks, command, environment, seconds=60):
    """Exit status, None for a run that had to be ended, and what was said."""
    settings = {"GRIDLOPS_EMULATION_HANG_SECONDS": "1.5", "GRIDLOPS_TIMEOUT": "30", **environment}
    with subprocess.Popen(["timeout", "-k", "2", str(seconds), launch, str(ranks), *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, **settings}) as process:
        said = process.communicate()[0]
    return (None if process.returncode in (124, 137) else process.returncode), said


def check_faults(launch, program):
    status, said = run(launch, 4, [program, "nothing"], {})
    if status != 0:
        yield f"a program without faults: status {status}\n{said}"
    for name, ranks, _, text in FAULTS:
        status, said = run(launch, ranks, [program, name], {})
        if status in (0, None) or text not in said:
            yield f"{name}: status {status}, and nobody said '{text}'\n{said}"
    for name, ranks, detector, text in FAULTS:
        _, said = run(launch, ranks, [program, name], {"GRIDLOPS_EMULATION_OFF": detector}, seconds=4)
        if text in said:
            yield f"{name} is found without the detector '{detector}' too, so this does not test it\n{said}"


def check_failures(launch, program):
    status, said = run(launch, 4, [program], {})
    if status != 0:
        yield f"products without failures: status {status}\n{said}"
    for failure in FAILURES:
        status, said = run(launch, 4, [program], {"GRIDLOPS_EMULATION_FAIL": failure}, seconds=40)
        silent = [rank for rank in range(4) if f"rank {rank} got: " not in said]
        if status in (0, None) or silent:
            yield f"{failure}: status {status}, no error on ranks {silent}\n{said}"
    status, said = run(launch, 4, [program, "2"], {"GRIDLOPS_TIMEOUT": "2", "GRIDLOPS_EMULATION_HANG_SECONDS": "30"})
    silent = [rank for rank in (0, 1, 3) if f"rank {rank} got: " not in said]
    if status in (0, None) or silent or "has waited 2 s for other ranks" not in said:
        yield f"rank 2 stays away: status {status}, no error on ranks {silent}\n{said}"


if __name__ == "__main__":
    problems = [*check_faults(sys.argv[1], sys.argv[2]), *check_failures(sys.argv[1], sys.argv[3])]
    print("\n".join(problems) or "every fault was reported")
    sys.exit(1 if problems else 0)
