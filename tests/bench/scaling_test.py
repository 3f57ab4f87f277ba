# SPDX-License-Identifier: BSD-3-Clause
"""Checks bench/scaling: what it refuses, that it runs what is missing and nothing else, its job scripts, figures and report.
Times are not judged. scaling_test.py LAUNCH PROGRAM, the program being gridlops-bench in its build folder"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

SCALING = Path(__file__).resolve().parents[2] / "bench/scaling"
sys.path.insert(0, str(SCALING.parent))
from study import figures  # noqa: E402
from study.fields import StudyError  # noqa: E402
from study.plan import read_study  # noqa: E402

STUDY = """name = "s"
scaling = "strong"
ranks = [1, 2]
repetitions = 1

[[products]]
sizes = [[40, 31, 3]]
algorithms = ["summa"]
transports = ["mpi"]
"""
MACHINE = '[machine]\nlauncher = ["launch-stub"]\ntime = "00:02:05"\n'
# In the place of both programs. It notes its command line, and takes 8 ms on one rank, 5 ms on two and 4 ms on four, half of that
# in one repetition and twice that in another. What is left to it runs by `block` and `mpi` on one rank, by others on more. With
# --iterations 7 it waits until it is told that its time is over, and then saves its state unless it has gone on from there.
# With --iterations 8 it ends as if it had, but has not.
# It starts at once, so that it can hear a signal after five seconds also on a busy machine.
PROGRAM = f"#!{sys.executable} -S\n" + r"""
import json, os, signal, sys, time
words = sys.argv[1:]
option = lambda name: words[words.index(name) + 1]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(" ".join(words) + "\n")
ranks = int(os.environ["STUB_RANKS"])
seconds = {1: 8e-3, 2: 5e-3, 4: 4e-3}[ranks]
asked = {name: option("--" + name) if "--" + name in words else "auto" for name in ("algorithm", "storage", "transport")}
chosen = {"algorithm": {1: "block", 2: "summa", 4: "stationary-a"}[ranks], "storage": "columns", "transport": "mpi" if ranks == 1 else "shared"}
ran = lambda name, word: chosen[name] if word == "auto" else word
if "--iterations" in words and option("--iterations") == "7" and "--restart" not in words:
    def suspend(*_):
        os.makedirs(option("--checkpoint"))
        open(option("--checkpoint") + "/manifest.json", "w").close()
        sys.exit(75)
    signal.signal(signal.SIGUSR1, suspend)
    open("waiting", "w").close()
    time.sleep(60)
if "--iterations" in words and option("--iterations") == "8":
    sys.exit(75)
grid = [int(n) for n in option("--grid").split("x")]
if "--json" in words:
    form = "2-D" if min(grid) > 1 else "1-D cols"
    results = [{"rows": int(option("--rows")), "cols": 31, "nrhs": 3, "dtype": "f64", "adjoint": False, "grid": grid, "form": form,
                **{name: ran(name, word) for name, word in asked.items()}, "algorithm": ran("algorithm", algorithm),
                "asked": {**asked, "algorithm": algorithm},
                "seconds": seconds, "samples": [seconds, 2 * seconds, seconds / 2], "gflops": 1.0, "limit_gflops": 2.0,
                "limit_read_gbs": 9.0, "waiting": 0.25, "bytes_sent": 2000 * (ranks - 1)} for algorithm in asked["algorithm"].split(",")]
    text, path = {"schema": "gridlops.bench/1", "environment": {**json.loads(os.environ.get("STUB_FACTS", "{}")), "cpu": "a <cpu>", "ranks": ranks},
            "results": results}, option("--json")
else:
    text = {"transport": ran("transport", asked["transport"]), "seconds": {"compute": seconds}, "bytes_sent": [0] * ranks,
            "seconds_waiting": [seconds / 2] * ranks}
    path = option("--report")
with open(path, "w") as out:
    json.dump(text, out)
