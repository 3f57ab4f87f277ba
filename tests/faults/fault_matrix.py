#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Injects every fault of docs/faults.md into jobs of `gridlops`, and writes what happened as a table.
fault_matrix.py LAUNCH PROGRAM ODD_RANK INJECTED [--repeats N] [--at-once N] [--rows ROW,…] [--quick] [--table FILE]

After each fault the job must be over in time, with the status and the words of its row. No process may be left, no output be
half written, no wrong result reported as success, and a restart from what was saved must end with the same bits.
"""
import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("apps", "faults")]
import program  # noqa: E402  (found by the line before)
from two_hosts import TwoHosts  # noqa: E402

RANKS = 4
LIMIT = 3  # GRIDLOPS_TIMEOUT, in seconds
PARTED_LIMIT = 2  # before TCP ends connections of MPI's, which it does after 6 s in two_hosts.py
LOSSY_LIMIT = 20  # TCP repeats a frame after 0.2 s, and each time after twice as long: the sixth time after 13 s
PATIENCE = 60  # until a job that hangs is ended
OLD = b"old"
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # checkpoints are flushed often, which disks take long for
SOLVE = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--damp-relative", "1e-4", "--output", "X.npy", "--quiet"]
CHOICES = {"TOLERANCE": "1e-8", "ITERATIONS": "400", "GRID": "2x2", "SOLVER": "cgls", "ALGORITHM": "summa"}
IN_PLACE = {"GRIDLOPS_SOLVE_ALGORITHM": "stationary-a", "GRIDLOPS_SOLVE_STORAGE": "columns"}  # products take A itself
FROM_DISK = {"GRIDLOPS_SOLVE_ALGORITHM": "stationary-a", "GRIDLOPS_SOLVE_TOLERANCE": "1e-4"}
LIVING = r"^gridlops: rank {} on \S+: waited in vain .*no word from rank {}: stopped, lost, "
SPACE = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--damps", "1e-2:1:6", "--sweep", "space", "--choose", "discrepancy", "--noise", "15",
         "--output", "X.npy", "--quiet"]
SAVING = ["--checkpoint", "saved", "--checkpoint-every", "4"]
LOGGED = ["sh", "-c", 'exec "$@" 2>> stderr.$OMPI_COMM_WORLD_RANK', "sh"]  # what ranks say that mpirun cannot hear


class Skipped(Exception):
    """This machine cannot show what the row is about."""


class Jobs:
    """Jobs of one repeat, in a folder of its own. The seconds of one are those from the fault to its end."""

    def __init__(self, tools, folder, expected, chance):
        self.tools, self.folder, self.expected, self.chance = tools, Path(folder), expected, chance
        self.seconds = None
        self.wrong = []
        self.words, self.choices = SOLVE, CHOICES

    def fresh(self):
        shutil.rmtree(self.folder / "saved", ignore_errors=True)
        for path in self.folder.glob("X.npy*"):
            path.unlink()
        (self.folder / "X.npy").write_bytes(OLD)

    def run(self, *options, solve=None, fault=None, environment=None, mpirun=None):
        """mpirun: a command in its place. Ranks then write their errors to files, which are read when all is over."""
        suite = program.Suite(self.tools.launch, self.tools.program, self.folder)
        settings = {**{f"GRIDLOPS_SOLVE_{name}": value for name, value in self.choices.items()}, "GRIDLOPS_KERNELS": "blas",
                    "GRIDLOPS_TIMEOUT": str(LIMIT), **(environment or {})}
        first = []
        if mpirun:
            settings["GRIDLOPS_TEST_MPIRUN"] = str(mpirun)
            first = LOGGED
        if fault:
            first = [*first, "env", f"LD_PRELOAD={self.tools.injected}", f"GRIDLOPS_FAULT={fault}"]
        run = suite.run(*(solve or self.words), *options, ranks=RANKS, environment=settings, on_each_rank=first, timeout=PATIENCE)
        if mpirun:
            self.await_end()
        over = time.monotonic()
        run.errors += self.said_by_ranks()
        begin = re.search(r"^fault at (\d+\.\d+)$", run.errors, re.MULTILINE)
        self.seconds = over - float(begin[1]) if begin else run.seconds
        self.require(not fault or begin, f"the fault {fault} did not happen:", run.errors[-1000:])
        self.require("killed after" not in run.errors, "the job hung")
        return run

    def require(self, condition, *what):
        if not condition:
            self.wrong.append(" ".join(map(str, what)))

    def said_by_ranks(self):
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(self.folder.glob("stderr.*")))

    def await_end(self):
        """Of all processes of the job, which may live for longer than mpirun where it has lost them."""
        deadline = time.monotonic() + PATIENCE
        while self.found() and time.monotonic() < deadline:
            time.sleep(0.2)

    def ended(self, run, status, within):
        """status: None for any but 0."""
        self.require(run.status == status if status is not None else run.status != 0, f"status {run.status} instead of {status}")
        self.require(self.seconds <= within, f"was over after {self.seconds:.1f} s, not {within}")
        self.require(not self.processes(), "processes were left")

    def found(self):
        """The processes that are in this job's folder."""
        numbers = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{name}/cwd") == str(self.folder):
                    numbers.append(int(name))
        return numbers

    def processes(self):
        """Those that are in this job's folder 5 seconds after its end; ends them."""
        deadline = time.monotonic() + 5
        while (left := self.found()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        return left

    def output_is_old(self):
        self.require((self.folder / "X.npy").read_bytes() == OLD, "the old output is not as it was")

    def nothing_temporary(self):
        self.require(not program.leftovers(self.folder), "temporary files:", program.leftovers(self.folder))

    def restart(self):
        """Goes on from what was saved, or begins anew: the result has the bits of a run without faults."""
        seconds = self.seconds
        saved = (self.folder / "saved" / "manifest.json").exists()
        run = self.run(*SAVING, *(["--restart", "saved"] if saved else []))
        self.require(run.status == 0 and (self.folder / "X.npy").read_bytes() == self.expected, "a restart gives other bits:",
                     run.status, run.errors[-500:])
        self.nothing_temporary()
        self.seconds = seconds


def any_rank(jobs):
    return jobs.chance.randrange(RANKS)


def killed(operation, first, last):
    def case(jobs):
        run = jobs.run(*SAVING, fault=f"{any_rank(jobs)}:{operation}:{jobs.chance.randint(first, last)}:kill")
        jobs.ended(run, 128 + signal.SIGKILL, 5)
        jobs.output_is_old()
        jobs.restart()
    return case


def stopped(operation, first, last):
    def case(jobs):
        rank = any_rank(jobs)
        run = jobs.run(*SAVING, fault=f"{rank}:{operation}:{jobs.chance.randint(first, last)}:stop")
        jobs.ended(run, 75, LIMIT + 5)
        silent = [other for other in range(RANKS)
                  if other != rank and not re.search(LIVING.format(other, rank), run.errors, re.MULTILINE)]
        jobs.require(not silent, f"ranks {silent} do not say that rank {rank} is silent")
        jobs.output_is_old()
        jobs.restart()
    return case


def in_a_program(fault, status, *patterns, words=()):
    """What befalls a program of somebody else's between its calls of the library, in its functions, or in its arguments."""
    def case(jobs):
        rank = any_rank(jobs)
        suite = program.Suite(jobs.tools.launch, jobs.tools.odd_rank, jobs.folder)
        run = suite.run(*words, ranks=RANKS, timeout=PATIENCE,
                        environment={"GRIDLOPS_FAULT": f"{rank}:{fault}", "GRIDLOPS_TIMEOUT": str(LIMIT)})
        jobs.seconds = run.seconds
        jobs.ended(run, status, LIMIT + 5)  # now and then MPI_Abort does nothing for 5 s, until an alarm ends the ranks
        for pattern in patterns:
            jobs.require(re.search(pattern.format(rank), run.errors, re.MULTILINE), "nobody says", pattern.format(rank))
    return case


def while_a_space_grows(case):
    """The fault befalls a sweep in one space. The space goes on on another grid, too, to the same solutions."""
    def in_space(jobs):
        jobs.words, jobs.choices = SPACE, {**CHOICES, "ALGORITHM": "stationary-a"}
        sound = jobs.run()
        jobs.require(sound.status == 0, "without a fault:", sound.status, sound.errors[-500:])
        jobs.expected = (jobs.folder / "X.npy").read_bytes()
        expected = np.load(jobs.folder / "X.npy")
        jobs.fresh()
        restart = jobs.restart

        def on_grids():
            seconds = jobs.seconds
            if (jobs.folder / "saved" / "manifest.json").exists():
                run = jobs.run("--restart", "saved", "--grid", "1x4")
                jobs.require(run.status == 0 and np.allclose(np.load(jobs.folder / "X.npy"), expected, atol=1e-6 * np.abs(expected).max()),
                             "another grid gives other solutions:", run.status, run.errors[-500:])
            jobs.seconds = seconds
            restart()
        jobs.restart = on_grids
        case(jobs)
    in_space.__qualname__ = case.__qualname__  # for TIMES_AT_ONCE
    return in_space


def full_disk(jobs):
    run = jobs.run(*SAVING, fault=f"{any_rank(jobs)}:write:{jobs.chance.randint(1, 20)}:enospc")
    jobs.ended(run, 74, 30)  # the solver goes on without checkpoints, to the end
    jobs.require(len(run.error_lines) == 1 and os.strerror(28) in run.error_lines[0] and " at byte " in run.error_lines[0],
                 "one error, with the byte and the reason:", run.errors)
    jobs.output_is_old()
    jobs.nothing_temporary()
    jobs.restart()


def killed_while_writing(jobs):
    run = jobs.run(*SAVING, fault=f"{any_rank(jobs)}:any:{jobs.chance.randint(1, 60)}:kill")
    jobs.ended(run, 128 + signal.SIGKILL, 5)
    jobs.require((jobs.folder / "X.npy").read_bytes() in (OLD, jobs.expected), "X is neither old nor whole")
    jobs.restart()


def flipped_checkpoint(jobs):
    run = jobs.run(*SAVING, "--iterations", "9", environment={"GRIDLOPS_SOLVE_ITERATIONS": "9"})
    jobs.require(run.status == 3, "nothing was saved", run.status)
    path = jobs.chance.choice([path for path in sorted((jobs.folder / "saved").rglob("*")) if path.is_file()])
    data = bytearray(path.read_bytes())
    bit = jobs.chance.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    (jobs.folder / "X.npy").write_bytes(OLD)
    run = jobs.run("--restart", "saved")
    if run.status == 0:
        jobs.require((jobs.folder / "X.npy").read_bytes() == jobs.expected, "bit", bit, "of", path.name, "gave another result")
    else:
        jobs.ended(run, 65, PATIENCE)
        jobs.output_is_old()


def flipped_matrix(jobs):
    rank = any_rank(jobs)
    run = jobs.run("--verify-matrix", fault=f"{rank}:cblas_dgemm:{jobs.chance.randint(2, 60)}:flip", environment=IN_PLACE)
    jobs.ended(run, 1, PATIENCE)
    jobs.require(re.search(rf"A\.npy has changed in memory .* that of rank {rank},", run.errors), "nothing names rank", rank)
    jobs.output_is_old()


def guarded_matrix(jobs):
    run = jobs.run("--guard", "3", fault=f"{any_rank(jobs)}:cblas_dgemm:{jobs.chance.randint(9, 60)}:flip", environment=IN_PLACE)
    jobs.require("the guard found right-hand side" in run.errors, "the guard found nothing", run.status)


def not_a_number(jobs):
    run = jobs.run(fault=f"{any_rank(jobs)}:cblas_dgemm:{jobs.chance.randint(2, 60)}:nan")
    jobs.ended(run, 3, PATIENCE)
    jobs.require("1 non_finite" in run.errors, "no column is called non_finite")
    X, Y = np.load(jobs.folder / "X.npy"), np.load(jobs.tools.solution)
    jobs.require((np.abs(X - Y).max(axis=0) > 1e-6).sum() <= 1, "more than one column suffered")


def terminated(jobs):
    run = jobs.run(*SAVING, fault=f"{any_rank(jobs)}:cblas_dgemm:{jobs.chance.randint(2, 60)}:term")
    jobs.ended(run, 75, 5)
    jobs.require("was saved in saved" in run.errors, "nothing says what was saved")
    jobs.output_is_old()
    jobs.restart()


def slowed(jobs):
    run = jobs.run(fault=f"{any_rank(jobs)}:cblas_dgemm:{jobs.chance.randint(2, 60)}:slow")
    jobs.require(run.status == 0 and (jobs.folder / "X.npy").read_bytes() == jobs.expected, "a slow rank changes the result")
    jobs.require(not run.error_lines, "a slow rank is an error:", run.errors)


def large_problem(tools, *options):
    return ["solve", "--matrix", tools.large / "A.npy", "--rhs", tools.large / "B.npy", "--damp-relative", "1e-2", "--output", "X.npy",
            "--quiet", *options]


class OnDisk:
    """Solves with A on disks, of which each rank keeps as little in memory as it can."""

    def __init__(self, jobs, scratch, *options):
        self.jobs, self.scratch = jobs, scratch
        self.words = large_problem(jobs.tools, "--storage", "disk", "--scratch", scratch, *SAVING, *options)
        refused = self.run(memory=1)
        least = re.search(r"at least ([\d.]+) MiB", refused.errors)
        jobs.require(refused.status == 2 and least, "nothing says what memory is the least:", refused.errors)
        self.memory = int(1.02 * 2**20 * float(least[1])) if least else 1 << 40

    def run(self, *options, memory=None, checks="entry", **more):
        return self.jobs.run("--memory", memory or self.memory, *options, solve=self.words, environment={**FROM_DISK, "GRIDLOPS_CHECK": checks}, **more)

    def has_the_bits(self, run, *what):
        self.jobs.require(run.status == 0 and (self.jobs.folder / "X.npy").read_bytes() == self.jobs.tools.from_memory, *what, run.status, run.errors[-500:])

    def restart(self):
        seconds = self.jobs.seconds
        saved = (self.jobs.folder / "saved" / "manifest.json").exists()
        self.has_the_bits(self.run(*(["--restart", "saved"] if saved else [])), "a restart gives other bits:")
        self.jobs.seconds = seconds

    def nothing_is_left(self):
        self.jobs.require(not os.listdir(self.scratch), "files are left in the scratch directory:", os.listdir(self.scratch))


def on_disk(fault, status, *patterns, checks="entry"):
    """A on disks. `fault` gets a chance."""
    def case(jobs):
        with tempfile.TemporaryDirectory(dir=program.disk()) as scratch:
            solves, rank = OnDisk(jobs, scratch), any_rank(jobs)
            ended = solves.run(fault=f"{rank}:{fault(jobs.chance)}", checks=checks)
            jobs.ended(ended, status, LIMIT + 30)
            for pattern in patterns:
                jobs.require(re.search(pattern.format(rank), ended.errors, re.MULTILINE), "nobody says", pattern.format(rank), ended.errors)
            if status == 0:
                solves.has_the_bits(ended, "the result has other bits")
            else:
                jobs.output_is_old()
                solves.restart()
            solves.nothing_is_left()
    return case


def killed_while_tiles_stay(jobs):
    """The tiles of all ranks are there, since a rank has read its own for longer than ahead of the first product."""
    with tempfile.TemporaryDirectory(dir=program.disk()) as scratch:
        tiles = Path(scratch, "tiles")
        solves = OnDisk(jobs, scratch, "--tiles", tiles)

        def kept():
            return {path.name: path.stat().st_mtime_ns for path in tiles.iterdir()}
        ended = solves.run(fault=f"{any_rank(jobs)}:read-kept:{jobs.chance.randint(100, 300)}:kill")
        jobs.ended(ended, 128 + signal.SIGKILL, LIMIT + 5)
        jobs.output_is_old()
        made = kept()
        jobs.require(len(made) == 2 * RANKS and not program.leftovers(tiles), "tiles:", sorted(made))
        solves.restart()
        jobs.require(kept() == made, "a restart makes tiles again")
        shutil.rmtree(tiles)
        solves.nothing_is_left()


def two_in_one_scratch(jobs):
    with tempfile.TemporaryDirectory(dir=program.disk()) as scratch:
        (jobs.folder / "second").mkdir()
        second = Jobs(jobs.tools, jobs.folder / "second", jobs.expected, jobs.chance)
        both = [OnDisk(each, scratch) for each in (jobs, second)]
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(OnDisk.run, both))
        for solves, run in zip(both, runs, strict=True):
            solves.jobs.ended(run, 0, PATIENCE)
            solves.has_the_bits(run, "the result has other bits")
            solves.nothing_is_left()
        jobs.wrong += second.wrong


