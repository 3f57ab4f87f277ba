# SPDX-License-Identifier: BSD-3-Clause
"""Reads a study, a TOML file that says what to measure on how many ranks, and lists the runs that it takes.

    name = "strong"            scaling = "strong" or "weak"            ranks = [1, 2, 4]            repetitions = 5

    [[products]]               gridlops-bench matmul
    [[solvers]]                gridlops-bench solve
    [[collectives]]            gridlops-bench comm
    [[programs]]               gridlops solve, lsm, mdd, poststack, reflectivity
    [machine]                  how to start programs, and what to tell batch systems

docs/experiments.md lists the fields."""
import hashlib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from study.fields import DIRECTIVE, LAUNCHER_WORD, NAME, VARIABLE, Document, StudyError

SECTIONS = ("products", "solvers", "collectives", "programs")
COMMANDS = ("solve", "lsm", "mdd", "poststack", "reflectivity")
DIRECTIONS = {"forward": [], "adjoint": ["--adjoint"], "both": ["--both"]}
DIMENSIONS = ("rows", "columns", "right-hand sides")
RULES = ("near-square", "Px1", "1xP")


@dataclass
class Run:
    """One run of a program. Its name has a hash of its command, so a changed study has new runs."""
    section: str  # "products 1"
    kind: str
    ranks: int
    program: str  # "gridlops-bench" or "gridlops"
    words: list  # of the program's command line, without the result's file
    grid: tuple | None = None
    restarts: bool = False  # on a signal it saves its state, from which it can resume
    turn: int = 1  # of the repetitions that are runs of their own
    turns: int = 1
    name: str = field(init=False)

    def __post_init__(self):
        parts = [self.section.replace(" ", "-"), f"np{self.ranks}"]
        parts += ["x".join(map(str, self.grid))] if self.grid else []
        told = "\0".join([self.program, str(self.ranks), *self.words, str(self.turn)])
        self.name = "-".join([*parts, hashlib.sha256(told.encode()).hexdigest()[:10]])

    def result(self, folder):
        return Path(folder, "results", f"{self.name}.json")

    def command(self, executable):
        """The words of the command, which runs in the study's folder. The result's file appears complete or not at
        all."""
        words = [str(executable), *self.words, "--json" if self.program == "gridlops-bench" else "--report", f"results/{self.name}.json"]
        if self.restarts:
            words += ["--output", f"outputs/{self.name}.npy", "--checkpoint", f"checkpoints/{self.name}"]
        return words


@dataclass
class Machine:
    launcher: list | None  # before -n RANKS; none: mpirun on this machine
    ranks_per_node: int | None
    gpus_per_node: int
    time: str
    partition: str | None
    account: str | None
    modules: list
    environment: dict
    directives: dict  # further ones, for each batch system
    threads: int = 1  # of a rank
    exclusive: bool = True  # jobs share no node with others

    @property
    def variables(self):
        """The variables that set the threads of a rank."""
        return {"GRIDLOPS_THREADS": str(self.threads), "OPENBLAS_NUM_THREADS": str(self.threads)}

    @property
    def seconds(self):
        hours, minutes, seconds = map(int, self.time.split(":"))
        return 3600 * hours + 60 * minutes + seconds


@dataclass
class Study:
    name: str
    scaling: str
    ranks: list
    runs: list
    grids: dict  # the rules of each section
    machine: Machine
    text: str


def shape_of(rule, ranks):
    """The grid of this many ranks by a rule; None if the rule is a grid of another number of ranks."""
    if rule == "Px1":
        return ranks, 1
    if rule == "1xP":
        return 1, ranks
    if rule == "near-square":
        rows = max(p for p in range(1, math.isqrt(ranks) + 1) if ranks % p == 0)
        return rows, ranks // rows
    rows, cols = map(int, rule.split("x"))
    return (rows, cols) if rows * cols == ranks else None


def grid_rules(table, ranks, default):
    rules = table.words("grids", default)
    for rule in rules:
        if rule not in RULES and not re.fullmatch(r"[1-9]\d{0,5}x[1-9]\d{0,5}", rule):
            raise table.error("grids", f"{rule!r} is none of {', '.join(RULES)}, nor a grid such as 2x3")
        if not any(shape_of(rule, count) for count in ranks):
            raise table.error("grids", f"{rule} is no grid of {', '.join(map(str, ranks))} ranks")
    return rules


def grids_on(rules, ranks):
    """The grids of this many ranks, each once."""
    return list(dict.fromkeys(shape for rule in rules if (shape := shape_of(rule, ranks))))


def growing(table, names, scaling):
    """The sizes that grow with the ranks, so that each rank's work stays the same."""
    grows = table.take("grows", list, None)
    if scaling == "strong":
        if grows is not None:
            raise table.error("grows", "nothing grows in strong scaling; this is for scaling = \"weak\"")
        return []
    if not grows:
        raise table.error("grows", f"is missing: weak scaling has to know what grows, of {', '.join(names)}")
    for name in grows:
        if name not in names:
            raise table.error("grows", f"{name!r} is none of {', '.join(names)}")
    return grows


def grown(value, ranks, grows):
    """A size on this many ranks. If k sizes grow together, each grows by the k-th root of the number of ranks."""
    return round(value * ranks ** (1 / len(grows)))