"""
# What batch systems set in a job. Flux gives the number of the run as an argument.
OF_JOBS = {"slurm": {"SLURM_ARRAY_TASK_ID": "0", "SLURM_JOB_ID": "42"}, "lsf": {"LSB_JOBINDEX": "1"}}
LAUNCH = """#!/bin/sh
# launch-stub -n RANKS PROGRAM…
export STUB_RANKS="$2"
shift 2
exec "$@"
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Stubs:
    """A folder with programs that stand for GridLOps', a launcher and a batch system."""

    def __init__(self, suite, name):
        self.suite, self.folder = suite, suite.folder / name
        for stub in ("programs/gridlops", "programs/gridlops-bench"):
            write_program(self.folder / stub, PROGRAM)
        write_program(self.folder / "bin/launch-stub", LAUNCH)
        for stub in ("scontrol", "qsub", "bsub", "flux"):
            write_program(self.folder / "bin" / stub, f'#!/bin/sh\necho {stub} "$@" >>"$CALLS"\n')
        self.calls_file = self.folder / "calls"
        self.environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls_file)}

    def study(self, text, out="out"):
        (self.folder / "s.toml").write_text(text, encoding="utf-8")
        self.out = self.folder / out

    def command(self, action, *options):
        # -S: without modules of others, and so without pictures, which take long.
        return [sys.executable, "-S", str(SCALING), action, "s.toml", "--out", str(self.out), "--programs", "programs", *options]

    def scaling(self, action, *options):
        return subprocess.run(self.command(action, *options), cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=120, check=False)

    def calls(self):
        """The command lines since the last time this was asked."""
        lines = self.calls_file.read_text(encoding="utf-8").splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return lines


def refused(suite, text, line, words):
    path = suite.folder / "refused.toml"
    path.write_text(text, encoding="utf-8")
    try:
        read_study(path)
        said = "nothing"
    except StudyError as error:
        said = str(error)
    suite.check(f"refused.toml:{line}:" in said and all(word in said for word in words), "refusal at line", line, "with", words, "not", said)


def check_errors(suite):
    """Errors have the line, the field, and what may have been meant."""
    for old, new, line, words in [
            ('scaling = "strong"', 'scaling = "string"', 2, ["scaling", "string", "did you mean 'strong'"]),
            ("ranks = [1, 2]", "ranks = [2, 1]", 3, ["ranks", "[2, 1]"]),
            ("ranks = [1, 2]", 'ranks = [1, "2"]', 3, ["ranks", "'2'"]),
            ("repetitions = 1", "repetition = 1", 4, ["repetition", "did you mean 'repetitions'"]),
            ("[[40, 31, 3]]", "[[40, 31]]", 7, ["products 1: sizes", "[40, 31]", "right-hand sides"]),
            ("[[40, 31, 3]]", "[[40, 0, 3]]", 7, ["products 1: sizes"]),
            ("algorithms", "algorithm", 8, ["products 1: algorithm", "did you mean 'algorithms'"]),
            ('["summa"]', '"summa"', 8, ["products 1: algorithms", "is not a list"]),
            ('["summa"]', "[]", 8, ["products 1: algorithms", "empty"]),
            ('["mpi"]', '["mpi"]\ngrids = ["2x2"]', 10, ["grids", "2x2 is no grid of 1, 2 ranks"]),
            ('["mpi"]', '["mpi"]\ngrids = ["P x 1"]', 10, ["grids"]),
            ('["mpi"]', '["mpi"]\ngrows = ["rows"]', 10, ["grows", "strong"]),
            ('scaling = "strong"', 'scaling = "weak"', 6, ["grows", "is missing", "rows"]),
            ('["mpi"]', '["mpi"]\n[[programs]]\ncommand = "solv"', 11, ["programs 1: command", "did you mean 'solve'"]),
            ('["mpi"]', '["mpi"]\n[machine]\ntime = "2 hours"', 11, ["machine: time"]),
            ('["mpi"]', '["mpi"]\n[machine]\ntime = "00:02:00"', 11, ["machine: time", "120 seconds"]),
            ("[[products]]", "[[product]]", 6, ["'product'", "did you mean 'products'"])]:
        refused(suite, STUDY.replace(old, new), line, words)
    stubs = Stubs(suite, "errors")
    for text, word in [("name = s\n", "at line 1"), (STUDY.split("[[products]]")[0], "nothing to run"), (STUDY.replace("summa", "$(x)"), "refused")]:
        stubs.study(text)
        run = stubs.scaling("jobs")
        suite.check(run.returncode == 1 and word in run.stderr and "Traceback" not in run.stderr, word, run.stderr)
        suite.check(not stubs.out.exists(), "a refused study has left files", text)


