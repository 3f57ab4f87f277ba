#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/operators.md has every function of a public header that makes an operator, and its tests run as it says."""
import re

import rule

PAGE = "docs/operators.md"
FACTORY = re.compile(r"(?:Operator|CompressedMatrix|StreamedMatrix)Ptr<(?:T|R|std::complex<R>)>\s+(\w+)\(")
ROW = re.compile(r"^\| (?P<names>`[^|]*) \| `(?P<header>[\w.]+)` \| (?P<host>\w+) \| (?P<nccl>\w+) \| (?P<mpi>\w+) \|"
                 r" (?P<tests>`[^|]*) \|$", re.MULTILINE)


def entries(text, table):
    """The names of the entries of a table of tests in a meson.build, each with the rest of its line."""
    match = re.search(r"^" + table + r" \+?= \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\s*'(\w+)': (.*)$", match[1], re.MULTILINE)) if match else {}


def check(root):
    headers = {path.name: rule.read(root, path) for path in rule.project_files(root)
               if path.as_posix().startswith("include/") and path.name.endswith(".hpp")}
    made = {(name, header) for header, text in headers.items() for name in FACTORY.findall(text)}
    on_host = {}
    for path in rule.project_files(root):
        if path.match("tests/*/meson.build"):
            on_host |= entries(rule.read(root, path), "rank_tests")
    on_gpus = entries(rule.read(root, "tests/gpu/meson.build"), "gpu_ranks")
    failures, listed = [], set()
    for row in ROW.finditer(rule.read(root, PAGE)):
        names, tests = re.findall(r"`(\w+)`", row["names"]), re.findall(r"`(\w+)`", row["tests"])
        listed |= {(name, row["header"]) for name in names}
        for test in tests:
            if row["host"] == "yes" and test not in on_host:
                failures.append(f"{PAGE}: {', '.join(names)}: there is no test {test} on several ranks")
            if "yes" in (row["nccl"], row["mpi"]) and test not in on_gpus:
                failures.append(f"{PAGE}: {', '.join(names)}: the test {test} does not run on GPUs")
    failures += [f"{PAGE}: {name} of {header} is not in the table" for name, header in sorted(made - listed)]
    failures += [f"{PAGE}: there is no {name} in {header}" for name, header in sorted(listed - made)]
    return failures


def table(names="`halo`", header="a.hpp", gpu="yes", test="halos"):
    return {PAGE: "| operator | header | host | GPU, NCCL | GPU, MPI | tests |\n|---|---|---|---|---|---|\n"
                  f"| {names} | `{header}` | yes | {gpu} | {gpu} | `{test}` |\n"}


GOOD = {
    "include/gridlops/a.hpp": "template <Scalar T>\nGRIDLOPS_EXPORT OperatorPtr<T> halo(int width);\n",
    "tests/ops/meson.build": "rank_tests += {\n  'halos': ['ops', files('a.cpp'), [1], []],\n  'others': ['ops', [], [], []],\n}\n",
    "tests/gpu/meson.build": "gpu_ranks = {\n  'halos': [[1], [], []],\n}\n",
    **table(),
}
PLANTS = [
    ("an operator that the page lacks", {"include/gridlops/b.hpp": "OperatorPtr<T> crop(int);\n"}, "crop of b.hpp is not in"),
    ("one that no header has", table("`halo`, `blur`"), "there is no blur in a.hpp"),
    ("one of another header", table(header="b.hpp"), "there is no halo in b.hpp"),
    ("a test that does not exist", table(test="hallo"), "there is no test hallo"),
    ("a test that no GPU runs", table(test="others"), "others does not run on GPUs"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
