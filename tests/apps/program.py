# SPDX-License-Identifier: BSD-3-Clause
"""Runs the program under test, on any number of ranks, and checks what its reports have in common."""
import collections
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

try:
    import jsonschema
except ImportError:  # then reports are not held against their schema
    jsonschema = None

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
OPERATIONS = ["broadcast", "reduce", "all-reduce", "scatter", "all-gather", "reduce-scatter"]
WIDE = {"f32": np.longdouble, "f64": np.longdouble, "c64": np.clongdouble, "c128": np.clongdouble}
SOLVED = {"converged", "stagnated"}
REASONS = SOLVED | {"iteration_limit", "condition_limit", "user_stop", "breakdown", "non_finite", "corrupted"}


# The device and transport of products, which the program gets by its environment.
DEVICE = os.environ.get("GRIDLOPS_TEST_DEVICE", "cpu")
TRANSPORT = os.environ.get("GRIDLOPS_TEST_TRANSPORT", "mpi")
ON_DEVICE = {f"GRIDLOPS_{command}_{option}": value
             for command in ("MULTIPLY", "SOLVE", "LSM", "MDD", "POSTSTACK", "REFLECTIVITY", "BENCH_MATMUL", "BENCH_SOLVE")
             for option, value in (("DEVICE", DEVICE), ("TRANSPORT", TRANSPORT))}

# In a container without /sys the topology library of Open MPI complains on standard error. Without mpirun, too, Open MPI
# need not look for fast networks and devices: that takes longer than the rest of its start. After an exit status other than 0 mpirun
# need not wait a second or two for the other ranks, which end by themselves. Choices do not depend on earlier measurements.
ALWAYS = {"HWLOC_HIDE_ERRORS": "2", "HWLOC_COMPONENTS": "-pci,-linuxio", "OMPI_MCA_pml": "ob1", "OMPI_MCA_odls_base_sigkill_timeout": "0",
          "GRIDLOPS_CALIBRATION": "off"}


def disk():
    """A directory that is not in memory."""
    for folder in ("/var/tmp", os.getcwd(), "/tmp"):
        system = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False).stdout.strip()
        if system not in ("", "tmpfs") and os.access(folder, os.W_OK):
            return folder
    return "/var/tmp"


def own_lines(errors):
    """What the program or the library wrote to standard error, where MPI and the libraries below it write, too."""
    return [line for line in errors.splitlines() if line.startswith("gridlops: ")]


def as_written(errors):
    """Standard error of a job, by lines of its ranks. Open MPI 5 ends what it says of MPI_Abort with a null character, and a line may follow;
    on a busy machine it was seen to write a piece of a rank's output there, too."""
    return re.sub(r"(?<=[^\n])gridlops: (?=warning:|error:)", "\ngridlops: ", errors.replace("\0", ""))


class Run:
    """The result of one run of the program."""

    def __init__(self, command, status, output, errors, seconds):
        self.command = " ".join(str(word) for word in command)
        self.status, self.output, self.errors, self.seconds = status, output, errors, seconds

    @property
    def own_lines(self):
        return own_lines(self.errors)

    @property
    def error_lines(self):
        return [line for line in self.own_lines if line.startswith("gridlops: error:")]

    @property
    def warning_lines(self):
        return [line for line in self.own_lines if line.startswith("gridlops: warning:")]