@contextlib.contextmanager
def two_hosts(jobs, **options):
    try:
        hosts = TwoHosts(jobs.folder, **options)
        hosts.__enter__()
    except OSError as error:
        raise Skipped(str(error)) from error
    try:
        yield hosts
    finally:
        hosts.__exit__()


def parted(jobs):
    """The cable is cut while a rank takes a second for a product. Each rank names those of the other host."""
    with two_hosts(jobs, hasty=True) as hosts:
        is_over = threading.Event()

        def cut():
            while "fault at" not in jobs.said_by_ranks() and not is_over.wait(0.05):
                pass
            hosts.part()
        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            run = jobs.run(*SAVING, fault=f"{any_rank(jobs)}:cblas_dgemm:{jobs.chance.randint(2, 90)}:slow",
                           environment={"GRIDLOPS_TIMEOUT": str(PARTED_LIMIT)}, mpirun=hosts.mpirun)
        finally:
            is_over.set()
            cutter.join()
        jobs.ended(run, None, PARTED_LIMIT + 15)
    for rank in range(RANKS):
        lost = "ranks 2, 3" if rank < 2 else "ranks 0, 1"
        said = (jobs.folder / f"stderr.{rank}").read_text(encoding="utf-8", errors="replace")
        # On a busy machine MPI may find its connections ended before the limit has passed.
        jobs.require(re.search(rf"^gridlops: rank {rank} on host{rank // 2}: waited in vain .*no word from {lost}: stopped, lost, "
                               r"|mca_btl_tcp_frag_\w+: \w+ failed: Connection", said, re.MULTILINE),
                     f"rank {rank} does not say that {lost} are silent:", said[-2000:])
    jobs.output_is_old()
    jobs.restart()


