# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a job in Python when one of four ranks fails alone, or is only slow: session_test.py PACKAGE LAUNCH

Each case is a job of this file itself, with the name of the case. Ends with 77 where the package was not built."""
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RANKS = 4
AT_ONCE = 2  # jobs, which mostly wait
LIMIT = 4  # GRIDLOPS_TIMEOUT; on busy cores a rank may not answer for two seconds

# Rank 1. On busy cores others may have been silent for as long.
SLEEPING = r"(rank 1|ranks (0, 1\b|1\b|0 to [23])[^:]*)"

# The case, its status, and what must be said.
CASES = {
    "one leaves a product out": (0, [r"all ranks answer"] + [rf"rank {rank} raised 75: waited in vain .*rank 1: " for rank in (0, 2, 3)]),
    "one sleeps": (75, [rf"gridlops: rank {rank} on \S+: waited in vain .*no word from {SLEEPING}: " for rank in (0, 2, 3)]),
    "one raises": (70, [r"ValueError: the flux is negative\n", r"gridlops: rank 1 on \S+: .*ValueError: the flux is negative"]),
    "one runs out of memory": (71, [r"gridlops: rank 1 on \S+: .*OutOfMemory: 8 GB"]),
    "one works": (0, [r"rank 0 went on"]),
    "several sessions": (0, [r"rank 0 went on"]),
    "all exit": (3, []),
    "all raise": (1, [r"Traceback"] + [rf"rank {rank}: .*session_test.py:\d+: ShapeError: " for rank in (1, 2, 3)]),
}
FORBIDDEN = {"all raise": r"(?s)Traceback.*Traceback", "one works": r"waited in vain", "several sessions": r"waited in vain", "all exit": r"waited in vain"}


def run_job(package, launch, case, status, patterns):
    environment = {**os.environ, "GRIDLOPS_TIMEOUT": str(LIMIT), "PYTHONPATH": package}
    begin = time.monotonic()
    job = subprocess.run(["timeout", "-k", "2", "60", launch, str(RANKS), sys.executable, __file__, case], text=True,
                         capture_output=True, env=environment, check=False)
    said = job.stdout + job.stderr
    wrong = [] if job.returncode == status else [f"status {job.returncode} instead of {status}"]
    wrong += [f"nobody says {pattern}" for pattern in patterns if not re.search(pattern, said)]
    if case in FORBIDDEN and re.search(FORBIDDEN[case], said):
        wrong.append(f"somebody says {FORBIDDEN[case]}")
    print("FAILED" if wrong else "ok", case, f"({time.monotonic() - begin:.1f} s)", *wrong, *([f"\n{said}"] if wrong else []))
    return not wrong


def act(case):
    """What the ranks do."""
    from mpi4py import MPI

    import gridlops as gl

    comm = MPI.COMM_WORLD
    am_odd = comm.rank == 1

    def product():
        grid = gl.Grid(comm, (2, 2))
        op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(20, 10)))
        yield
        for _ in range(3):
            op @ gl.zeros(op.domain, 2)

    def within(session, meanwhile):
        """A product, before which the odd rank does something else."""
        with session:
            steps = product()
            next(steps)
            if am_odd:
                meanwhile()
            for _ in steps:
                pass

    def work():
        end = time.monotonic() + 2.5 * LIMIT
        while time.monotonic() < end:
            gl.keep_alive()
            time.sleep(0.05)

    def fail(error):
        raise error

    if case == "one leaves a product out":
        try:
            with gl.Session():
                steps = product()
                next(steps)
                if not am_odd:
                    next(steps, None)
        except gl.CommunicationError as error:
            print(f"rank {comm.rank} raised {error.status}: {error}", flush=True)
        comm.Barrier()
    elif case == "one sleeps":
        within(gl.Session(comm, end_job=True), lambda: time.sleep(60))
    elif case == "one raises":
        within(gl.Session(end_job=True), lambda: fail(ValueError("the flux is negative")))
    elif case == "one runs out of memory":
        within(gl.Session(end_job=True), lambda: fail(gl.OutOfMemory("8 GB")))
    elif case == "one works":
        within(gl.Session(), work)
        print(f"rank {comm.rank} went on", flush=True)
    elif case == "several sessions":
        for each in (comm, comm.Split(comm.rank % 2), comm):
            with gl.Session(each):
                gl.Grid(each)
                try:
                    with gl.Session(each):
                        sys.exit("a second session was made")
                except gl.UsageError:
                    pass
        print(f"rank {comm.rank} went on", flush=True)
    elif case == "all exit":
        with gl.Session(end_job=True):
            sys.exit(3)
    elif case == "all raise":
        gl.cgls(gl.matrix_mult(gl.Matrix(gl.Grid(), gl.Grid().matrix_layout(20, 10))), gl.zeros(gl.Space(gl.Grid(), gl.Cut("uncut", [3]))))


def main(package, launch):
    if not package:
        print("skipped: the Python package was not built, for which pybind11 and Python's headers are needed")
        return 77
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda case: run_job(package, str(Path(launch).resolve()), case, *CASES[case]), CASES))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else act(sys.argv[1]))