def sizes_of(table, scaling):
    """A function from a number of ranks to the options of the zipped sizes."""
    sizes = table.take("sizes", list)
    for size in sizes:
        if type(size) is not list or len(size) != 3 or any(type(number) is not int or number < 1 for number in size):
            raise table.error("sizes", f"{size!r} is not [rows, columns, right-hand sides]")
    if not sizes:
        raise table.error("sizes", "is empty")
    grows = growing(table, DIMENSIONS, scaling)

    def options(ranks):
        words = []
        for k, name in enumerate(("rows", "cols", "rhs")):
            of_all = [grown(size[k], ranks, grows) if DIMENSIONS[k] in grows else size[k] for size in sizes]
            words += [f"--{name}", ",".join(map(str, of_all))]
        return [*words, "--zip", "rows,cols,rhs"]
    return options


def option_words(pairs):
    return [word for name, value in pairs.items() if value is not False
            for word in ([f"--{name}"] if value is True else [f"--{name}", value])]


def bench_runs(table, kind, study):
    """Runs of matmul or solve: one for each grid and transport."""
    name, scaling, ranks, repetitions = study
    sizes = sizes_of(table, scaling)
    rules = grid_rules(table, ranks, ["near-square"])
    transports = table.words("transports", ["auto"])
    fixed = ["--algorithm", ",".join(table.words("algorithms", ["auto"])), "--dtype", ",".join(table.words("types", ["f64"])),
             "--storage", ",".join(table.words("storage", ["auto"])), "--device", table.choice("device", ("cpu", "gpu"), "cpu"),
             "--reps", str(repetitions)]
    if kind == "products":
        fixed = ["matmul", *fixed, *DIRECTIONS[table.choice("direction", DIRECTIONS, "both")]]
    else:
        fixed = ["solve", *fixed, "--solver", ",".join(table.words("solvers", ["cgls"])), "--iterations", str(table.whole("iterations", 10))]
    fixed += option_words(table.pairs("options"))
    runs = [Run(table.title, kind, count, "gridlops-bench",
                [*fixed, *sizes(count), "--grid", f"{grid[0]}x{grid[1]}", "--transport", transport], grid)
            for count in ranks for grid in grids_on(rules, count) for transport in transports]
    return runs, rules


def collective_runs(table, kind, study):
    _, _, ranks, repetitions = study
    words = ["comm", "--operation", ",".join(table.words("operations")), "--bytes", ",".join(map(str, table.wholes("bytes", least=0))),
             "--transport", ",".join(table.words("transports", ["mpi"])), "--reps", str(repetitions), *option_words(table.pairs("options"))]
    return [Run(table.title, kind, count, "gridlops-bench", words) for count in ranks], []


def program_runs(table, kind, study):
    """Runs of a subcommand of gridlops, one for each grid, transport and repetition."""
    _, scaling, ranks, repetitions = study
    command = table.choice("command", COMMANDS)
    options = table.pairs("options")
    numbers = [name for name, value in options.items() if type(value) is str and value.isdigit()]
    grows = growing(table, numbers, scaling)
    rules = grid_rules(table, ranks, ["Px1"])
    transports = table.words("transports", ["auto"])
    runs = []
    for count in ranks:
        sized = {name: str(grown(int(value), count, grows)) if name in grows else value for name, value in options.items()}
        runs += [Run(table.title, kind, count, "gridlops",
                     [command, "--quiet", *option_words(sized), "--grid", f"{grid[0]}x{grid[1]}", "--transport", transport], grid,
                     restarts=command == "solve", turn=turn, turns=repetitions)
                 for grid in grids_on(rules, count) for transport in transports for turn in range(1, repetitions + 1)]
    return runs, rules


def read_machine(table):
    time = table.word("time", "00:30:00")
    if not re.fullmatch(r"\d{2,3}:[0-5]\d:[0-5]\d", time):
        raise table.error("time", f"{time!r} is not a time such as 00:30:00")
    machine = Machine(table.words("launcher", None, LAUNCHER_WORD), table.whole("ranks_per_node", None),
                      table.whole("gpus_per_node", 0, 0), time, table.word("partition", None, NAME), table.word("account", None, NAME),
                      table.words("modules", []), table.pairs("environment", VARIABLE),
                      {scheduler: table.words(f"{scheduler}_directives", [], DIRECTIVE) for scheduler in ("slurm", "pbs", "lsf", "flux")},
                      table.whole("threads", 1), table.take("exclusive", bool, True))
    if machine.seconds <= 120:
        raise table.error("time", f"{time} is over when runs are told, 120 seconds before its end, to save their state")
    table.finish()
    return machine


def read_study(path):
    """The study of a file. Throws StudyError."""
    document = Document(Path(path))
    root = document.root
    name = root.word("name", pattern=NAME)
    scaling = root.choice("scaling", ("strong", "weak"))
    ranks = root.wholes("ranks")
    if ranks != sorted(set(ranks)):
        raise root.error("ranks", f"{ranks} do not grow")
    facts = name, scaling, ranks, root.whole("repetitions", 5)
    root.finish()
    runs, grids = [], {}
    for kind, runs_of in (("products", bench_runs), ("solvers", bench_runs), ("collectives", collective_runs), ("programs", program_runs)):
        for table in document.list_of(kind):
            found, grids[table.title] = runs_of(table, kind, facts)
            table.finish()
            runs += found
    machine = read_machine(document.table("machine"))
    document.finish([*SECTIONS, "machine"])
    if not runs:
        raise StudyError(f"{path}: there is nothing to run: add {', '.join(f'[[{section}]]' for section in SECTIONS)}")
    return Study(name, scaling, ranks, sorted(runs, key=lambda run: run.ranks), grids, machine, document.text)