def lossy(jobs):
    """The network loses each twentieth frame, from the start to the end."""
    few = ["--iterations", "9"]
    sound = jobs.run(*few)
    expected = (jobs.folder / "X.npy").read_bytes()
    (jobs.folder / "X.npy").write_bytes(OLD)
    with two_hosts(jobs, loss=0.05, seed=jobs.chance.random()) as hosts:
        run = jobs.run(*few, environment={"GRIDLOPS_TIMEOUT": str(LOSSY_LIMIT)}, mpirun=hosts.mpirun)
        jobs.ended(run, sound.status, PATIENCE)
    jobs.require(hosts.dropped > 0, "no frame was lost")
    jobs.require((jobs.folder / "X.npy").read_bytes() == expected, "lost frames change the result")
    jobs.require("waited in vain" not in run.errors and not run.error_lines, "lost frames are an error:", run.errors)


# Of these cases this many times the usual number of jobs run at once. Ranks that are stopped leave the
# processors to others; those that wait for lost frames poll and yield, and with 8 of them on two cores Linux
# 6.18 let no other process run for a minute.
TIMES_AT_ONCE = {"stopped": 2, "lossy": 0.25}

# Row of the matrix, what happens, how it is injected, what must happen, the case, whether it is quick.
ROWS = [
    (1, "a rank is killed", "`cblas_dgemm:N:kill`", "137; the last checkpoint goes on with the same bits", killed("cblas_dgemm", 1, 90), True),
    (1, "a rank is killed in a call of MPI", "`MPI_Isend:N:kill`", "the same", killed("MPI_Isend", 1, 200), False),
    (1, "a rank is killed while a space grows", "`cblas_dgemm:N:kill`", "the same, and the same solutions on another grid",
     while_a_space_grows(killed("cblas_dgemm", 60, 500)), True),
    (2, "a rank is stopped", "`cblas_dgemm:N:stop`", "75; every living rank names it", stopped("cblas_dgemm", 1, 90), False),
    (2, "a rank is stopped in a call of MPI", "`MPI_Isend:N:stop`", "the same", stopped("MPI_Isend", 1, 200), False),
    (2, "a rank is stopped while a space grows", "`cblas_dgemm:N:stop`", "the same", while_a_space_grows(stopped("cblas_dgemm", 60, 500)), False),
    (3, "the network parts", "two hosts, their cable is cut", "every rank names those of the other host, or MPI its connection to them", parted, False),
    (3, "the network loses packets", "5 % of all frames, each way", "as without; nothing is said", lossy, False),
    *((4, f"ranks differ: {name}", f"`{name}:1:differ`", "2; every rank has its value in one message",
       in_a_program(f"{name}:1:differ", 2, rf"{text}: .* on ranks .* on rank {{0}}|{text}: .* on rank {{0}}, .* on ranks"), name == "tolerance")
      for name, text in {"tolerance": "tolerance", "iterations": "max_iterations", "damp": "damp", "solver": "the solver",
                         "alpha": "alpha", "columns": "the model", "root": "the root"}.items()),
    (5, "an exception between calls", "`product:50:throw`", "70; its type, text and rank",
     in_a_program("product:50:throw", 70, r"^gridlops: rank {} on \S+: std::runtime_error: the flux is negative"), True),
    (5, "an exception in a user's operator", "`function:50:throw`", "70; its text and rank",
     in_a_program("function:50:throw", 70, r"rank {}: the flux is negative"), True),
    (5, "an exception before a user's own sum", "`own-sum:15:throw`", "70; its text and rank, on every rank",
     in_a_program("own-sum:15:throw", 70, *(rf"^rank {each} caught 70 of rank {{0}}: rank {{0}}: the flux is negative" for each in range(RANKS)),
                  words=("own-sum", "caught")), False),
    (5, "an exception before a user's own messages", "`ring:15:throw`", "the same",
     in_a_program("ring:15:throw", 70, *(rf"^rank {each} caught 70 of rank {{0}}: rank {{0}}: the flux is negative" for each in range(RANKS)),
                  words=("ring", "caught")), False),
    (11, "a full disk", "`write:N:enospc`", "74; the old file, no temporary", full_disk, True),
    (12, "a kill while files are written", "`any:N:kill`", "137; old or whole files, the same bits", killed_while_writing, True),
    (13, "a bit of a checkpoint flips", "the file is changed", "65, or the same bits", flipped_checkpoint, False),
    (14, "a bit of A flips", "`cblas_dgemm:N:flip`", "`--verify-matrix`: 1, and the rank", flipped_matrix, False),
    (14, "a bit of A flips", "`cblas_dgemm:N:flip`", "`--guard 3` raises an alarm", guarded_matrix, False),
    (15, "NaN in a product", "`cblas_dgemm:N:nan`", "3; one column is non_finite, the others as ever", not_a_number, True),
    (16, "the disk for A is full", "`take-room:1:enospc`", "74; nothing is left", on_disk(lambda chance: "take-room:1:enospc", 74, "No space left"), False),
    (16, "A cannot be read", "`read:N:5`", "65; a restart has the same bits",
     on_disk(lambda chance: f"read:{chance.randint(1, 400)}:5", 65, r"cannot read \d+ bytes of A at byte \d+ of .*: Input/output error"), True),
    (16, "reads are short", "`read:N:short`", "0; the same bits", on_disk(lambda chance: f"read:{chance.randint(1, 400)}:short", 0), False),
    (16, "a byte of A flips on the disk", "`read:N:flip`", "65, by its hash; a restart has the same bits",
     on_disk(lambda chance: f"read:{chance.randint(1, 12)}:flip", 65, "are not those that were written"), False),
    (16, "a byte of A flips later", "`read:N:flip`", "the same, with `GRIDLOPS_CHECK=all`",
     on_disk(lambda chance: f"read:{chance.randint(100, 300)}:flip", 65, "are not those that were written", checks="all"), False),
    (16, "a disk is slow", "`read:N:block`", "0; the rank and its disk are named",
     on_disk(lambda chance: f"read:{chance.randint(1, 200)}:block", 0, r"^gridlops: rank {} on \S+: has waited 10 s for \d+ bytes of A from"), False),
    (16, "a disk is slow to take A", "`store:N:block`", "the same",
     on_disk(lambda chance: f"store:{chance.randint(1, 60)}:block", 0, r"^gridlops: rank {} on \S+: has waited 10 s for \d+ bytes of A to reach"), False),
    (16, "a disk is slow to flush A", "`settle:N:block`", "the same",
     on_disk(lambda chance: f"settle:{chance.randint(1, 2)}:block", 0, r"^gridlops: rank {} on \S+: has waited 10 s for A to reach"), False),
    (16, "a rank is killed while it reads A", "`read:N:kill`", "137; nothing is left; the same bits",
     on_disk(lambda chance: f"read:{chance.randint(1, 400)}:kill", 137), False),
    (16, "a rank is killed while tiles stay", "`read-kept:N:kill`", "137; a restart takes them; the same bits", killed_while_tiles_stay, False),
    (16, "two jobs in one scratch directory", "both at once", "0; the same bits; nothing is left", two_in_one_scratch, False),
    (17, "SIGTERM", "`cblas_dgemm:N:term`", "75; saved, and goes on with the same bits", terminated, True),
    (17, "SIGTERM while a space grows", "`cblas_dgemm:N:term`", "the same", while_a_space_grows(terminated), False),
    (18, "a rank is slow", "`cblas_dgemm:N:slow`", "0; nothing is said", slowed, False),
]


