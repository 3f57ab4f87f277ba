#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of options in docs/solvers.md is that of the library: the same options, solvers and states."""
import re

import rule

PAGE, SOURCE = "docs/solvers.md", "lib/solve/solver_table.cpp"


def solvers_in(text):
    return [name.replace("_", "-") for name in re.findall(r"Solver::(\w+)", text)]


def in_source(text):
    """The solvers in their order, and for each option those that take it with its state at a restart."""
    groups = {match[1]: solvers_in(match[2]) for match in re.finditer(r"const Solvers (\w+)\{([^}]*)\};", text)}
    rows = re.findall(r'^ *\{"([\w-]+)", (\w+|\{[^}]*\}), (\w+)\},$', text, re.MULTILINE)
    return groups.get("all", []), {name: (set(groups.get(solvers, solvers_in(solvers))), state) for name, solvers, state in rows}


def in_page(text):
    match = re.search(r"^\| option \|(.*)\| at a restart \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    if match is None:
        return [], {}
    solvers, options = re.findall(r"`([\w-]+)`", match[1]), {}
    for row in match[2].splitlines():
        name, *cells, state = [cell.strip() for cell in row.strip("|").split("|")]
        options[name.strip("`-")] = ({solver for solver, cell in zip(solvers, cells) if cell == "yes"}, state)
    return solvers, options


def check(root):
    (solvers, rows), (columns, lines) = in_source(rule.read(root, SOURCE)), in_page(rule.read(root, PAGE))
    failures = [] if rows else [f"{SOURCE}: there is no table"]
    if columns != solvers:
        failures.append(f"{PAGE}: the columns are {columns}, but the solvers {solvers}")
    failures += [f"{PAGE}: --{name} is not in the table" for name in rows if name not in lines]
    failures += [f"{PAGE}: there is no option --{name}" for name in lines if name not in rows]
    for name, (takers, state) in rows.items():
        if name in lines and lines[name][0] != takers:
            failures.append(f"{PAGE}: --{name} is taken by {', '.join(sorted(takers))}")
        if name in lines and lines[name][1] != state:
            failures.append(f"{PAGE}: --{name} is {state} at a restart")
    return failures


def page(rows):
    return {PAGE: "| option | `cgls` | `block-cgls` | at a restart |\n|---|---|---|---|\n" + rows}


GOOD = {
    SOURCE: 'const Solvers all{Solver::cgls,\n                  Solver::block_cgls};\nconst std::vector<SolverOption> rows{\n'
            '    {"damp", all, fixed},\n    {"one-pass", {Solver::cgls}, honoured},\n};\n',
    **page("| `--damp` | yes | yes | fixed |\n| `--one-pass` | yes | | honoured |\n"),
}
PLANTS = [
    ("an option that the page lacks", page("| `--damp` | yes | yes | fixed |\n"), "--one-pass is not in the table"),
    ("an option that is none", page("| `--damp` | yes | yes | fixed |\n| `--one-pass` | yes | | honoured |\n| `--x` | | | fixed |\n"),
     "there is no option --x"),
    ("another solver", page("| `--damp` | yes | | fixed |\n| `--one-pass` | yes | | honoured |\n"), "--damp is taken by block-cgls, cgls"),
    ("another state", page("| `--damp` | yes | yes | honoured |\n| `--one-pass` | yes | | honoured |\n"), "--damp is fixed at a restart"),
    ("a page without the table", {PAGE: "nothing\n"}, "the columns are []"),
    ("a source without the table", {SOURCE: "\n"}, "there is no table"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
