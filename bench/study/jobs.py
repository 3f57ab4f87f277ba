# SPDX-License-Identifier: BSD-3-Clause
"""Writes job scripts that run a study: for Slurm, PBS and LSF one array for each number of ranks, for Flux a job for each run, or one
plain script. Jobs have their nodes to themselves, with all their memory, unless [machine] or its directives say otherwise.

Shortly before a run's time ends, the job signals the run. `gridlops solve` then saves its state and ends with status
75, and the job queues the run again if that state is newer than the job. read_study() checks the words of the study; the scripts quote paths."""
import math
import shlex

SCHEDULERS = ("slurm", "pbs", "lsf", "flux", "plain")
NOTICE = 120  # a run gets its signal this many seconds before its time ends

# The batch system signals the job's shell, the shell signals the launcher, and the launcher (srun or mpirun) the ranks.
SLURM_LIMIT = """within_time() {
  "$@" &
  local running=$! told=yes status
  trap 'told=yes; kill -USR1 "$running"' USR1
  # A signal ends a wait, but not the run.
  while [ -n "$told" ]; do
    told="" status=0
    wait "$running" || status=$?
  done
  return "$status"
}
"""
TIMEOUT_LIMIT = """within_time() {{
  timeout --preserve-status --signal=USR1 --kill-after={kill} {seconds} "$@"
}}
"""
RUN = """
# run NAME WORD…: makes this run unless it has a result, and resumes from the state that an earlier run saved. Sets again if
# another job can go on from a state that this one has saved.
again=""
run() {
  local name=$1 status=0 manifest="checkpoints/$1/manifest.json" began="logs/$1.began"
  shift
  [ ! -e "results/$name.json" ] || return 0
  if [ -e "$manifest" ]; then set -- "$@" --restart "checkpoints/$name"; fi
  : >"$began"
  within_time "$@" >>"logs/$name.txt" 2>&1 || status=$?
  # 3: the result is there, but a column has not converged.
  if [ "$status" -eq 3 ] && [ -e "results/$name.json" ]; then status=0; fi
  echo "$name: status $status"
  if [ "$status" -eq 75 ]; then
    if [ -e "$manifest" ] && [ ! "$began" -nt "$manifest" ]; then
      again=yes
    else
      echo "$name: it saved no state since this job began, so another job would do the same again; give it more time" >&2
    fi
  fi
  return "$status"
}
"""
START = """
start() {
  case $1 in
%s    *) echo "there is no run $1" >&2; return 2 ;;
  esac
}
"""


def job_name(study, ranks, most=128):
    """The name of the jobs on this many ranks. The study's name is cut, so that jobs on other ranks have other names."""
    rest = f"-np{ranks}"
    return study.name[:most - len(rest)] + rest


def nodes_of(machine, ranks):
    """How many nodes, and ranks on each; one node if nothing is known."""
    on_node = min(ranks, machine.ranks_per_node or ranks)
    return math.ceil(ranks / on_node), on_node


def lines_of(prefix, defaults, own):
    """Directives, of which the user's replace defaults: those that begin with the same option."""
    def option(directive):
        return directive.replace("=", " ").split()[0]
    taken = {option(directive) for directive in own}
    return "".join(f"#{prefix} {directive}\n" for directive in [*(each for each in defaults if option(each) not in taken), *own])


def slurm_directives(study, ranks, count):
    machine = study.machine
    directives = [f"--job-name={job_name(study, ranks)}", f"--ntasks={ranks}", f"--cpus-per-task={machine.threads}", f"--time={machine.time}",
                  f"--signal=B:USR1@{NOTICE}", "--requeue", "--open-mode=append", f"--array=0-{count - 1}", f"--output=logs/job-np{ranks}-%a.txt"]
    if machine.exclusive:
        directives += ["--exclusive", "--mem=0"]  # 0: all memory of the node
    if machine.ranks_per_node:
        nodes, on_node = nodes_of(machine, ranks)
        directives += [f"--nodes={nodes}", f"--ntasks-per-node={on_node}"]
    if machine.gpus_per_node:
        # A rank sees all GPUs of its node and takes the one of its number, so that GPUs reach each other's memory.
        directives += [f"--gpus-per-node={min(ranks, machine.gpus_per_node)}"]
    directives += [f"--partition={machine.partition}"] if machine.partition else []
    directives += [f"--account={machine.account}"] if machine.account else []
    return lines_of("SBATCH", directives, machine.directives["slurm"])


