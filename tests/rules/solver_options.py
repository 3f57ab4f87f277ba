#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of options in docs/solvers.md is that of the library and of the program: the same options, solvers and states. The schema of
reports has these options, and the storages of the library's table."""
import json
import re

import rule

PAGE, SOLVERS, OPTIONS, PROGRAM = "docs/solvers.md", "include/gridlops/solve/solver_table.hpp", "include/gridlops/solve/solve_options.hpp", "apps/solve/task/solve_arguments.hpp"
SCHEMA, STORAGES = "docs/report.schema.json", "include/gridlops/ops/algorithm.hpp"
NOT_IN_REPORTS, NOT_STORAGES = {"initial", "variances", "weights"}, {"disk"}  # the names of their files are in reports; a place
NEED_OPERANDS = {"preconditioner", "proximal_operator"}


def features_of(expression, groups):
    """The features in "Feature::damping | solver_features::bidiagonal"."""
    found = set()
    for name in re.findall(r"(?:\w+::)?(\w+)", expression):
        found |= groups.get(name, {name})
    return found - {"none"}


def in_source(root):
    """The solvers that need no other operands, in their order, and for each option those that take it with its state at a restart."""
    text = rule.read(root, SOLVERS)
    groups = {}
    for name, expression in re.findall(r"^constexpr Feature (\w+) =\s*([^;]*);", text, re.MULTILINE):
        groups[name] = features_of(expression, groups)
    rows = re.findall(r'SolverRow\{\s*Solver::\w+,\s*"([\w-]+)",\s*\w+::\w+,\s*\w+::\w+,\s*([\w:|\s]+?),\s*"', text)
    solvers = {name: features_of(expression, groups) for name, expression in rows}
    solvers = {name: features for name, features in solvers.items() if not features & NEED_OPERANDS}
    options = [option for path, field in ((OPTIONS, r'"\w+"'), (PROGRAM, "nullptr"))
               for option in re.findall(rf'\{{"([\w-]+)",\s*{field},\s*(?:Feature::)?(\w+),\s*(honoured|fixed)', rule.read(root, path))]
    takers = {name: {solver for solver, features in solvers.items() if feature == "none" or feature in features}
              for name, feature, _ in options}
    return list(solvers), {name: (takers[name], state) for name, _, state in options}


def in_page(text):
    match = re.search(r"^\| option \|(.*)\| at a restart \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    if match is None:
        return [], {}
    solvers, options = re.findall(r"`([\w-]+)`", match[1]), {}
    for row in match[2].splitlines():
        names, *cells, state = [cell.strip() for cell in row.strip("|").split("|")]
        for name in re.findall(r"`--([\w-]+)`", names):
            options[name] = ({solver for solver, cell in zip(solvers, cells) if cell == "yes"}, state)
    return solvers, options


def check_schema(root, rows):
    fields = json.loads(rule.read(root, SCHEMA))["properties"]
    known = fields["options"]["properties"].keys() | fields.keys()
    failures = [f"{SCHEMA}: there is no {name.replace('-', '_')}"
                for name in rows if name not in NOT_IN_REPORTS and name.replace("-", "_") not in known]
    storages = set(re.findall(r'\{Storage::\w+,\s*"(\w+)"', rule.read(root, STORAGES)))
    for name in sorted(storages ^ (set(fields["storage"]["enum"]) - NOT_STORAGES)):
        failures.append(f"{SCHEMA}: the storage {name} is not there, or is none")
    return failures


def check(root):
    (solvers, rows), (columns, lines) = in_source(root), in_page(rule.read(root, PAGE))
    failures = [] if rows else [f"{OPTIONS}: there is no table"]
    if columns != solvers:
        failures.append(f"{PAGE}: the columns are {columns}, but the solvers {solvers}")
    failures += [f"{PAGE}: --{name} is not in the table" for name in rows if name not in lines]
    failures += [f"{PAGE}: there is no option --{name}" for name in lines if name not in rows]
    for name, (takers, state) in rows.items():
        if name in lines and lines[name][0] != takers:
            failures.append(f"{PAGE}: --{name} is taken by {', '.join(sorted(takers))}")
        if name in lines and lines[name][1] != state:
            failures.append(f"{PAGE}: --{name} is {state} at a restart")
    return failures + check_schema(root, rows)


def page(rows):
    return {PAGE: "| option | `cgls` | `block-cgls` | at a restart |\n|---|---|---|---|\n" + rows}


def schema(options, storages):
    return {SCHEMA: json.dumps({"properties": {"storage": {"enum": storages}, "options": {"properties": dict.fromkeys(options, {})}}})}


GOOD = {
    SOLVERS: 'constexpr Feature least_squares = Feature::damping | Feature::column_scaling | Feature::error_bound;\n'
             'SolverRow{Solver::cgls, "cgls", A::b, C::d,\n          solver_features::least_squares | Feature::one_pass, "x", 9, 5},\n'
             'SolverRow{Solver::block_cgls, "block-cgls", A::b, C::d, solver_features::least_squares, "x", 9, 5},\n'
             'SolverRow{Solver::pcg, "pcg", A::b, C::d, Feature::preconditioner, "x", 9, 5},\n',
    OPTIONS: '  option({"damp", "damp", damping, fixed, problem},\n  option({nullptr, "decay", penalty, fixed},\n',
    PROGRAM: '  option({"one-pass", nullptr, Feature::one_pass, honoured}, [](auto& a) -> auto& { return a.one_pass; });\n',
    STORAGES: 'storage_table{{{Storage::columns, "columns", true},\n  {Storage::packed, "packed", false}}};\n',
    **page("| `--damp` | yes | yes | fixed |\n| `--one-pass` | yes | | honoured |\n"),
    **schema(["damp", "one_pass"], ["columns", "packed", "disk"]),
}
PLANTS = [
    ("an option that the page lacks", page("| `--damp` | yes | yes | fixed |\n"), "--one-pass is not in the table"),
    ("an option that is none", page("| `--damp` | yes | yes | fixed |\n| `--one-pass` | yes | | honoured |\n| `--x` | | | fixed |\n"),
     "there is no option --x"),
    ("another solver", page("| `--damp` | yes | | fixed |\n| `--one-pass` | yes | | honoured |\n"), "--damp is taken by block-cgls, cgls"),
    ("another state", page("| `--damp` | yes | yes | honoured |\n| `--one-pass` | yes | | honoured |\n"), "--damp is fixed at a restart"),
    ("a row of two options", page("| `--damp`, `--one-pass` | yes | yes | fixed |\n"), "--one-pass is taken by cgls"),
    ("a page without the table", {PAGE: "nothing\n"}, "the columns are []"),
    ("an option that reports may not have", schema(["damp"], ["columns", "packed", "disk"]), "there is no one_pass"),
    ("a storage that reports may not have", schema(["damp", "one_pass"], ["columns", "disk"]), "the storage packed"),
    ("a source without the table", {OPTIONS: "\n", PROGRAM: "\n"}, "there is no table"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
