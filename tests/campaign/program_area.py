# SPDX-License-Identifier: BSD-3-Clause
"""Solves by the program: files, exit statuses, reports, restarts with other options, kills, and two jobs in one folder."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import properties
from problems import SPARSE, Problem
from properties import SOLVED, require
from workers import LAUNCH, Lost

REFUSED = {2, 65}
OLD = b"what was there before\n"


class Job:
    """One command in a folder of its own, with what Problem(case) says."""

    def __init__(self, build, folder, case, files=""):
        self.case, self.folder, self.files = case, Path(folder), files
        self.problem = Problem(case)
        program = build / ("tests/emulation" if case["device"] == "gpu" else "apps") / "gridlops"
        self.command = [str(LAUNCH), str(case["how"]["ranks"]), str(program), "solve", *self.options()]

    def name(self, stem):
        return f"{stem}{self.files}"

    def options(self):
        case, problem, how = self.case, self.problem, self.case["how"]
        options = {"matrix": self.write("A", problem.A), "rhs": self.write("B", problem.B), "output": self.name("X") + ".npy",
                   "report": self.name("report") + ".json", "solver": case["solver"], "iterations": case["iterations"],
                   "batch": case["batch"], "grid": "{}x{}".format(*how["grid"]), "algorithm": how["algorithm"], "transport": how["transport"],
                   "device": case["device"]}
        if how["algorithm"] == "stationary-a" and case["device"] == "cpu" and not case["one_pass"]:
            options["storage"] = how["storage"]
        if problem.tolerance_varies:
            options["tolerances"] = self.write("T", np.array(problem.T, float))
        else:
            options["tolerance"] = case["tolerance"]
        if problem.damp_varies:
            options["damps"] = self.write("D", np.array(problem.D, float))
        elif problem.D and problem.D[0]:
            options["damp-relative" if case["relative"] else "damp"] = case["damp"] if case["relative"] else repr(problem.D[0])
        if case["solver"] in SPARSE:
            options["lambda-relative" if case["relative"] else "lambda"] = repr(case["lambda"])
        if case["column_norms"]:
            options["precondition"] = "column-norms"
            lengths = np.sqrt((abs(properties.wide(problem.A)) ** 2).sum(axis=0))
            problem.d = np.where(lengths > 0, 1 / np.where(lengths > 0, lengths, 1), 1).astype(problem.A.dtype)
        if case["guard"]:
            options["guard"] = case["guard"]
        if case["condition_limit"]:
            options["conlim"] = case["condition_limit"]
        if problem.X0 is not None:
            options["initial"] = self.write("X0", problem.X0)
        if case["one_pass"]:
            options["one-pass"] = "on"
        flags = ["--quiet"] + ["--column-stable"] * how["column_stable"]
        flags += ["--backtracking"] * (case["solver"] in SPARSE and case["backtracking"])
        flags += ["--monotone"] * (case["solver"] == "fista" and case["monotone"])
        return [word for key, value in options.items() for word in (f"--{key}", str(value))] + flags

    def write(self, stem, array):
        name = self.name(stem) + ".npy"
        one = array.ndim == 2 and array.shape[1] == 1 and self.case["vector"] and stem in ("B", "X0")
        np.save(self.folder / name, np.ascontiguousarray(array[:, 0] if one else array) if self.case["c_order"] else array[:, 0] if one else array)
        return name

    def start(self, *more):
        (self.folder / (self.name("X") + ".npy")).write_bytes(OLD)
        (self.folder / (self.name("report") + ".json")).unlink(missing_ok=True)
        environment = {**os.environ, "HWLOC_HIDE_ERRORS": "2", "OMPI_MCA_odls_base_sigkill_timeout": "0", "GRIDLOPS_TIMEOUT": "60"}
        self.process = subprocess.Popen([*self.command, *map(str, more)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        encoding="utf-8", errors="replace", env=environment, start_new_session=True)
        return self

    def end(self, how=None, after=0):
        """Waits; or sends a signal after some seconds, and waits then. Returns the status."""
        try:
            if how is not None:
                try:
                    self.process.wait(after)
                except subprocess.TimeoutExpired:
                    os.killpg(self.process.pid, how)
                    if how == signal.SIGKILL:
                        self.end_ranks()
            self.output, self.errors = self.process.communicate(timeout=150)
        except subprocess.TimeoutExpired as late:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            raise Lost("hang", " ".join(self.command)) from late
        self.status = self.process.returncode
        return self.status

    def end_ranks(self):
        """As a batch system does: ranks outlive a killed mpirun for a moment, in which this job could write its results."""
        found = True
        while found:
            found = []
            for number in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    if os.path.samefile(f"/proc/{number}/cwd", self.folder):
                        found.append(number)
                        os.kill(int(number), signal.SIGKILL)
            time.sleep(0.01)

    def run(self, *more):
        return self.start(*more).end()

    def what(self):
        return f"status {self.status}: {' '.join(self.command)}\n{self.errors[-1500:]}"

    def report(self):
        return json.loads((self.folder / (self.name("report") + ".json")).read_text(encoding="utf-8"))

    def check(self, may_be_refused=False, done=0, was_killed=False, shares_folder=False):
        """Exit status, report and files agree, and what is called solved is solved."""
        solver, allowed = self.case["solver"], {0, 3} | (REFUSED if may_be_refused else set()) | ({74} if shares_folder else set())
        if solver in SPARSE and properties.is_out_of_penalty_range(self.problem):
            allowed |= REFUSED
        require(self.status in allowed, f"program, status {self.status}, {solver}", self.what())
        output = self.folder / (self.name("X") + ".npy")
        if self.status not in (0, 3):
            require(output.read_bytes() == OLD, "program, the old output is lost", self.what())
            require(sum(line.startswith("gridlops: error:") for line in self.errors.splitlines()) == 1, "program, one line says why", self.what())
            return ["refused"]
        X, report = np.load(output), self.report()
        columns = report["columns"]
        one = self.case["vector"] and self.problem.B.shape[1] == 1
        require(X.ndim == (1 if one and not self.problem.damp_varies else 2), "program, dimensions of X", X.shape)
        X = X.reshape(self.problem.A.shape[1], -1)
        require(all(column["reason"] != "corrupted" for column in columns), f"guard, {solver}", "calls sound numbers corrupted:", columns)
        solved = all(column["reason"] in SOLVED for column in columns)
        require((self.status == 0) == solved, f"program, status and verdicts, {solver}", self.what(), columns)
        facts = (report["rows"], report["cols"], report["nrhs"], report["dtype"], X.dtype.name)
        expected = (*self.problem.A.shape, X.shape[1], self.case["type"], self.problem.A.dtype.name)
        require(facts == expected, "program, report and X", facts, expected)
        number = {None: np.nan}
        found = {key: np.array([number.get(column[name], column[name]) for column in columns], float) for key, name in
                 (("residual_norms", "residual_norm"), ("normal_residual_norms", "normal_residual_norm"), ("reference_norms", "reference_norm"),
                  ("tested_norms", "tested_norm"))}
        found.update(reasons=[column["reason"] for column in columns], column_iterations=np.array([column["iterations"] for column in columns], int),
                     iterations=report["iterations"], step=report["options"].get("step", 0))
        self.same_options(report["options"])
        properties.complete(self.problem, X, found, done)
        properties.finite(self.problem, X, found)
        truth = properties.Truth(self.problem, X)
        (properties.sparse_solved if solver in SPARSE else lambda p, t, _, r: properties.solved(p, t, r))(self.problem, truth, X, found)
        properties.true_norms(self.problem, truth, found)
        for name, norm in (("rhs_norm", truth.b), ("x_norm", truth.x)):
            for j, column in enumerate(columns):
                properties.same_number(number.get(column[name], column[name]), norm[j], norm[j] * truth.unit,
                                       f"program, {name}, {solver}", "column", j)
        leftovers = [path.name for path in self.folder.rglob("*") if ".tmp." in path.name or ".try." in path.name]
        require(was_killed or not leftovers, "program, temporary files are left", leftovers)
        return found["reasons"]

    def same_options(self, options):
        """The report has the values that were asked for, where it has been checked that they were used."""
        wanted = {"iterations": self.case["iterations"]}
        if not self.problem.tolerance_varies:
            wanted["tolerance"] = self.case["tolerance"]
        relative, solver = self.case["relative"], self.case["solver"]
        if solver in SPARSE:
            wanted["lambda_relative" if relative else "lambda"] = self.case["lambda"]
        elif relative and self.case["damp"]:
            wanted["damp_relative"] = self.case["damp"]
            # ‖A‖ is estimated from below, to a few per cent unless many values are nearly as large.
            D, largest = options["damp"], self.case["damp"] * float(np.ldexp(self.problem.norm_plain, self.case["scale_A"]))
            require(0.5 * largest <= D <= 1.001 * largest, f"program, D of --damp-relative, {solver}", D, "where F times the norm of A is", largest)
            self.problem.D = [D] * len(self.problem.D)
        else:
            wanted["damp"] = self.problem.D[0] if self.problem.D else 0
        for name, value in wanted.items():
            require(options.get(name) == value, f"program, reported {name}, {self.case['solver']}", options.get(name), "asked for", value)


def check(case, workers):
    scenario = case["scenario"]
    with tempfile.TemporaryDirectory(prefix="gridlops-campaign-") as folder:
        return globals()[scenario["kind"]](case, workers.build, folder)


def saving(case):
    return "--checkpoint", "saved", "--checkpoint-every", case["scenario"]["every"]


def plain(case, build, folder):
    job = Job(build, folder, case)
    job.run()
    return job.check()


def restarted(case, build, folder):
    """Ends early, and goes on, perhaps with other options: they are honoured, or refused."""
    before = {**case, **case["scenario"]["before"]}
    first = Job(build, folder, before)
    first.run(*saving(case))
    first.check()
    changed = any(case[key] != before[key] for key in ("damp", "lambda"))
    second = Job(build, folder, case)
    second.run("--restart", "saved")
    if not (Path(folder) / "saved/manifest.json").exists():
        require(second.status == 65, "program, restart from nothing", second.what())
        return ["refused"]
    return second.check(may_be_refused=changed, done=before["iterations"])


def killed(case, build, folder):
    """A signal at any time; then the job goes on, from its checkpoint if there is one."""
    how = case["scenario"]["signal"]
    first = Job(build, folder, {**case, "tolerance": 0 if not isinstance(case["tolerance"], list) else case["tolerance"]})
    first.start(*saving(case)).end(signal.Signals[how], case["scenario"]["after"])
    second = Job(build, folder, case)
    second.run(*(["--restart", "saved"] if (Path(folder) / "saved/manifest.json").exists() else []))
    return second.check(was_killed=True)


def two_jobs(case, build, folder):
    """Both with one folder for checkpoints: each is right, or is refused, and a restart goes on with one of them or is refused."""
    other = {**case, "rhs": case["rhs"][::-1]}
    jobs = [Job(build, folder, case, "1"), Job(build, folder, other, "2")]
    for job in jobs:
        job.start(*saving(case))
    for job in jobs:
        job.end()
    verdicts = [verdict for job in jobs for verdict in job.check(shares_folder=True)]
    for job in jobs:
        if (Path(folder) / "saved/manifest.json").exists():
            job.run("--restart", "saved")
            job.check(may_be_refused=True)
    return verdicts


def again(case, build, folder):
    """A new job in the folder of one that can go on: that one can still go on afterwards, or its folder says so."""
    first = Job(build, folder, {**case, "iterations": 1}, "1")
    first.run(*saving(case))
    first.check()
    if first.status != 3 or not (Path(folder) / "saved/manifest.json").exists():
        return ["nothing saved"]
    second = Job(build, folder, {**case, "matrix": {**case["matrix"], "seed": case["matrix"]["seed"] + 1}}, "2")
    second.run(*saving(case))
    second.check(shares_folder=True)
    first = Job(build, folder, {**case, "iterations": max(1, case["iterations"])}, "1")  # one is made already
    first.run("--restart", "saved")
    require(first.status in (0, 3), "program, a new job destroys a checkpoint", first.what())
    return first.check()


def bad(case, build, folder):
    """What is refused leaves everything as it was."""
    job = Job(build, folder, case)
    wrong = case["scenario"]["wrong"]
    more = []
    if wrong == "rows":
        np.save(Path(folder) / "B.npy", np.zeros((case["rows"] + 1, 2)))
    elif wrong == "cut short":
        path = Path(folder) / "A.npy"
        path.write_bytes(path.read_bytes()[:-1])
    elif wrong == "integers":
        np.save(Path(folder) / "B.npy", np.zeros((case["rows"], 2), int))
    elif wrong == "tolerance":
        more = ["--tolerance", "nan"]
    elif wrong == "damp":
        more = ["--damp", "-1"]
    elif wrong == "grid":
        more = ["--grid", "5x5"]
    elif wrong == "restart":
        more = ["--restart", "nothing"]
    begin = time.monotonic()
    job.run(*more)
    require(job.status in REFUSED, f"program, {wrong} is not refused", job.what())
    require(time.monotonic() - begin < 100, "program, a refusal takes long", job.what())
    return job.check(may_be_refused=True)