def pbs_directives(study, ranks):
    machine = study.machine
    nodes, on_node = nodes_of(machine, ranks)
    select = f"select={nodes}:ncpus={on_node * machine.threads}:mpiprocs={on_node}"
    if machine.gpus_per_node:
        select += f":ngpus={min(on_node, machine.gpus_per_node)}"
    directives = [f"-N {job_name(study, ranks, 15)}", f"-l {select}", f"-l walltime={machine.time}", "-j oe", "-r y"]
    places = [directive for directive in machine.directives["pbs"] if "place=" in directive]
    directives += ["-l place=scatter:excl"] if machine.exclusive and not places else []
    directives += [f"-q {machine.partition}"] if machine.partition else []
    directives += [f"-A {machine.account}"] if machine.account else []
    # -l may stand in several lines, each for other resources.
    return lines_of("PBS", directives, []) + lines_of("PBS", [], machine.directives["pbs"])


def lsf_directives(study, ranks, count):
    machine = study.machine
    nodes, on_node = nodes_of(machine, ranks)
    minutes = math.ceil(machine.seconds / 60)
    directives = [f'-J "{job_name(study, ranks)}[1-{count}]"', f"-n {ranks}", f'-R "span[ptile={on_node}] affinity[core({machine.threads})]"',
                  f"-W {minutes}", f"-o logs/job-np{ranks}-%I.txt"]
    directives += ["-x"] if machine.exclusive else []
    directives += [f'-gpu "num={min(on_node, machine.gpus_per_node)}"'] if machine.gpus_per_node else []
    directives += [f"-q {machine.partition}"] if machine.partition else []
    directives += [f"-P {machine.account}"] if machine.account else []
    return lines_of("BSUB", directives, machine.directives["lsf"])


def flux_directives(study, ranks):
    machine = study.machine
    nodes, on_node = nodes_of(machine, ranks)
    directives = [f"--job-name={job_name(study, ranks)}", f"--nslots={ranks}", f"--cores-per-slot={machine.threads}",
                  f"--time-limit={machine.seconds}s", f"--output=logs/job-np{ranks}-{{{{id}}}}.txt"]
    directives += [f"--nodes={nodes}", "--exclusive"] if machine.exclusive else []
    directives += [f"--gpus-per-slot={math.ceil(machine.gpus_per_node / on_node)}"] if machine.gpus_per_node else []
    directives += [f"--queue={machine.partition}"] if machine.partition else []
    directives += [f"--bank={machine.account}"] if machine.account else []
    return lines_of(" flux:", directives, machine.directives["flux"])


def launch_words(study, ranks, scheduler):
    """The launcher's command, which stands before a program. Launchers of Slurm and Flux know their own job. srun binds ranks to
    cores, unless the study says otherwise; since version 22.05 it no longer takes --cpus-per-task from the job."""
    machine = study.machine
    words = machine.launcher or {"slurm": ["srun"], "flux": ["flux", "run"]}.get(scheduler, ["mpirun"])
    options = {"srun": ["--cpu-bind=cores", f"--cpus-per-task={machine.threads}", *(["--gpu-bind=none"] if machine.gpus_per_node else [])],
               "flux": [f"--cores-per-task={machine.threads}"]}.get(words[0], [])
    words = [*words, *(option for option in options if not any(word.startswith(option.partition("=")[0]) for word in words))]
    return [*words, "-n", str(ranks)]


def set_up(study, folder, scheduler):
    """The script's lines before the first run: its folder, modules, variables and functions."""
    machine = study.machine
    lines = ["set -euo pipefail", f"cd {shlex.quote(str(folder))}"]
    if machine.modules:
        lines += [f"module load {shlex.join(machine.modules)}"]
    variables = {**machine.variables, **machine.environment}
    lines += [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]
    limit = SLURM_LIMIT if scheduler == "slurm" else TIMEOUT_LIMIT.format(kill=NOTICE - 10, seconds=machine.seconds - NOTICE)
    return "\n".join(lines) + "\n\n" + limit + RUN


def cases(study, runs, programs, scheduler):
    """The shell function that starts a run by its number."""
    text = ""
    for number, run in enumerate(runs):
        words = [*launch_words(study, run.ranks, scheduler), *run.command(programs[run.program])]
        text += f"    {number}) run {shlex.join([run.name, *words])} ;;\n"
    return START % text


def title(study, what):
    return f"# {what} of the study {study.name}; written by bench/scaling, which runs only what has no result yet.\n"


def slurm_script(study, ranks, runs, folder, programs):
    return ("#!/usr/bin/env bash\n" + slurm_directives(study, ranks, len(runs)) + title(study, f"The runs on {ranks} rank{'' if ranks == 1 else 's'}")
            + set_up(study, folder, "slurm") + cases(study, runs, programs, "slurm")
            + '\nstatus=0\nstart "$SLURM_ARRAY_TASK_ID" || status=$?\n'
              'if [ -n "$again" ]; then scontrol requeue "$SLURM_JOB_ID"; else exit "$status"; fi\n')


