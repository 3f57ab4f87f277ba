#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A folder of code has at most 22 files, so that its names fit on a screen, and docs/rooms.md says what each folder of lib and apps
is for."""
from collections import Counter

import rule

CODE = ("include", "lib", "apps", "bench", "tests", "scripts")
MOST = 22
PAGE = "docs/rooms.md"


def check(root):
    files = Counter(path.parent.as_posix() for path in rule.project_files(root) if path.parts[0] in CODE)
    failures = [f"{folder}: {count} files; make rooms of at most {MOST} of it" for folder, count in files.items() if count > MOST]
    page = rule.read(root, PAGE)
    for folder in files:
        top, _, room = folder.partition("/")
        names = {"lib": (f"`{room}`", f"### {room}", f" and {room}\n"), "apps": (f"`{folder}`",)}.get(top, ())
        if room and names and not any(name in page for name in names):
            failures.append(f"{folder}: {PAGE} does not say what it is for")
    return failures


if __name__ == "__main__":
    good = {"lib/comm/mpi/window.cpp": "", "apps/solve/solve.cpp": "", PAGE: "`comm/mpi` has transports, `apps/solve` a program.\n"}
    rule.run(check, good, [
        ("too many files", {f"tests/ops/{number}.cpp": "" for number in range(MOST + 1)}, "tests/ops: 23 files"),
        ("a room of lib without a job", {"lib/comm/nccl/ring.cpp": ""}, "lib/comm/nccl: docs/rooms.md"),
        ("a room of apps without a job", {"apps/solve/task/rows.cpp": ""}, "apps/solve/task: docs/rooms.md")])