def check_injections(suite):
    """Whatever a shell or a batch system would take for more than a word is refused, wherever it stands."""
    places = [('name = "s"', "name = {}", 1), ('["summa"]', "[{}]", 8), ('["mpi"]', "[{}]", 9),
              ('["mpi"]', '["mpi"]\ngrids = [{}]', 10), ('["mpi"]', '["mpi"]\ntypes = [{}]', 10), ('["mpi"]', '["mpi"]\nstorage = [{}]', 10),
              ('["mpi"]', '["mpi"]\noptions = {{ panel = {} }}', 10), ('["mpi"]', '["mpi"]\noptions = {{ {} = 4 }}', 10),
              ('["mpi"]', '["mpi"]\n[[solvers]]\nsizes = [[1, 1, 1]]\nsolvers = [{}]', 12),
              ('["mpi"]', '["mpi"]\n[[collectives]]\nbytes = [8]\noperations = [{}]', 12),
              *[('["mpi"]', f'["mpi"]\n[machine]\n{field} = {{}}', 11) for field in ("partition", "account", "time")],
              *[('["mpi"]', f'["mpi"]\n[machine]\n{field} = [{{}}]', 11) for field in ("modules", "launcher")],
              ('["mpi"]', '["mpi"]\n[machine]\nenvironment = {{ A = {} }}', 11), ('["mpi"]', '["mpi"]\n[machine]\nenvironment = {{ {} = "1" }}', 11)]
    for field in ("slurm_directives", "pbs_directives", "lsf_directives", "flux_directives"):
        places += [('["mpi"]', f'["mpi"]\n[machine]\n{field} = [{{}}]', 11)]
    attacks = ["a; touch owned", "a;b", "$HOME", "$(touch owned)", "`touch owned`", "a\n#SBATCH --wrap=owned", "a b", "--qos=a\n#SBATCH --wrap=owned", "--qos=$(touch owned)", "a'b", "a|b", "a&", "a>owned", "*", "", "--x y"]
    for old, new, line in places:
        for attack in attacks:
            if not ("directives" in new and attack == "--x y"):  # which is one
                refused(suite, STUDY.replace(old, new.format(json.dumps(attack))), line, ["refused"] if "grids" not in new else [])