def pbs_script(study, ranks, runs, folder, programs):
    script = shlex.quote(str(folder / "jobs" / f"np{ranks}.pbs"))
    return ("#!/usr/bin/env bash\n" + pbs_directives(study, ranks) + title(study, f"The runs on {ranks} rank{'' if ranks == 1 else 's'}")
            + set_up(study, folder, "pbs") + cases(study, runs, programs, "pbs")
            + '\n# A job of an array, or one run by itself.\ntask=${TASK:-${PBS_ARRAY_INDEX:-0}}\nstatus=0\nstart "$task" || status=$?\n'
              f'if [ -n "$again" ]; then qsub -v "TASK=$task" {script}; else exit "$status"; fi\n')


def lsf_script(study, ranks, runs, folder, programs):
    script = shlex.quote(str(folder / "jobs" / f"np{ranks}.lsf"))
    return ("#!/usr/bin/env bash\n" + lsf_directives(study, ranks, len(runs))
            + title(study, f"The runs on {ranks} rank{'' if ranks == 1 else 's'}") + set_up(study, folder, "lsf") + cases(study, runs, programs, "lsf")
            + '\n# A job of an array, whose numbers begin with 1, or one run by itself.\ntask=${TASK:-$((${LSB_JOBINDEX:-1} - 1))}\n'
              'status=0\nstart "$task" || status=$?\n'
              f'if [ -n "$again" ]; then TASK=$task bsub -J {job_name(study, ranks)} <{script}; else exit "$status"; fi\n')


def flux_script(study, ranks, runs, folder, programs):
    script = shlex.quote(str(folder / "jobs" / f"np{ranks}.flux"))
    return ("#!/usr/bin/env bash\n" + flux_directives(study, ranks)
            + title(study, f"The runs on {ranks} rank{'' if ranks == 1 else 's'}") + set_up(study, folder, "flux")
            + cases(study, runs, programs, "flux") + '\nstatus=0\nstart "$1" || status=$?\n'
              f'if [ -n "$again" ]; then flux --parent batch {script} "$1"; else exit "$status"; fi\n')


def plain_script(study, runs, folder, programs):
    return ("#!/usr/bin/env bash\n" + title(study, "All runs") + set_up(study, folder, "plain") + cases(study, runs, programs, "plain")
            + "\nlast=0\n"
              f"for task in $(seq 0 {len(runs) - 1}); do\n"
              '  status=0\n  start "$task" || status=$?\n  [ "$status" -eq 0 ] || last=$status\ndone\n'
              '[ -z "$again" ] || echo "runs have saved their states: start this script again"\nexit "$last"\n')


def submit_script(study, folder, lines):
    return ("#!/usr/bin/env bash\n" + title(study, "Submits the job scripts") + f"set -euo pipefail\ncd {shlex.quote(str(folder))}\n"
            + "".join(f"{line}\n" for line in lines))


def write_jobs(study, folder, programs, scheduler):
    """Replaces jobs/ by scripts for the runs that have no result. Returns an exit status."""
    jobs = folder / "jobs"
    jobs.mkdir(exist_ok=True)
    for old in [*jobs.glob("np*"), *jobs.glob("*.sh")]:
        old.unlink()
    missing = [run for run in study.runs if not run.result(folder).exists()]
    scripts, lines = {}, []
    for ranks in dict.fromkeys(run.ranks for run in missing):
        runs = [run for run in missing if run.ranks == ranks]
        if scheduler == "slurm":
            scripts[f"np{ranks}.slurm"] = slurm_script(study, ranks, runs, folder, programs)
            lines.append(f"sbatch jobs/np{ranks}.slurm")
        elif scheduler == "pbs":
            scripts[f"np{ranks}.pbs"] = pbs_script(study, ranks, runs, folder, programs)
            # An array of PBS has at least two jobs.
            lines.append(f"qsub -J 0-{len(runs) - 1} jobs/np{ranks}.pbs" if len(runs) > 1 else f"qsub -v TASK=0 jobs/np{ranks}.pbs")
        elif scheduler == "lsf":
            scripts[f"np{ranks}.lsf"] = lsf_script(study, ranks, runs, folder, programs)
            lines.append(f"bsub <jobs/np{ranks}.lsf")
        elif scheduler == "flux":
            scripts[f"np{ranks}.flux"] = flux_script(study, ranks, runs, folder, programs)
            lines.append(f"for task in $(seq 0 {len(runs) - 1}); do flux batch jobs/np{ranks}.flux \"$task\"; done")
    if scheduler == "plain" and missing:
        scripts["all.sh"] = plain_script(study, missing, folder, programs)
    elif missing:
        scripts["submit.sh"] = submit_script(study, folder, lines)
    for name, text in scripts.items():
        (jobs / name).write_text(text, encoding="utf-8")
        (jobs / name).chmod(0o755)
    print(f"{len(missing)} of {len(study.runs)} runs are missing; {'their scripts are in ' + str(jobs) if missing else 'nothing to do'}")
    return 0