class Suite:
    """The program, a folder for files, and the failures so far."""

    def __init__(self, launch, program, folder):
        self.launch, self.program, self.folder = launch, program, Path(folder)
        self.failures = self.checks = self.runs = self.crashes_of_mpi = 0
        self.seconds_of = collections.Counter()  # by the function of the test that asked for runs

    def run(self, *arguments, ranks=None, environment=None, timeout=60, shell=None, on_each_rank=()):
        """Runs it on this many ranks, without mpirun if ranks is None. shell: a command line in which {} stands for all the rest.
        on_each_rank: a command, as a list of words, that runs the program on its rank."""
        words = [*on_each_rank, str(self.program), *map(str, arguments)]
        if ranks is not None:
            words = [str(self.launch), str(ranks), *words]
        command = words if shell is None else ["sh", "-c", shell.replace("{}", '"$@"'), "sh", *words]
        start = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", cwd=self.folder,
                              env={**os.environ, **ALWAYS, **ON_DEVICE, **(environment or {})}, start_new_session=True) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                errors += f"\nkilled after {timeout} s"
        errors = as_written(errors)
        self.runs += 1
        seconds = time.monotonic() - start
        self.seconds_of[calling_function()] += seconds
        # Open MPI 4 crashes in MPI_Finalize once in some thousand runs (its issue 10117). The session then tells the status.
        crash = re.search(r"MPI crashed in MPI_Finalize, .* the exit status was (\d+)$", errors, re.MULTILINE)
        self.crashes_of_mpi += crash is not None
        return Run(command, int(crash[1]) if crash else process.returncode, output, errors, seconds)

    def check(self, condition, *what):
        """Counts a check, and prints what is wrong unless the condition holds."""
        self.checks += 1
        if not condition:
            self.failures += 1
            print("FAILED:", *what)
        return bool(condition)

    def succeeded(self, run, status=0):
        return self.check(run.status == status, f"status {run.status} instead of {status}:", run.command, "\n",
                          run.output[-2000:], run.errors[-2000:])

    def close(self, found, expected, bound, *what):
        """Whether all elements are within a bound, which may be one number or an array."""
        if not self.check(found.shape == expected.shape, "shape", found.shape, "instead of", expected.shape, *what):
            return False
        excess = np.abs(found - expected) - bound
        return self.check(excess.size == 0 or (np.isfinite(excess).all() and excess.max() <= 0),
                          "differs by", np.abs(found - expected).max(initial=0), "where", np.max(bound, initial=0),
                          "is allowed:", *what)

    def report(self, name, command, ranks, grid, transport=None):
        """The JSON report of this name, after checking what every report must have."""
        report = json.loads((self.folder / name).read_text(encoding="utf-8"), parse_constant=not_json)
        wanted = {"schema": "gridlops.report/1", "command": command, "ranks": ranks, "grid": list(grid),
                  "transport": transport or ("mpi-staged" if (DEVICE, TRANSPORT) == ("gpu", "mpi") else TRANSPORT),
                  "device": DEVICE}
        for key, value in wanted.items():
            self.check(report.get(key) == value, f"report: {key} is {report.get(key)!r}, not {value!r}")
        if jsonschema is not None:
            wrong = [f"{error.json_path}: {error.message}" for error in schema().iter_errors(report)]
            self.check(not wrong, "report:", name, "is not as its schema says:", wrong)
        for key, kind in {"version": str, "dtype": str, "algorithm": str, "storage": str, "own_kernels": str, "choices": str,
                          "rows": int, "cols": int, "nrhs": int}.items():
            self.check(type(report.get(key)) is kind, f"report: {key} is {report.get(key)!r}, no {kind.__name__}")
        seconds = report.get("seconds", {})
        self.check(set(seconds) == {"read", "setup", "compute", "write"}
                   and all(isinstance(value, float) and 0 <= value < 60 for value in seconds.values()),
                   "report: seconds", seconds)
        sent, received = report.get("bytes_sent", []), report.get("bytes_received", [])
        self.check(len(sent) == len(received) == ranks and (sum(sent) == sum(received) or transport == "one-sided")
                   and all(type(value) is int and value >= 0 for value in sent + received), "report: bytes", sent, received)
        members = math.prod(grid)
        self.check(not any(sent[members:] + received[members:]), "report: idle ranks moved bytes", sent, received)
        waiting, must_wait = report.get("seconds_waiting", []), members > 1 and report.get("iterations", 0) > 0
        self.check(len(waiting) == ranks and not any(waiting[members:])
                   and all(isinstance(value, float) and must_wait <= (value > 0) and 0 <= value <= seconds["compute"] + 1e-6
                           for value in waiting[:members]), "report: waiting", waiting, seconds)
        if command == "solve":
            self.check_columns(report)
        return report

    def measured(self, *arguments, ranks):
        """A run, and the bytes of the rank that had most in it. Its memory is not touched before it is used, and is returned when it is
        freed."""
        peak = ("import os, sys\n_, status, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)\n"
                "os.write(2, b'peak %d\\n' % used.ru_maxrss)\n"  # a line by one write, that ranks do not mix
                "sys.exit(os.waitstatus_to_exitcode(status))")
        run = self.run(*arguments, ranks=ranks, on_each_rank=(sys.executable, "-I", "-S", "-c", peak),
                       environment={"MALLOC_PERTURB_": "0", "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"})
        self.succeeded(run)
        return run, 1024 * max((int(kibibytes) for kibibytes in re.findall(r"peak (\d+)", run.errors)), default=0)

    def most_memory(self, *arguments, ranks):
        """The bytes of the rank that had most in a run."""
        return self.measured(*arguments, ranks=ranks)[1]

    def check_plan(self, command, large, small, ranks):
        """--dry-run of a use case writes and takes nothing, and says within a tenth what a large run takes beside a small one; so
        does the report of that run."""
        run, dry = self.measured(command, *large, "--dry-run", "--save", "planned", "--report", "planned.json", ranks=ranks)
        self.check(not (self.folder / "planned").exists() and not (self.folder / "planned.json").exists(), "--dry-run wrote files")
        units = {"B": 1, "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30}
        planned = max((float(number) * units[unit] for number, unit in re.findall(r"^in all, .* ([\d.]+) (\w+)$", run.output, re.MULTILINE)),
                      default=0)
        if DEVICE == "cpu":
            peak, least = (self.most_memory(command, *words, "--quiet", ranks=ranks) for words in ([*large, "--report", "large.json"], small))
            self.check(abs(peak - least - planned) < 0.1 * planned, "planned", planned, "bytes, but found", peak - least, "\n", run.output)
            self.check(dry - least < 0.1 * planned, "a plan took", dry - least, "bytes")
            reported = json.loads((self.folder / "large.json").read_text(encoding="utf-8"))["memory_bytes"]
            self.check(len(reported["planned"]) == ranks and abs(max(reported["planned"]) - planned) < 0.01 * planned and
                       abs(max(reported["peak"]) - peak) < 0.02 * peak, "reported", reported, "but planned", planned, "and measured", peak)

    def check_columns(self, report):
        self.check(re.fullmatch("[a-z]+(-[a-z]+)*", str(report.get("solver"))), "report: solver", report.get("solver"))
        columns = report.get("columns", [])
        self.check(len(columns) == report["nrhs"], "report:", len(columns), "columns for", report["nrhs"])
        for column in columns:
            self.check({"reason", "iterations", "residual_norm", "normal_residual_norm", "tested_norm", "reference_norm", "rhs_norm",
                        "x_norm"} <= set(column) and column["reason"] in REASONS and type(column["iterations"]) is int, "report: column", column)
        most = max((column["iterations"] for column in columns), default=0)
        self.check(report.get("iterations") == most, "report: iterations", report.get("iterations"), "not", most)


def schema():
    """What checks a report against its schema."""
    text = (ROOT / "docs/report.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def calling_function():
    """The function that test() has called, on the way to a run."""
    frame = sys._getframe()
    while frame.f_back and frame.f_back.f_code.co_name not in ("test", "main"):
        frame = frame.f_back
    return frame.f_code.co_name


def not_json(text):
    raise ValueError(f"{text} is not JSON")


def epsilon(name):
    return float(np.finfo(TYPES[name]).eps)


def random_matrix(rng, shape, name):
    real = rng.uniform(-1, 1, shape)
    return (real + 1j * rng.uniform(-1, 1, shape) if name.startswith("c") else real).astype(TYPES[name])


def machine_file(suite, name="machine.json", flops=1e10, read=1e10, copied=1e10, call=1e-6, rate=1e9, ranks=2):
    """Writes what `--machine` takes. Returns its rates."""
    links = {operation: {"seconds_per_call": call, "bytes_per_second": rate} for operation in OPERATIONS}
    rates = {"ranks": ranks, "flops_per_second": dict.fromkeys(TYPES, flops),
             "read_bytes_per_second": read, "copied_bytes_per_second": copied, "transports": {"mpi": links}}
    (suite.folder / name).write_text(json.dumps({"rates": rates}), encoding="utf-8")
    return rates


def leftovers(folder):
    """Files that look like unfinished output."""
    return sorted(path.name for path in Path(folder).rglob("*") if ".tmp." in path.name or ".try." in path.name)


def leave_out(test, wanted):
    """Makes functions of the test's file do nothing, but for those that are wanted."""
    functions = {name for name in test.__globals__ if name.startswith(("check_", "test_"))}
    if not wanted <= functions:
        sys.exit(f"--only: there is no {', '.join(sorted(wanted - functions))}; there are {', '.join(sorted(functions))}")
    test.__globals__.update({name: lambda *_, **__: None for name in functions - wanted})


# What fails only because there is no GPU.
PROBE = ("multiply", "--matrix", "none.npy", "--input", "none.npy", "--output", "none.npy")


def main(test, description, probe=PROBE):
    """Runs test(suite, full) with what the command line says. --durations prints what the runs of each function took; --only FUNCTION,…
    leaves out the other functions check_… and test_… of the test."""
    arguments = [word for word in sys.argv[1:] if word not in ("--full", "--durations")]
    if len(arguments) == 4 and arguments[2] == "--only":
        leave_out(test, set(arguments[3].split(",")))
        arguments = arguments[:2]
    if len(arguments) != 2:
        sys.exit(f"{description}\nusage: {sys.argv[0]} LAUNCH PROGRAM [--full] [--durations] [--only FUNCTION,…]")
    launch, program = (Path(word).resolve() for word in arguments)
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(launch, program, folder)
        begin = time.monotonic()
        if DEVICE == "gpu" and "no GPU can be used" in (found := suite.run(*probe).errors):
            print("skipped:", found.splitlines()[-1])
            sys.exit(77)
        test(suite, "--full" in sys.argv)
        suite.check(not leftovers(folder), "temporary files are left:", leftovers(folder))
        for name, seconds in suite.seconds_of.most_common() if "--durations" in sys.argv else ():
            print(f"{seconds:7.1f} s {name}")
        print(f"{suite.checks} checks in {suite.runs} runs and {time.monotonic() - begin:.0f} s, {suite.failures} failed"
              + (f"; MPI crashed in {suite.crashes_of_mpi} MPI_Finalize" if suite.crashes_of_mpi else ""))
    sys.exit(1 if suite.failures else 0)
