#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first C++ program of README.md to a file, to be compiled and run: readme_program.py SOURCE_ROOT OUTPUT.

Fails if there is none, or if it is longer than the README promises.
"""
import re
import sys
from pathlib import Path

import rule

LONGEST = 20
PROGRAM = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def first_program(root):
    """(the program, what is wrong with it)."""
    readme = Path(root) / "README.md"
    match = PROGRAM.search(readme.read_text(encoding="utf-8")) if readme.is_file() else None
    if match is None:
        return "", ["README.md: has no ```cpp block"]
    program = match[1]
    failures = []
    lines = len(program.splitlines())
    if lines > LONGEST:
        failures.append(f"README.md: the first program has {lines} lines; at a glance one takes in {LONGEST}")
    if "int main(" not in program:
        failures.append("README.md: the first ```cpp block has no main, so it is no program")
    return program, failures


def check(root):
    return first_program(root)[1]


GOOD = {"README.md": "Text\n\n```sh\nls\n```\n\n```cpp\nint main() {}\n```\n\n```cpp\nvoid more();\n```\n"}
PLANTS = [
    ("no program", {"README.md": "```sh\nls\n```\n"}, "has no ```cpp block"),
    ("a long program", {"README.md": "```cpp\nint main() {\n" + "\n" * 19 + "}\n```\n"}, "has 21 lines"),
    ("a fragment", {"README.md": "```cpp\nvoid part();\n```\n"}, "has no main"),
]

if __name__ == "__main__":
    if len(sys.argv) == 3:
        text, problems = first_program(sys.argv[1])
        if problems:
            sys.exit("\n".join(problems))
        Path(sys.argv[2]).write_text(text, encoding="utf-8")
    else:
        rule.run(check, GOOD, PLANTS)
