#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every fault that tests/mutations lists can be planted: its text is in the source that it names, once, and no two share text."""
import sys
from pathlib import Path

import rule

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutations"))
from planted import LIST, ListError, planted_sources, read_faults  # noqa: E402


def check(root):
    try:
        faults = read_faults(root)
    except ListError as error:
        return [str(error)]
    failures = []
    for fault in faults:
        try:
            planted_sources(root, [fault], "planted.hpp")
        except ListError as error:
            failures.append(str(error))
    if not failures:  # together they may share text
        try:
            planted_sources(root, faults, "planted.hpp")
        except ListError as error:
            failures.append(str(error))
    return failures


def listed(name="a", file="lib/a.cpp", **fields):
    fields = {"right": "x + y", "wrong": "x - y", "test": "unit", **fields}
    return f'[[fault]]\nname = "{name}"\nfile = "{file}"\n' + "".join(f"{key} = '{value}'\n" for key, value in fields.items())


SOURCE = "int f(int x, int y) {\n  x = y;\n  return x + y;\n}\nint g(int x) { return x * x; }\n"
GOOD = {"lib/a.cpp": SOURCE,
        LIST: listed() + listed("b", right="x = y;", wrong="") + listed("c", after="return ", right="x * x", wrong="x", hangs_="").replace(
            "hangs_ = ''", "hangs = 60")}
PLANTS = [
    ("a text that is not in its source", {LIST: listed(right="x / y")}, "has the text 'x / y' nowhere"),
    ("a text that is there twice", {LIST: listed(right="int x")}, "at 2 places"),
    ("a source that is not there", {LIST: listed(file="lib/b.cpp")}, "there is no lib/b.cpp"),
    ("faults that share text", {LIST: listed() + listed("b", right="return x + y;", wrong="return x;")}, "share text"),
    ("two faults of one name", {LIST: listed() + listed(right="x = y;", wrong="")}, "the name of another fault"),
    ("a fault that changes nothing", {LIST: listed(wrong="x + y")}, "are the same"),
    ("an expression that is left out", {LIST: listed(wrong="")}, "only a statement can be left out"),
    ("an expression that is a list", {LIST: listed(right="x + y", wrong="x, y")}, "makes one value of several"),
    ("the beginning of a statement", {LIST: listed(right="return x + y", wrong="return x")}, "is neither an expression nor a whole statement"),
    ("the end of a statement", {LIST: listed(right="+ y;", wrong="- y;")}, "is only the end of a statement"),
    ("a declaration", {LIST: listed(right="const int sum = x;", wrong="const int sum = y;")}, "a declaration ends with the switch"),
    ("a field that does not exist", {LIST: listed(tests="unit")}, "tests"),
    ("a field that is missing", {LIST: listed().replace("test = 'unit'\n", "")}, "test"),
    ("a list that is no TOML", {LIST: "[[fault]\n"}, LIST),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
