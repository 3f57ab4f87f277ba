# SPDX-License-Identifier: BSD-3-Clause
"""Checks the helps: required options come first, lines fit a terminal, examples run as they are printed, and the exit
statuses are those of the code and of the documentation. help_test.py LAUNCH PROGRAM"""
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np

import program

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/rules"))
from solver_options import in_source  # noqa: E402

WIDTH = 100
# What the examples need, and small sizes for those that take the defaults of a use case.
SMALL = {**{f"GRIDLOPS_LSM_{name}": value for name, value in
            {"NX": "9", "NZ": "8", "SOURCES": "4", "SAMPLES": "90", "LAST": "80"}.items()},
         **{f"GRIDLOPS_MDD_{name}": value for name, value in {"NX": "6", "NY": "7", "SAMPLES": "60", "NF": "20"}.items()},
         **{f"GRIDLOPS_{name}_{option}": value for name in ("POSTSTACK", "REFLECTIVITY")
            for option, value in {"LINES": "4", "TRACES": "12", "SAMPLES": "60"}.items()}}


def sections(text):
    """The headings of a help, and the options below each."""
    found, heading = {}, None
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][\w ,]*:", line):
            heading = line[:-1]
            found[heading] = []
        elif heading and heading != "Examples" and (match := re.match(r"  (?:-\w,)?(--[\w-]+|[\w.]+)", line)):
            found[heading].append(match[1])
    return found


def subcommands(suite):
    text = suite.run("--help").output
    return re.findall(r"^  ([a-z-]+)  ", text[text.index("Subcommands:"):], re.MULTILINE)


def examples(text):
    return [line.strip() for line in text[text.index("Examples:"):].split("\n\n")[0].splitlines()[1:]]


def check_layout(suite, name, text):
    groups = sections(text)
    suite.check("Required" not in groups or next(iter(groups)) == "Required", name, "does not begin with what is required:", groups)
    listed = [option for options in groups.values() for option in options]
    suite.check(len(listed) == len(set(listed)) and {"--help", "--version"} <= set(listed), name, "lists", listed)
    wide = [line for line in text.splitlines() if len(line) > WIDTH and "mpirun" not in line]  # which are to be copied
    suite.check(not wide, name, "has lines of more than", WIDTH, "characters:", wide)
    # Without its required options a subcommand names them all.
    if groups.get("Required"):
        run = suite.run(name)
        suite.succeeded(run, 2)
        suite.check(all(option in run.errors for option in groups["Required"]), name, "misses", run.errors)


def check_examples(suite, name, text):
    lines = examples(text)
    suite.check(len(lines) >= 2, name, "has examples", lines)
    for line in lines if name != "calibrate" else []:  # which takes seconds, and has a test of its own
        words = shlex.split(line)
        ranks = 2 if words[0] == "mpirun" and name in ("multiply", "solve") else None  # on several ranks they differ most
        words = words[words.index("gridlops") + 1:]
        small = {f"--{key}": value for key, value in {"rows": "60", "cols": "60"}.items() if f"--{key}" in words}
        words = [small.get(before, word) for before, word in zip([None, *words], words)]
        suite.check(words[0] == name, "an example of", name, "is", line)
        suite.succeeded(suite.run(*words, ranks=ranks, environment={} if "--data" in words else SMALL))


def check_texts(suite):
    """What --tolerance means to each solver is said to those who can choose that solver."""
    for name, solvers in {"solve": in_source(ROOT)[0], "lsm": ["cgls", "lsqr", "lsmr"],
                          "reflectivity": ["ista", "fista", "proximal-gradient"]}.items():
        text = suite.run(name, "--help").output
        tolerance = " ".join(re.search(r"--tolerance T\s+(.*?)\n  --", text, re.DOTALL)[1].split())
        meanings = {solver: meaning for part in re.findall(r"with ([\w, -]+): ([^;\[]*)", tolerance)
                    for solver in part[0].split(", ") for meaning in [part[1].strip()]}
        suite.check(sorted(meanings) == sorted(solvers), name, "--tolerance:", tolerance)
        for solver, meaning in meanings.items():
            word = {"bounded": "|what bounds leave of A^H", "cg": "|b - A x - D^2 x|", "minres": "|b - A x - D^2 x|", "ista": "a step moves x", "lsqr": "|r|"}.get(
                {"fista": "ista", "proximal-gradient": "ista", "lsmr": "lsqr"}.get(solver, solver), "|A^H (b - A x) - D^2 x|")
            suite.check(word in meaning, name, solver, "tests", meaning)


def check_statuses(suite):
    enum = re.search(r"enum class ExitStatus \{(.*?)\};", (ROOT / "include/gridlops/base/error.hpp").read_text(encoding="utf-8"), re.DOTALL)[1]
    statuses = set(re.findall(r"= (\d+)", enum))
    text = suite.run("--help").output
    told = set(re.findall(r"(?<![\w.])(\d+) [a-z]", text[text.index("Exit status:"):]))
    suite.check(told == statuses, "the help has the statuses", told, "not", statuses)
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    table = page[page.index("## Exit statuses"):page.index("## What mpirun")]
    rows = {number for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for number in row.split(", ")}
    # Those of signals are not the program's own.
    suite.check({number for number in rows if int(number) < 128} == statuses, "docs/errors.md has the statuses", rows)


def test(suite, _full):
    suite.succeeded(suite.run("make-problem", "--rows", "60", "--cols", "40", "--rhs", "2", "--out", "."))
    for name in ("R.json", "first.json", "second.json"):
        suite.succeeded(suite.run("multiply", "--matrix", "A.npy", "--input", "X_true.npy", "--output", "Y.npy", "--report", name))
    shutil.copy(suite.folder / "X_true.npy", suite.folder / "X.npy")
    np.save(suite.folder / "b.npy", np.load(suite.folder / "B.npy")[:, 0])
    np.save(suite.folder / "kernel.npy", np.ones((10, 7, 6)))
    np.save(suite.folder / "traces.npy", np.ones((60, 7)))
    np.save(suite.folder / "section.npy", np.ones((2, 12, 60)))
    np.save(suite.folder / "smooth.npy", np.ones((2, 12, 60)))
    np.save(suite.folder / "wavelet.npy", np.array([0.5, 1, 0.5]))
    np.save(suite.folder / "shots.npy", np.ones((4, 3, 90)))
    np.save(suite.folder / "positions.npy", np.ones((7, 2)) * [[10, 20]])
    for name in subcommands(suite):
        text = suite.run(name, "--help").output
        check_layout(suite, name, text)
        check_examples(suite, name, text)
    check_texts(suite)
    check_statuses(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
