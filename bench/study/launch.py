# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs on ranks of this machine."""
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

DONE = (0, 3)  # 3: the result is there, but a column has not converged
SUSPENDED = 75  # the state is saved


def launcher(ranks, bound=True):
    """The command that runs a program on this many ranks of this machine, bound to cores if wanted and if there are enough."""
    # Makes Open MPI copy through shared memory: one option is for version 4, one for version 5, and each ignores the
    # other's.
    command = ["mpirun", "-n", str(ranks), "--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "smsc", "^cma"]
    if bound and ranks <= len(os.sched_getaffinity(0)):
        return command + ["--bind-to", "core", "--map-by", "core"]
    return command + ["--map-by", ":oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def environment():
    """One thread per rank, and the kernel that BLAS itself chooses."""
    mine = {name: value for name, value in os.environ.items() if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    return {**mine, "GRIDLOPS_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "HWLOC_HIDE_ERRORS": "2"}


def find_programs(folder):
    """The paths of both programs. `folder` is a build folder, or has both. Without it, they are in this source tree's
    build folder, beside this script, or on PATH."""
    root = Path(__file__).resolve().parents[2]
    places = [Path(folder)] if folder else [root / "build", Path(sys.argv[0]).parent]  # bin in an installation
    found = {}
    for name, room in (("gridlops", "apps"), ("gridlops-bench", "bench")):
        candidates = [place / path for place in places for path in (f"{room}/{name}", name)]
        on_path = None if folder else shutil.which(name)
        path = next((path for path in candidates if path.is_file()), on_path)
        if path is None:
            sys.exit(f"scaling: there is no {name} in {folder or root / 'build'}; build it, or name its folder with --programs")
        found[name] = Path(path).resolve()
    return found


def prepare(folder):
    for name in ("results", "logs", "outputs", "checkpoints"):
        Path(folder, name).mkdir(parents=True, exist_ok=True)


def start(study, run, folder, programs):
    """Runs one program to its end, and returns its status. Resumes from the checkpoint of an earlier run."""
    words = run.command(programs[run.program])
    if Path(folder, "checkpoints", run.name, "manifest.json").exists():
        words += ["--restart", f"checkpoints/{run.name}"]
    machine = study.machine
    launch = [*machine.launcher, "-n", str(run.ranks)] if machine.launcher else launcher(run.ranks, bound=machine.threads == 1)
    log = Path(folder, "logs", f"{run.name}.txt")
    with log.open("w", encoding="utf-8") as output, subprocess.Popen(
            [*launch, *words], cwd=folder, env={**environment(), **machine.variables, **machine.environment}, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            return process.wait()
        except BaseException:  # interrupted: mpirun ends its ranks if terminated, but not if killed
            process.terminate()
            raise


def run_missing(study, folder, programs):
    """Makes the runs that have no result, and returns how many failed. A failed run does not stop the others."""
    prepare(folder)
    missing = [run for run in study.runs if not run.result(folder).exists()]
    print(f"{study.name}: {len(study.runs)} runs, {len(study.runs) - len(missing)} of them done")
    failures, begin = 0, time.monotonic()
    for k, run in enumerate(missing, 1):
        repetition = f", repetition {run.turn} of {run.turns}" if run.turns > 1 else ""
        print(f"[{k}/{len(missing)}] {run.section} on {run.ranks} ranks{repetition}: {' '.join(run.words)}", flush=True)
        before = time.monotonic()
        status = start(study, run, folder, programs)
        if status in DONE and run.result(folder).exists():
            now = time.monotonic()
            left = f"; about {(now - begin) / k * (len(missing) - k) / 60:.0f} min left" if k < len(missing) else ""
            print(f"        {now - before:.1f} s{left}", flush=True)
            continue
        failures += 1
        log = Path(folder, "logs", f"{run.name}.txt")
        said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if "error:" in line]
        print(f"        status {status}; {said[0] if said else 'see'} ({log})", flush=True)
    return failures