def make_problem(folder):
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((301, 203), (203, 203)))
    A, B = (left * np.geomspace(1, 1 / 30, 203)) @ right.T, rng.standard_normal((301, 7))
    for name, array in {"A": A, "B": B}.items():
        np.save(folder / f"{name}.npy", array)


def make_large_problem(folder):
    folder.mkdir()
    rng = np.random.default_rng(4)
    for name, shape in {"A": (2203, 1801), "B": (2203, 3)}.items():
        np.save(folder / f"{name}.npy", rng.standard_normal(shape))


def run_row(tools, source, expected, row, repeat):
    """What is wrong, and the seconds until the job was over; or why this cannot be shown here."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        for path in source.glob("*.npy"):
            shutil.copy(path, folder)
        jobs = Jobs(tools, os.path.realpath(folder), expected, random.Random(f"{row[1]}, {row[3]}, {repeat}"))
        jobs.fresh()
        try:
            row[4](jobs)
        except Skipped as reason:
            return str(reason)
        return jobs.wrong, jobs.seconds


def table(lines):
    head = ["row", "fault", "injected", "must happen", "repeats", "as it must", "seconds, median", "most"]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *lines])


def write_table(path, lines):
    """Into a page in place of the lines of these faults in its table, or else as a table in a file of its own."""
    def fault_of(line):
        return tuple(line.split("|")[1:5])
    made = table(lines).splitlines()
    page = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if made[0] not in page:
        page += made
    anew = {fault_of(line): line for line in made[2:]}
    page = [anew.get(fault_of(line), line) for line in page]
    path.write_text("\n".join(page) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("launch", "program", "odd_rank", "injected"):
        parser.add_argument(name, type=os.path.realpath)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--rows", type=lambda text: {int(word) for word in text.split(",")})
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", type=Path, help="a page in whose table the lines are replaced, or a new file")
    tools = parser.parse_args()
    failed = 0
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        make_problem(source)
        sound = Jobs(tools, os.path.realpath(folder), b"", random.Random(0))
        run = sound.run()
        if run.status != 0:
            sys.exit(f"without a fault: status {run.status}\n{run.errors}")
        tools.solution = source / "sound.npy"
        os.rename(source / "X.npy", tools.solution)
        expected = tools.solution.read_bytes()
        tools.large = source / "large"
        make_large_problem(tools.large)
        run = sound.run("--storage", "packed", "--one-pass", "on", solve=large_problem(tools), environment=FROM_DISK)
        if run.status != 0:
            sys.exit(f"without a fault: status {run.status}\n{run.errors}")
        tools.from_memory = (source / "X.npy").read_bytes()
        for row in ROWS:
            if (tools.rows and row[0] not in tools.rows) or (tools.quick and not row[5]):
                continue
            begin = time.monotonic()
            at_once = max(1, int(tools.at_once * TIMES_AT_ONCE.get(row[4].__qualname__.split(".")[0], 1)))
            with ThreadPoolExecutor(at_once) as pool:
                results = list(pool.map(lambda repeat, row=row: run_row(tools, source, expected, row, repeat), range(tools.repeats)))
            if all(isinstance(result, str) for result in results):
                lines.append([*row[:4], "skipped", results[0], "", ""])
                print(table(lines[-1:]).splitlines()[-1], flush=True)
                continue
            # What works at all must work each time.
            results = [([result], 0.0) if isinstance(result, str) else result for result in results]
            good = [not wrong for wrong, _ in results]
            seconds = [seconds for _, seconds in results]
            failed += len(good) - sum(good)
            lines.append([row[0], row[1], row[2], row[3], tools.repeats, sum(good), f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"])
            print(table(lines[-1:]).splitlines()[-1], f"({time.monotonic() - begin:.0f} s)", flush=True)
            for wrong in [wrong for wrong, _ in results if wrong][:3]:
                print("FAILED:", *wrong, sep="\n    ")
    if tools.table:
        write_table(tools.table, lines)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
