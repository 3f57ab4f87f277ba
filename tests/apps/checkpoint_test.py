#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops solve --checkpoint` and `--restart` with jobs that are killed, warned, or told to do what they cannot.
checkpoint_test.py LAUNCH PROGRAM [--full]: with --full more kills and more systems"""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np

import program

RANKS = 4
GRID = "2x2"
FEW_RANKS, FEW_GRID = 2, "2x1"  # for what does not depend on them
SOLVE = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--tolerance", "1e-8", "--iterations", "400", "--damp-relative",
         "1e-4", "--quiet"]
SAVING = ["--checkpoint", "saved", "--checkpoint-every", "4"]


# A run that never ends by itself, because its steps are so short.
ENDLESS = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--solver", "ista", "--lambda", "1e-3", "--step", "1e-9", "--tolerance", "0",
           "--iterations", "1000000000", "--output", "endless.npy"]


# The usual time between mpirun's SIGTERM to a rank, which may save its state then, and its SIGKILL.
PATIENT = {"OMPI_MCA_odls_base_sigkill_timeout": "1"}


class Job:
    """A solver on several ranks, or on one without mpirun, that runs while the test does something to it."""

    def __init__(self, suite, *options, solve=None, ranks=RANKS, first=None, environment=None):
        """first: a function that the new process calls before it becomes the job."""
        launcher = [] if ranks is None else [str(suite.launch), str(ranks)]
        self.process = subprocess.Popen(
            [*launcher, str(suite.program), *(solve or [*SOLVE, "--grid", GRID]), *options], cwd=suite.folder,
            env={**os.environ, **program.ALWAYS, **program.ON_DEVICE, **PATIENT, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=first)

    def ranks(self):
        """The numbers of the processes that mpirun started."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
                return [int(word) for word in children.read().split()]
        except OSError:
            return []

    def wait_until(self, condition, seconds=30):
        """Waits until the condition holds, and returns true; false if the job ends before, or time runs out."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.0005)
        return False

    def wait_for_rows(self, count=1):
        """Waits until the table has this many more rows, so that the solver is at work."""
        while count > 0 and (line := self.process.stdout.readline()):
            count -= line[:9].strip().isdigit()

    def end(self):
        try:
            output, errors = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            output, errors = self.process.communicate()
            errors += "\nkilled after 60 s"
        return program.Run(self.process.args, self.process.returncode, output, errors, 0)


def make_problem(suite):
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((301, 203), (203, 203)))
    np.save(suite.folder / "A.npy", (left * np.geomspace(1, 1 / 30, 203)) @ right.T)
    np.save(suite.folder / "B.npy", rng.standard_normal((301, 7)))


def solution(suite, name):
    return (suite.folder / name).read_bytes()


def generations(folder):
    return sorted(int(path.name.split("-")[1]) for path in folder.glob("generation-*"))


def check_resumed(suite, expected, *what):
    """Restarts from what was saved, or from the start, and compares the result bit by bit."""
    saved = (suite.folder / "saved" / "manifest.json").exists()
    run = suite.run(*SOLVE, "--grid", GRID, *SAVING, *(["--restart", "saved"] if saved else []), "--output", "again.npy",
                    ranks=RANKS)
    suite.succeeded(run)
    suite.check(solution(suite, "again.npy") == expected, "the restart ends with other bits:", *what)


def test_kills(suite, expected, at_any_time, in_writes):
    chance = random.Random(5)
    in_a_write = 0
    for trial in range(at_any_time + in_writes):
        shutil.rmtree(suite.folder / "saved", ignore_errors=True)
        saved = suite.folder / "saved"
        job = Job(suite, *SAVING, "--output", "killed.npy")
        job.wait_until(lambda: len(job.ranks()) == RANKS)
        if trial < at_any_time:
            time.sleep(chance.uniform(0.05, 0.8))
        else:
            # A new folder of a generation shows that a checkpoint is being written.
            wanted = chance.randrange(1, 8)
            in_a_write += job.wait_until(lambda: saved.exists() and max(generations(saved), default=0) >= wanted)
        ranks = job.ranks()
        if ranks:
            os.kill(chance.choice(ranks), signal.SIGKILL)
        run = job.end()
        output = suite.folder / "killed.npy"
        suite.check(run.status != 0 or output.exists(), "a job without one of its ranks ended well:", run.output, run.errors)
        suite.check(not output.exists() or output.read_bytes() == expected, "a killed job left half an output")
        for left in suite.folder.glob("killed.npy*"):  # rank 0 may have left a part of it under another name
            left.unlink()
        check_resumed(suite, expected, f"kill {trial} after generations {generations(saved) if saved.exists() else []}")
    suite.check(in_a_write > 0, "no kill came while a checkpoint was written")


def test_warnings(suite, expected):
    """Signals as schedulers send them save the state, and the trace: USR1 goes through mpirun to all ranks, TERM to one rank."""
    for number in (signal.SIGUSR1, signal.SIGTERM):
        shutil.rmtree(suite.folder / "saved", ignore_errors=True)
        (suite.folder / "trace.json").unlink(missing_ok=True)
        job = Job(suite, *SAVING, "--output", "warned.npy", environment={"GRIDLOPS_TRACE": "chrome:trace.json"})
        job.wait_until(lambda: (suite.folder / "saved" / "manifest.json").exists())
        os.kill(job.process.pid if number == signal.SIGUSR1 else job.ranks()[-1], number)
        run = job.end()
        suite.succeeded(run, status=75)
        suite.check(len(run.warning_lines) == 1 and "was saved in saved" in run.warning_lines[0] and not run.error_lines,
                    "one line should say that the state was saved:", run.errors)
        events = json.loads((suite.folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        suite.check({event["pid"] for event in events if event["name"] == "iteration"} == set(range(RANKS)), "the trace was lost")
        suite.check(not (suite.folder / "warned.npy").exists(), "a solver that was not done left an output")
        check_resumed(suite, expected, number)


def test_signals_without_checkpoints(suite):
    """Without --checkpoint USR1 ends nothing, which the run says once. INT and TERM end it, and it says so."""
    job = Job(suite, solve=[*ENDLESS, "--grid", GRID])
    job.wait_for_rows(12)
    os.kill(job.process.pid, signal.SIGUSR1)
    while (line := job.process.stderr.readline()) and "SIGUSR1 came after iteration" not in line:
        pass
    suite.check("warning" in line, "USR1 should lead to a warning:", line)
    os.kill(job.process.pid, signal.SIGUSR1)
    time.sleep(0.5)
    job.wait_for_rows()
    suite.check(job.process.poll() is None, "USR1 ended a run")
    # On Ctrl-C mpirun sends TERM, too, but may end before it has passed on what ranks say.
    os.kill(job.ranks()[0], signal.SIGTERM)
    run = job.end()
    suite.check(run.status != 0, "a run that was interrupted ended well", run.errors)
    suite.check(not run.warning_lines, "should be said once:", run.errors)
    suite.check(len(run.error_lines) == 1 and "SIGTERM ended the run after iteration" in run.error_lines[0], "should be said:", run.errors)
    job = Job(suite, solve=ENDLESS, ranks=None)
    job.wait_for_rows(3)
    os.kill(job.process.pid, signal.SIGINT)
    run = job.end()
    suite.succeeded(run, status=-signal.SIGINT)
    suite.check(len(run.error_lines) == 1 and "SIGINT ended the run after iteration" in run.error_lines[0]
                and "iteration 0;" not in run.error_lines[0], "should be said:", run.errors)
    suite.check(not (suite.folder / "endless.npy").exists(), "an interrupted run left an output")
    # A shell makes what it starts in the background ignore INT.
    job = Job(suite, solve=ENDLESS, ranks=None, first=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    job.wait_for_rows(3)
    os.kill(job.process.pid, signal.SIGINT)
    job.wait_for_rows(2)
    suite.check(job.process.poll() is None, "INT ended a run that was begun with INT ignored")
    job.process.kill()
    job.end()


def test_interrupts(suite):
    """With --checkpoint the first INT saves the state and ends the run; the second ends it at once."""
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    job = Job(suite, "--checkpoint", "saved", solve=ENDLESS, ranks=None)
    job.wait_for_rows(3)
    os.kill(job.process.pid, signal.SIGINT)
    run = job.end()
    suite.succeeded(run, status=75)
    suite.check(len(run.warning_lines) == 2 and "interrupted after iteration" in run.warning_lines[0]
                and "was saved in saved" in run.warning_lines[1], "should say what happens:", run.errors)
    suite.check((suite.folder / "saved" / "manifest.json").exists(), "nothing was saved")
    shutil.rmtree(suite.folder / "saved")
    # An iteration takes some tenths of a second, so that both signals come within one.
    rng = np.random.default_rng(8)
    np.save(suite.folder / "large_A.npy", rng.standard_normal((2500, 2500)))
    np.save(suite.folder / "large_B.npy", rng.standard_normal((2500, 200)))
    job = Job(suite, "--checkpoint", "saved", ranks=None,
              solve=[{"A.npy": "large_A.npy", "B.npy": "large_B.npy"}.get(word, word) for word in ENDLESS])
    job.wait_for_rows()
    os.kill(job.process.pid, signal.SIGINT)
    job.wait_until(lambda: not catches(job.process.pid, signal.SIGINT))
    os.kill(job.process.pid, signal.SIGINT)
    run = job.end()
    suite.succeeded(run, status=-signal.SIGINT)
    suite.check(len(run.warning_lines) == 1, "should say that the first was heard:", run.errors)


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        masks = dict(line.split(":\t", 1) for line in status if line.startswith("Sig"))
    return bool(int(masks["SigCgt"], 16) >> (number - 1) & 1)


def test_two_jobs(suite):
    """While a job saves, no other may use its directory. Once it was killed another goes on at once, and only from what was saved."""
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    saved, saving = suite.folder / "saved", ["--checkpoint", "saved", "--checkpoint-every", "2"]
    job = Job(suite, *saving, solve=ENDLESS, ranks=None)
    job.wait_until(lambda: (saved / "manifest.json").exists())
    def refused(*texts, ranks, more=()):
        run = suite.run(*ENDLESS[:-1], "second.npy", *saving, *more, ranks=ranks)
        suite.succeeded(run, status=74)
        suite.check(len(run.error_lines) == 1 and all(text in run.error_lines[0] for text in texts), "should say", texts, run.errors)
        suite.check(not (suite.folder / "second.npy").exists(), "wrote an output:", run.command)
    for ranks in (None, RANKS):
        for more in ((), ("--restart", "saved")):
            refused("saved/lock: is held by", f"process {job.process.pid} on", "name another folder", ranks=ranks, more=more)
    suite.check(job.process.poll() is None, "the first job ended")
    job.process.kill()
    job.end()
    suite.check((saved / "lock").exists(), "a killed job leaves its lock, or this shows nothing")
    before = (saved / "manifest.json").read_bytes()
    for ranks in (None, RANKS):
        refused("saved/manifest.json: names what an earlier run saved", "restart from saved", ranks=ranks)
    suite.check((saved / "manifest.json").read_bytes() == before, "a refused job changed the checkpoint")
    run = suite.run(*[{"1000000000": "3", "endless.npy": "went_on.npy"}.get(word, word) for word in ENDLESS], "--quiet", *saving, "--restart", "saved")
    suite.succeeded(run, status=3)
    suite.check(not (saved / "lock").exists(), "a job left its lock")


def test_limit(suite, expected):
    """A run that ended at its limit of iterations goes on when the limit is raised."""
    limited = [word if word != "400" else "15" for word in SOLVE]
    for every in ([], ["--checkpoint-every", "4"]):
        shutil.rmtree(suite.folder / "saved", ignore_errors=True)
        run = suite.run(*limited, "--grid", GRID, "--checkpoint", "saved", *every, "--output", "limited.npy", ranks=RANKS)
        suite.succeeded(run, status=3)
        suite.check(solution(suite, "limited.npy") != expected, "it was through before its limit")
        check_resumed(suite, expected, "at the limit", *every)


def test_histories(suite):
    """The history of a restart has all iterations if each run before kept its own, and says that it has not otherwise."""
    solve = ["solve", "--matrix", "small_A.npy", "--rhs", "small_B.npy", "--quiet", "--tolerance", "0", "--grid", FEW_GRID, "--output", "small_X.npy"]

    def history(last, name, *options):
        run = suite.run(*solve, "--iterations", last, *(["--history", name] if name else []), *options, ranks=FEW_RANKS)
        suite.succeeded(run, status=3)
        told = [line for line in run.warning_lines if f"{name} will not have all iterations up to {last - 3}" in line and "--history" in line]
        return told, (suite.folder / name).read_text(encoding="utf-8") if name else ""

    whole = history(9, "whole.csv")[1]
    for begun, gone_on in (("first.csv", "second.csv"), ("first.csv", None), (None, "second.csv"), (None, None)):
        for last, name, *how in ((3, begun), (6, gone_on, "--restart", "small")):
            history(last, name, "--checkpoint", "small", *how)
        told, found = history(9, "last.csv", "--restart", "small")
        suite.check((found == whole) == bool(begun and gone_on) == (not told), begun, gone_on, told, found)
        suite.check(set(found.splitlines()[1:]) >= {row for row in whole.splitlines()[1:] if row.startswith(("7,", "8,", "9,"))}, begun, gone_on, found)
        shutil.rmtree(suite.folder / "small")


def test_folders_of_others(suite):
    """What others keep under names of checkpoints stays, a run that has converged goes on, and a checkpoint that cannot be written
    keeps nobody from the solution."""
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    saved = suite.folder / "saved"

    def begin_with(*names):
        shutil.rmtree(saved, ignore_errors=True)
        for name in names:
            (saved / f"generation-{name}").mkdir(parents=True)
            (saved / f"generation-{name}" / "best.txt").write_text("population", encoding="utf-8")

    words = [word for word in SOLVE if word not in ("--tolerance", "1e-8")]

    def solve(output, tolerance, *more, **how):
        run = suite.run(*words, "--tolerance", tolerance, "--output", output, *more, **how)
        suite.succeeded(run)
        return run, np.load(suite.folder / output)

    begin_with(1, 7)
    solve("begun.npy", "1e-2", *SAVING)
    suite.check(all((saved / f"generation-{name}" / "best.txt").exists() for name in (1, 7)), "lost files of others")
    _, tighter = solve("tighter.npy", "1e-8", *SAVING, "--restart", "saved")
    _, at_once = solve("at_once.npy", "1e-8")
    suite.check(np.linalg.norm(tighter - at_once) <= 1e-5 * np.linalg.norm(at_once), "a converged run goes on to another solution")
    last = (18446744073709551614, 18446744073709551615)  # no number comes behind these
    begin_with(*last)
    run, anyhow = solve("no_room.npy", "1e-8", *SAVING)
    suite.check((anyhow == at_once).all(), "a checkpoint that was not written changed the solution")
    suite.check(len(run.warning_lines) > 1 and all("a checkpoint was not written: rank 0: saved/generation-" in line and "goes on" in line
                                                   for line in run.warning_lines), "should warn:", run.errors)
    job = Job(suite, "--checkpoint", "saved", solve=ENDLESS, ranks=None)
    job.wait_for_rows(3)
    os.kill(job.process.pid, signal.SIGTERM)
    run = job.end()
    suite.succeeded(run, status=74)
    suite.check(len(run.error_lines) == 1 and f"generation-{last[1]}: is in the way" in run.error_lines[0], "should say:", run.errors)
    shutil.rmtree(saved)


def test_guesses(suite):
    """A restart goes on with the same initial guess or without one, and refuses another."""
    solve = ["solve", "--matrix", "small_A.npy", "--rhs", "small_B.npy", "--quiet", "--tolerance", "0", "--grid", FEW_GRID, "--output"]
    np.save(suite.folder / "other_X0.npy", -np.load(suite.folder / "small_X0.npy"))
    suite.run(*solve, "whole_small.npy", "--iterations", "9", "--initial", "small_X0.npy", ranks=FEW_RANKS)
    for begun, wrong, text in ((["--initial", "small_X0.npy"], ["--initial", "other_X0.npy"], "another initial guess"),
                               ([], ["--initial", "small_X0.npy"], "--initial is given here, and was none")):
        suite.run(*solve, "small_X.npy", "--iterations", "4", *begun, "--checkpoint", "small", ranks=FEW_RANKS)
        for more in (begun, []):
            suite.run(*solve, "small_X.npy", "--iterations", "9", *more, "--restart", "small", ranks=FEW_RANKS)
            suite.check(not begun or solution(suite, "small_X.npy") == solution(suite, "whole_small.npy"), "other bits with", more)
        run = suite.run(*solve, "refused.npy", "--iterations", "9", *wrong, "--restart", "small", ranks=FEW_RANKS)
        suite.succeeded(run, status=65)
        suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], f"should say {text!r}:", run.errors)
        shutil.rmtree(suite.folder / "small")


def test_other_grids(suite, expected):
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    suite.run(*SOLVE[:-5], "--iterations", "20", "--damp-relative", "1e-4", "--quiet", "--grid", GRID, *SAVING, "--output",
              "some.npy", ranks=RANKS)
    reference = np.load(suite.folder / "again.npy")
    for ranks, grid in ((1, "1x1"), (3, "1x3"), (6, "3x2")):
        run = suite.run(*SOLVE, "--grid", grid, "--restart", "saved", "--output", "other.npy", ranks=ranks)
        suite.succeeded(run)
        suite.check(len(run.warning_lines) == 1 and f"grid {grid} instead of {GRID}" in run.warning_lines[0],
                    "another grid should be named:", run.errors)
        suite.close(np.load(suite.folder / "other.npy"), reference, 1e-6 * np.abs(reference).max(), "on", grid)
    run = suite.run(*SOLVE, "--grid", GRID, "--transport", "shared", "--restart", "saved", "--output", "other.npy", ranks=RANKS)
    suite.succeeded(run)
    suite.check(len(run.warning_lines) == 1 and run.warning_lines[0].endswith(": transport shared instead of mpi"), "another transport should be named:",
                run.errors)


def test_refusals(suite):
    """A refusal has its exit status, one message with the values, and no output, and takes at most 5 s."""
    folder = suite.folder
    other = np.load(folder / "B.npy")
    other[:, 3] *= 2
    np.save(folder / "B2.npy", other)
    other = np.load(folder / "A.npy")
    other[17, 5] += 1e-3
    np.save(folder / "A2.npy", other)
    shutil.copytree(folder / "saved", folder / "damaged")
    newest = folder / "damaged" / f"generation-{generations(folder / 'damaged')[-1]}" / "r.npy"
    content = bytearray(newest.read_bytes())
    content[-100] ^= 1
    newest.write_bytes(content)
    (folder / "none").mkdir()
    (folder / "file").write_text("no directory", encoding="ascii")
    cases = [
        (65, "there is no manifest.json", ["--restart", "none"]),
        (65, "there is no manifest.json", ["--restart", "nowhere"]),
        (65, "the checkpoint is damaged", ["--restart", "damaged"]),
        (65, "right-hand side 3", ["--restart", "saved", "--rhs", "B2.npy"]),
        (65, "another operator", ["--restart", "saved", "--matrix", "A2.npy"]),
        (65, "--solver is lsqr here, and was cgls", ["--restart", "saved", "--solver", "lsqr"]),
        (65, "--one-pass is on here, and was off", ["--restart", "saved", "--one-pass", "on"]),
        (74, "file: checkpoints cannot be kept there", ["--checkpoint", "file"]),
        (2, "--checkpoint-every", ["--checkpoint", "c", "--checkpoint-every", "0"]),
        (2, "--checkpoint-every", ["--checkpoint", "c", "--checkpoint-every", "5q"]),
        (2, "--checkpoint-every", ["--checkpoint", "c", "--checkpoint-every", "-3m"]),
        (2, "--checkpoint", ["--checkpoint-every", "5"]),
    ]
    defaults = {"--matrix": "A.npy", "--rhs": "B.npy"}
    for status, text, options in cases:
        operands = [word for name, value in defaults.items() if name not in options for word in (name, value)]
        run = suite.run("solve", *operands, *options, "--damp-relative", "1e-4", "--tolerance", "1e-8", "--output", "refused.npy",
                        "--grid", GRID, ranks=None if status == 2 else RANKS)
        suite.succeeded(run, status=status)
        suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], f"should say {text!r}:", run.errors)
        suite.check(not (folder / "refused.npy").exists(), "an output after a refusal:", run.command)


def test_space(suite, kills):
    """A space that was killed or told to end while it grew goes on with the same bits, also to other dampings; then other data are solved in it."""
    folder = suite.folder
    solve = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--quiet", "--grid", GRID, "--damps", "0.01:1:12", "--sweep", "space", "--choose", "lcurve",
             "--curve", "curve.csv"]
    saving = ["--checkpoint", "space", "--checkpoint-every", "1"]
    suite.succeeded(suite.run(*solve, "--output", "whole.npy", ranks=RANKS))
    expected, curve = solution(suite, "whole.npy"), solution(suite, "curve.csv")
    space, chance = folder / "space", random.Random(6)
    for number in [signal.SIGUSR1] + [signal.SIGKILL] * kills:
        shutil.rmtree(space, ignore_errors=True)
        job = Job(suite, *saving, "--output", "ended.npy", solve=solve)
        wanted = chance.randrange(2, 6)  # of about 30
        job.wait_until(lambda: space.exists() and max(generations(space), default=0) >= wanted)
        os.kill(job.process.pid if number == signal.SIGUSR1 else chance.choice(job.ranks() or [job.process.pid]), number)
        run = job.end()
        if number == signal.SIGUSR1:
            suite.succeeded(run, status=75)
            suite.check(len(run.warning_lines) == 1 and "saved in space" in run.warning_lines[0], "one line should say that the space was saved:", run.errors)
        suite.check(run.status != 0 and not (folder / "ended.npy").exists(), "a job that was ended", run.status, run.errors)
        suite.succeeded(suite.run(*solve, *saving, "--restart", "space", "--output", "again.npy", ranks=RANKS))
        suite.check(solution(suite, "again.npy") == expected and solution(suite, "curve.csv") == curve, "the restart ends with other bits", number)
    wider = [{"0.01:1:12": "0.003:1:20"}.get(word, word) for word in solve]
    run = suite.run(*wider, *saving, "--restart", "space", "--output", "wider.npy", "--report", "wider.json", ranks=RANKS)
    suite.succeeded(run)
    A, b = np.load(folder / "A.npy"), np.load(folder / "B.npy")[:, ::-1]
    np.save(folder / "turned.npy", b)
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "turned.npy", "--damp", "0.01", "--space", "space", "--output", "turned_X.npy", "--report",
                    "turned.json", "--grid", FEW_GRID, ranks=FEW_RANKS)
    if suite.succeeded(run):
        suite.close(np.load(folder / "turned_X.npy"), np.linalg.solve(A.T @ A + 1e-4 * np.eye(A.shape[1]), A.T @ b), 1e-5, "other data")
    for status, text, options in ((65, "for other data: here column 0", ["--rhs", "turned.npy"]), (65, "holds a checkpoint of a solution space", ["--solver", "lsqr"])):
        words = [word for word in wider if word not in ("--rhs", "B.npy")] if "--rhs" in options else SOLVE
        run = suite.run(*words, *options, "--restart", "space", "--output", "refused.npy", *(["--grid", GRID] if words is SOLVE else []), ranks=RANKS)
        suite.check(run.status == status and len(run.error_lines) == 1 and text in run.error_lines[0], f"should say {text!r}:", run.status, run.errors)


def test_systems_of_the_program(suite, full):
    """A restart has the same bits also where the operator has the scaling or the damping, and where more than X is written."""
    rng = np.random.default_rng(4)
    np.save(suite.folder / "small_A.npy", rng.standard_normal((60, 40)))
    np.save(suite.folder / "small_B.npy", rng.standard_normal((60, 3)))
    np.save(suite.folder / "small_X0.npy", np.ones((40, 3)))
    systems = [["--solver", "cgls", "--damp-relative", "0.01", "--precondition", "column-norms"],
               ["--solver", "lsqr", "--damp-relative", "0.02", "--initial", "small_X0.npy"]]
    if full:
        systems += [["--one-pass", "on", "--damp-relative", "0.01"], ["--storage", "packed", "--algorithm", "stationary-a"],
                    ["--solver", "lsqr", "--variances", "V.npy"], ["--solver", "fista", "--lambda", "0.1"]]
    for options in systems:
        solve = ["solve", "--matrix", "small_A.npy", "--rhs", "small_B.npy", "--quiet", "--grid", FEW_GRID, *options]
        results = []
        for more in (["--iterations", "30"], ["--iterations", "9", "--checkpoint", "small", "--checkpoint-every", "4"],
                     ["--iterations", "30", "--restart", "small"]):
            run = suite.run(*solve, *more, "--output", "small_X.npy", ranks=FEW_RANKS)
            suite.check(run.status in (0, 3), run.command, run.errors)
            results.append([(suite.folder / name).read_bytes() for name in ("small_X.npy", "V.npy")
                            if (suite.folder / name).exists()])
        suite.check(results[0] == results[2], "a restart ends with other bits:", *options)
        suite.check(results[0] != results[1], "it was through before it was interrupted:", *options)
        (suite.folder / "V.npy").unlink(missing_ok=True)
        shutil.rmtree(suite.folder / "small")


def test_form_of_one_pass(suite):
    """A restart goes on with one pass or with two, as the run was begun, also where `auto` would choose otherwise now."""
    solve = ["solve", "--matrix", "small_A.npy", "--rhs", "small_B.npy", "--output", "small_X.npy", "--quiet", "--report", "R.json",
             "--tolerance", "0"]
    for begun, name in (("on", "one-pass-cgls"), ("auto", "cgls")):
        suite.run(*solve, "--grid", FEW_GRID, "--one-pass", begun, "--iterations", "5", "--checkpoint", "small", "--checkpoint-every",
                  "5", ranks=FEW_RANKS)
        for ranks, grid in ((FEW_RANKS, FEW_GRID), (3, "3x1")):
            run = suite.run(*solve, "--grid", grid, "--one-pass", "auto", "--iterations", "9", "--restart", "small", ranks=ranks)
            suite.check(run.status in (0, 3), run.command, run.errors)
            solver = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))["solver"]
            suite.check(solver == name, "begun with --one-pass", begun, "it goes on with", solver, "on", grid)
        shutil.rmtree(suite.folder / "small")


def test_storage(suite):
    """A restart stores A as the run did that it goes on with, also where `auto` would not, because the bits depend on it."""
    solve = ["solve", "--matrix", "small_A.npy", "--rhs", "small_B.npy", "--output", "small_X.npy", "--quiet", "--tolerance", "0",
             "--grid", FEW_GRID, "--algorithm", "stationary-a"]
    results = {}
    for storage in ("packed", "columns"):
        suite.run(*solve, "--storage", storage, "--iterations", "9", ranks=FEW_RANKS)
        results[storage] = (suite.folder / "small_X.npy").read_bytes()
    suite.check(program.DEVICE == "gpu" or results["packed"] != results["columns"], "the storage changes no bit, so this test shows nothing")
    for storage, bits in results.items():
        suite.run(*solve, "--storage", storage, "--iterations", "5", "--checkpoint", "small", "--checkpoint-every", "5", ranks=FEW_RANKS)
        suite.run(*solve, "--iterations", "9", "--restart", "small", ranks=FEW_RANKS)
        suite.check((suite.folder / "small_X.npy").read_bytes() == bits, "a restart does not store A in", storage)
        run = suite.run(*solve[:-1], "summa", "--iterations", "9", "--restart", "small", ranks=FEW_RANKS)
        suite.check(run.status in (0, 3), "a restart by summa, begun in", storage, run.errors)
        shutil.rmtree(suite.folder / "small")


def test(suite, full):
    make_problem(suite)
    run = suite.run(*SOLVE, "--grid", GRID, "--output", "whole.npy", ranks=RANKS)
    suite.succeeded(run)
    expected = solution(suite, "whole.npy")
    kills = 5 if full else 2
    test_kills(suite, expected, at_any_time=kills, in_writes=kills)
    test_warnings(suite, expected)
    test_two_jobs(suite)
    test_limit(suite, expected)
    test_other_grids(suite, expected)
    test_refusals(suite)
    test_space(suite, 4 if full else 1)
    test_systems_of_the_program(suite, full)
    if full:
        test_form_of_one_pass(suite)
        test_storage(suite)
    test_histories(suite)
    test_folders_of_others(suite)
    test_guesses(suite)
    test_signals_without_checkpoints(suite)
    test_interrupts(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