def check_resume(suite):
    """An interrupted study goes on with what is missing; a study that changes runs what is new."""
    stubs = Stubs(suite, "resume")
    text = STUDY.replace('["mpi"]', '["mpi", "chain"]') + MACHINE
    waits = text + '[[programs]]\ncommand = "solve"\noptions = { iterations = 7 }\n'
    stubs.study(waits)
    with subprocess.Popen(stubs.command("run"), cwd=stubs.folder, env=stubs.environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (stubs.out / "waiting").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        suite.check(process.wait(timeout=60) == 143, "an interrupted study ends with", process.returncode)
    first = stubs.calls()
    suite.check(len(first) == 3 and "--iterations 7" in first[2], "calls until the interruption:", first)
    suite.check(len(list(stubs.out.glob("results/*.json"))) == 2, "results until the interruption")

    stubs.study(text)
    run = stubs.scaling("run")
    suite.check(run.returncode == 0, "what is missing", run.stdout, run.stderr)
    second = stubs.calls()
    suite.check(len(second) == 2 and not set(first) & set(second) and all("1x2" in call for call in second), "calls after it:", first, second)
    run = stubs.scaling("run")
    suite.check(run.returncode == 0 and not stubs.calls() and "4 runs, 4 of them done" in run.stdout, "nothing is left", run.stdout)
    stubs.study(text.replace("40, 31", "44, 31"))
    suite.check(stubs.scaling("run").returncode == 0 and len(stubs.calls()) == 4, "other sizes are other runs")
    stubs.study(text)
    suite.check(stubs.scaling("run", "--anew").returncode == 0 and len(stubs.calls()) == 4, "--anew")


def check_failure(suite):
    """A run that fails stops no other; its error is shown, and it counts as missing."""
    stubs = Stubs(suite, "failure")
    write_program(stubs.folder / "programs/gridlops-bench", "#!/bin/sh\necho 'gridlops: error: no such thing'\nexit 2\n")
    stubs.study(STUDY + '[[programs]]\ncommand = "lsm"\n' + MACHINE)
    run = stubs.scaling("run")
    suite.check(run.returncode == 1 and run.stdout.count("no such thing") == 2 and "2 of 4 runs" in run.stdout, "failures", run.stdout, run.stderr)
    suite.check("2 of 4 runs have no result" in (stubs.out / "report.html").read_text(encoding="utf-8"), "the report says what is missing")


def scripts_of(suite, stubs, scheduler):
    run = stubs.scaling("jobs", "--scheduler", scheduler)
    suite.check(run.returncode == 0, scheduler, run.stdout, run.stderr)
    scripts = sorted((stubs.out / "jobs").iterdir())
    for command in (*(["bash", "-n", script] for script in scripts), *([["shellcheck", *scripts]] if scripts and shutil.which("shellcheck") else [])):
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        suite.check(checked.returncode == 0, command, checked.stdout, checked.stderr)
    return scripts


def check_scripts(suite):
    """Job scripts say what the study says, survive any folder, go on from a saved state, and run what is missing."""
    if not shutil.which("shellcheck"):
        print("not tested: shellcheck, which is not here")
    stubs = Stubs(suite, "scripts")
    machine = MACHINE + 'partition = "short"\naccount = "geo"\nmodules = ["openmpi/4.1"]\nranks_per_node = 1\ngpus_per_node = 4\nthreads = 3\n'
    machine += 'slurm_directives = ["--qos=high", "--constraint=a|b"]\npbs_directives = ["-l place=scatter"]\n'
    stubs.study(STUDY + machine, "a 'strange' folder; touch owned")
    wanted = {"slurm": ["--array=0-0", "--time=00:02:05", "--signal=B:USR1@120", "--requeue", "--partition=short", "--account=geo", "--nodes=2",
                        "--ntasks-per-node=1", "--gpus-per-node=1", "#SBATCH --qos=high\n#SBATCH --constraint=a|b\n", "--exclusive\n", "--mem=0\n",
                        "--cpus-per-task=3\n"],
              "pbs": ["-q short", "-A geo", "#PBS -l place=scatter\n", "select=2:ncpus=3:mpiprocs=1:ngpus=1", "walltime=00:02:05"],
              "lsf": ['-J "s-np2[1-1]"', "-n 2\n", 'span[ptile=1] affinity[core(3)]', "-W 3\n", "-x\n", "-q short", "-P geo", '-gpu "num=1"'],
              "flux": ["--nslots=2", "--cores-per-slot=3", "--nodes=2", "--exclusive", "--time-limit=125s", "--queue=short", "--bank=geo"], "plain": []}
    for scheduler, words in wanted.items():
        text = "".join(script.read_text(encoding="utf-8") for script in scripts_of(suite, stubs, scheduler))
        for word in [*words, "module load openmpi/4.1", "export OPENBLAS_NUM_THREADS=3"]:
            suite.check(word in text, word, "is not in", text)
        suite.check("place=scatter:excl" not in text, "two places in", text)
    check_defaults(suite, stubs)

    stubs.study(STUDY + MACHINE.replace("00:02:05", "01:00:00"), "a 'strange' folder; touch owned")
    scripts_of(suite, stubs, "plain")
    for calls in (2, 0):
        run = subprocess.run([stubs.out / "jobs/all.sh"], env=stubs.environment, capture_output=True, text=True, timeout=60, check=False)
        suite.check(run.returncode == 0 and len(stubs.calls()) == calls, calls, "calls of", run.stdout, run.stderr)
    suite.check(not list(stubs.folder.rglob("owned")), "a name was executed")
    suite.check(stubs.scaling("jobs").returncode == 0 and not list(stubs.out.glob("jobs/*")), "no scripts for nothing")

    stubs.study(STUDY.replace("[1, 2]", "[2]").split("[[products]]")[0] + '[[programs]]\ncommand = "solve"\noptions = { iterations = 7 }\n' + MACHINE)
    for scheduler, script, again in [("slurm", "np2.slurm", "scontrol requeue 42"), ("pbs", "np2.pbs", "qsub -v TASK=0 "), ("lsf", "np2.lsf", "bsub -J s-np2"),
                                     ("flux", "np2.flux", "flux --parent batch ")]:
        shutil.rmtree(stubs.out, ignore_errors=True)
        scripts_of(suite, stubs, scheduler)
        environment = {**stubs.environment, **OF_JOBS.get(scheduler, {})}
        with subprocess.Popen([stubs.out / "jobs" / script, "0"], env=environment, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not (stubs.out / "waiting").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            if scheduler == "slurm":  # tells the shell of the job
                process.send_signal(signal.SIGUSR1)
            status = process.wait(timeout=60)
        calls = stubs.calls()
        suite.check(status == 0 and len(calls) == 2 and calls[1].startswith(again),
                    scheduler, "at its time limit:", status, calls)
        status = subprocess.run([stubs.out / "jobs" / script, "0"], env=environment, stdout=subprocess.DEVNULL, timeout=60, check=False).returncode
        calls = stubs.calls()
        suite.check(status == 0 and len(calls) == 1 and "--restart checkpoints/" in calls[0] and len(list(stubs.out.glob("results/*"))) == 1,
                    scheduler, "started again:", status, calls)
    check_without_progress(suite, stubs)


def check_defaults(suite, stubs):
    """Jobs have nodes to themselves and ranks are bound, unless the study says otherwise; names of PBS have 15 characters, and differ."""
    launched = MACHINE.replace('launcher = ["launch-stub"]\n', "")
    for own, bound, shared in [("", "srun --cpu-bind=cores --cpus-per-task=1 -n 2", False),
                               ('launcher = ["srun", "--cpu-bind=none"]\nexclusive = false\n', "srun --cpu-bind=none --cpus-per-task=1 -n 2", True)]:
        stubs.study(STUDY.replace('"s"', '"a-long-name-of-a-study"') + launched + own)
        text = "".join(script.read_text(encoding="utf-8") for script in scripts_of(suite, stubs, "slurm"))
        suite.check(bound in text and ("--exclusive" in text) != shared and ("--mem=0" in text) != shared, "defaults of Slurm", text)
        texts = [script.read_text(encoding="utf-8") for script in scripts_of(suite, stubs, "pbs")]
        names = re.findall(r"#PBS -N (.*)", "".join(texts))
        suite.check(len(set(names)) == 2 and max(map(len, names)) <= 15, "names of PBS", names)
        suite.check(("#PBS -l place=scatter:excl\n" in "".join(texts)) != shared, "places of PBS", texts)
    stubs.study(STUDY + launched + 'slurm_directives = ["--mem=4G"]\n')
    text = "".join(script.read_text(encoding="utf-8") for script in scripts_of(suite, stubs, "slurm"))
    suite.check(text.count("--mem=4G") == 2 and "--mem=0" not in text, "a directive replaces a default", text)


def check_without_progress(suite, stubs):
    """A job that ends with 75 is queued again only if it has saved a state, not if an earlier one has."""
    stubs.study(STUDY.replace("[1, 2]", "[2]").split("[[products]]")[0] + '[[programs]]\ncommand = "solve"\noptions = { iterations = 8 }\n' + MACHINE)
    for scheduler, script in [("slurm", "np2.slurm"), ("pbs", "np2.pbs"), ("lsf", "np2.lsf"), ("flux", "np2.flux"), ("plain", "all.sh")]:
        shutil.rmtree(stubs.out, ignore_errors=True)
        scripts_of(suite, stubs, scheduler)
        environment = {**stubs.environment, **OF_JOBS.get(scheduler, {})}
        for has_state in (False, True):
            if has_state:
                state = stubs.out / "checkpoints" / next(stubs.out.glob("logs/*.txt")).stem
                state.mkdir()
                (state / "manifest.json").touch()
                time.sleep(0.1)  # the job begins later
            run = subprocess.run([stubs.out / "jobs" / script, "0"], env=environment, capture_output=True, text=True, timeout=60, check=False)
            calls = stubs.calls()
            suite.check(run.returncode == 75 and len(calls) == 1 and ("--restart" in calls[0]) == has_state and "saved no state" in run.stderr,
                        scheduler, "without progress:", run.returncode, calls, run.stderr)


def rows_of(page, title):
    """The rows of a table as {title of the column: cell}. "work" is what stands above a row, and "class" its class."""
    table = page.split(f"<h2>{title}</h2>")[1].split("</table>")[0]
    rows, head, work = [], None, None
    for kind, text in re.findall(r'<tr(?: class="(\w*)")?>(.*)</tr>', table):
        cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", text)
        if kind == "work":
            work = cells[0]
        elif head is None:
            head = cells
        else:
            rows.append({"work": work, **dict(zip(head, cells)), "class": kind})
    return rows


def check_figures(suite):
    """8 ms on one rank and 5 ms on two is an efficiency of 0.8 in strong scaling, and of 1.6 if each rank has as much work."""
    stubs = Stubs(suite, "figures")
    programs = '[[programs]]\ncommand = "lsm"\noptions = { sources = 10 }\n'
    for text, efficiency, rows in [(STUDY + programs, "0.80", "40"),
                                   ((STUDY + 'grows = ["rows"]\n' + programs + 'grows = ["sources"]\n').replace("strong", "weak"), "1.60", "80")]:
        stubs.study(text + MACHINE, efficiency)
        suite.check(stubs.scaling("run").returncode == 0, "a study of stubs")
        calls = stubs.calls()
        suite.check(any(f"--rows {rows} --cols 31" in call and "1x2" in call for call in calls), "sizes on two ranks", calls)
        suite.check(any(f"--sources {10 * int(rows) // 40}" in call for call in calls), "options on two ranks", calls)
        page = (stubs.out / "report.html").read_text(encoding="utf-8")
        found = [(row["ranks"], row["ms"], row["efficiency"], row["MB sent by a rank"]) for row in rows_of(page, "Figures")]
        one, two = ("1", "8.000", "1.00", "0.000"), ("2", "5.000", efficiency)
        suite.check(found == [one, (*two, "0.001"), one, (*two, "0.000")], "figures", found)
        suite.check("a &lt;cpu&gt;" in page, "text is escaped")


AUTO = """name = "auto"
scaling = "strong"
ranks = [1, 2, 4]
repetitions = 1

[[products]]
sizes = [[40, 31, 3]]
grids = ["near-square", "Px1", "4x1"]
algorithms = ["auto", "summa"]

[[products]]
sizes = [[40, 31, 3]]
algorithms = ["summa"]
options = { panel = 8 }

[[programs]]
command = "lsm"
"""


def check_what_was_asked_for(suite):
    """Where a choice was left to the program, and differs with the ranks, the line is still one, and so is what it is compared
    with: 8 ms on one rank, 5 ms on two and 4 ms on four are 1, 8/(2*5) = 0.8 and 8/(4*4) = 0.5."""
    stubs = Stubs(suite, "asked")
    stubs.study(AUTO + MACHINE)
    suite.check(stubs.scaling("run").returncode == 0, "a study of stubs")
    rows = rows_of((stubs.out / "report.html").read_text(encoding="utf-8"), "Figures")
    found = {}
    for work, asked, ran, ranks, grid, typical, least, most, efficiency in (
            [row[name] for name in ("work", "asked for", "ran as", "ranks", "grid", "ms", "least", "most", "efficiency")] for row in rows):
        milliseconds = {"1": 8.0, "2": 5.0, "4": 4.0}[ranks]
        repeats = 1 if "gridlops" in work else 2
        suite.check((float(typical), float(least), float(most)) == (milliseconds, milliseconds / repeats, milliseconds * repeats),
                    "least and most", asked, ranks, typical, least, most)
        found.setdefault(asked, []).append((ranks, grid, ran, efficiency))
    shapes = {"near-square": ["1x1", "1x2", "2x2"], "Px1": ["1x1", "2x1", "4x1"], "4x1": ["4x1"]}
    shares = {"1": "1.00", "2": "0.80", "4": "0.50"}
    wanted = {}
    for label, rule, ways in [
            *((f"auto, auto, {rule}", rule, ["block, columns, mpi", "summa, columns, shared", "stationary-a, columns, shared"]) for rule in shapes),
            *((f"summa, auto, {rule}", rule, ["summa, columns, mpi", "summa, columns, shared", "summa, columns, shared"]) for rule in shapes),
            ("lsm, auto, Px1", "Px1", ["lsm, mpi", "lsm, shared", "lsm, shared"])]:
        ranks = ["1", "2", "4"][-len(shapes[rule]):]
        wanted[label] = [(*row, shares[row[0]]) for row in zip(ranks, shapes[rule], ways[-len(ranks):])]
    # Two sections do this in the same way, with other options.
    of_both = wanted.pop("summa, auto, near-square")
    wanted |= {f"summa, auto, near-square, products {k}": of_both for k in (1, 2)}
    suite.check(found == wanted, "figures are", found, "not", wanted)

    # Without the result of one rank efficiencies are those of two, and say so.
    for path in stubs.out.glob("results/products-1-np1-*"):
        path.unlink()
    suite.check(stubs.scaling("report").returncode == 0, "a report without one rank")
    rows = rows_of((stubs.out / "report.html").read_text(encoding="utf-8"), "Figures")
    found = [(row["ranks"], row["efficiency"]) for row in rows if row["asked for"] == "auto, auto, near-square"]
    suite.check(found == [("2", "1.00 of 2 ranks"), ("4", "0.62 of 2 ranks")], "efficiencies without one rank", found)

    path = next(stubs.out.glob("results/products-2-np1-*"))
    path.write_text(path.read_text(encoding="utf-8").replace('"asked"', '"aksed"'), encoding="utf-8")
    run = stubs.scaling("report")
    suite.check(run.returncode == 1 and path.name in run.stderr and "--anew" in run.stderr and "Traceback" not in run.stderr,
                "a result that does not say what was asked for", run.stderr)


def check_machine(suite):
    """The report begins with the machine and the load; rows of busy runs are marked, and on 4 ranks of 2 cores half the speed is all
    that is possible."""
    stubs = Stubs(suite, "machine")
    stubs.study(AUTO + MACHINE)
    place = {"host": "node7", "cores": "0-1", "ranks": [0]}
    for load, marked in ((9.0, {"busy"}), (1.5, {""})):
        stubs.environment["STUB_FACTS"] = json.dumps({"cores": 2, "placement": [place], "host": "node7", "version": "1.2", "commit": "abc", "load_average": load,
                                                      "time": "2030-01-02T03:04:05Z"})
        suite.check(stubs.scaling("run", "--anew").returncode == 0, "a study of stubs")
        page = (stubs.out / "report.html").read_text(encoding="utf-8")
        top = page.split("<h2>")[0]
        suite.check("<p>2030-01-02; GridLOps 1.2 (abc); on node7; a &lt;cpu&gt;; 2 cores" in top, "the top", top)
        suite.check(("The machine was busy: in 8 of 11 runs" in top and "load up to 9.0" in top) == (load == 9), "load", load, top)
        suite.check("On 4 ranks there are fewer cores than ranks" in top, "cores", top)
        rows = rows_of(page, "Figures")
        suite.check({row["class"] for row in rows if "gridlops" not in row["work"]} == marked, "marks of rows", rows)
        suite.check({row["waiting"] for row in rows} == {"25 %", "50 %"}, "waiting", rows)
    check_pictures(suite, stubs)


def check_pictures(suite, stubs):
    """A series has one colour in all pictures, and bars from the least to the most of its repetitions."""
    try:
        from matplotlib import colors, pyplot
        from study import pictures
    except ImportError as error:
        print("not tested: the marks in pictures, because there is no", error.name)
        return
    study = read_study(stubs.folder / "s.toml")
    series = figures.all_series(study, figures.figures_of(study, json.loads((stubs.out / "results.json").read_text(encoding="utf-8"))))
    styles = pictures.styles_of(series)
    drawn = {}
    closed = pyplot.close
    pyplot.close = lambda _: None  # so that they can be looked at
    try:
        for name, draw in {"efficiency": lambda: pictures.efficiency(study, series, styles), "times": lambda: pictures.times(study, series, styles),
                           "forms": lambda: pictures.forms(series, styles), "traffic": lambda: pictures.traffic(study, series, styles),
                           "waiting": lambda: pictures.waiting(study, series, styles), "roof": lambda: pictures.roof(series, styles)}.items():
            if suite.check(draw() is not None, "there is no picture", name):
                drawn[name] = pyplot.gcf()
    finally:
        pyplot.close = closed
    seen, bounds = {}, {"the most that is possible", "ideal", "more ranks than the 2 cores"}
    shown = {label for picture in drawn.values() for axis in picture.axes for label in axis.get_legend_handles_labels()[1]}
    suite.check(bounds < shown, "pictures without bounds", shown)
    for name, picture in drawn.items():
        for axis in picture.axes:
            for handle, label in zip(*axis.get_legend_handles_labels()):
                if label in bounds:
                    continue
                color = getattr(handle, "get_color", None) or (lambda one=handle: one.patches[0].get_facecolor() if hasattr(one, "patches")
                                                               else one.get_facecolor()[0][:3])
                seen.setdefault(label, {})[name] = colors.to_hex(color())
    suite.check(set(seen) == {one.label for one in series} and all(len(set(found.values())) == 1 for found in seen.values()),
                "a series has several colours:", seen)
    suite.check(all("times" in found for found in seen.values()) and len(seen.get("auto, auto, near-square", ())) == 6, "pictures have", seen)
    # Each rank of four has half a core: half the speed of one, and the time of two.
    for name, label, wanted in [("efficiency", "the most that is possible", {1: 1.0, 2: 1.0, 4: 0.5}), ("times", "ideal", {1: 8.0, 2: 4.0, 4: 4.0})]:
        for axis in drawn[name].axes[:1] if name in drawn else []:  # the reports of stubs have no cores
            line = next(line for line in axis.lines if line.get_label() == label)
            at = {float(x): float(y) for x, y in zip(*line.get_data())}
            suite.check({ranks: round(at.get(ranks, -1), 9) for ranks in wanted} == wanted, "the bound of", name, at)
    apart = [tuple(line.get_xdata()) for line in drawn["times"].axes[0].lines if line.get_label() in seen]
    suite.check(len(apart) == len(set(apart)) == 7, "equal lines hide each other", apart)
    # In the picture of times the bars at 1, 2 and 4 ranks reach from half to twice the median.
    bars = {tuple(round(float(y), 6) for y in segment[:, 1]) for axis in drawn["times"].axes for lines in axis.collections
            for segment in lines.get_segments()} if "times" in drawn else set()
    suite.check({(4.0, 16.0), (2.5, 10.0), (2.0, 8.0)} <= bars, "bars of times", bars)
    bars = {tuple(round(float(y), 6) for y in segment[:, 1]) for axis in drawn["efficiency"].axes for lines in axis.collections
            for segment in lines.get_segments()} if "efficiency" in drawn else set()
    suite.check({(0.5, 2.0), (0.4, 1.6), (0.25, 1.0)} <= bars, "bars of efficiencies", bars)


def check_report(suite):
    """The programs themselves, on one and two ranks, end in a report that is one file."""
    limits = "options = { limit-order = 64, limit-mib = 8 }\n"
    launcher = suite.folder / "launcher"
    write_program(launcher, f'#!/bin/sh\nshift\nexec {shlex.quote(str(suite.launch))} "$@"\n')
    (suite.folder / "real.toml").write_text(
        STUDY + 'grids = ["near-square", "Px1"]\n' + limits
        + '[[solvers]]\nsizes = [[40, 31, 3]]\nsolvers = ["cgls", "fista"]\niterations = 3\n' + limits
        + '[[collectives]]\noperations = ["broadcast"]\nbytes = [8, 800]\n[[programs]]\ncommand = "lsm"\noptions = { iterations = 2 }\n'
        + f"[machine]\nlauncher = [{json.dumps(str(launcher))}]\n", encoding="utf-8")
    run = subprocess.run([sys.executable, SCALING, "run", "real.toml", "--out", "real", "--programs", suite.program.parent.parent],
                         cwd=suite.folder, env={**os.environ, **program.ALWAYS}, capture_output=True, text=True, timeout=120, check=False)
    out = suite.folder / "real"
    if not suite.check(run.returncode == 0, "a study", run.stdout, run.stderr):
        return
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    suite.check(document["schema"] == "gridlops.study/1" and not document["missing"] and len(document["runs"]) == 9, "results", document)
    page = (out / "report.html").read_text(encoding="utf-8")
    kept = set(re.findall(r'(?:src|href)="([^"]{0,9})', page))
    words = re.sub(r'"data:image/[^"]*"', '""', page)  # letters of a picture may happen to be "http"
    suite.check("http" not in words and "<script" not in words and kept <= {"data:imag"}, "the report needs other files", kept)
    works = {row["work"] for row in rows_of(page, "Figures")}
    suite.check(works == {"A X: 40 x 31, 3 columns, f64", "A^H Y: 40 x 31, 3 columns, f64", "cgls, an iteration: 40 x 31, 3 columns, f64",
                          "fista, an iteration: 40 x 31, 3 columns, f64", "gridlops lsm"}, "works", works)
    if "no pictures" in run.stderr:
        print("not tested: pictures, which need matplotlib")
        return
    titles = {"Efficiency", "Time", "Waiting", "Communication volume", "Collectives", "Roofline"}
    suite.check(titles <= set(re.findall(r"<h2>(.*?)</h2>", page)) and page.count("data:image/png;base64,") == len(titles), "pictures")


def test(suite, _):
    check_errors(suite)
    check_injections(suite)
    check_resume(suite)
    check_failure(suite)
    check_scripts(suite)
    check_figures(suite)
    check_what_was_asked_for(suite)
    check_machine(suite)
    check_report(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
