#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every public header compiles alone, twice in one file, without a warning.

headers_alone.py SOURCE_ROOT COMPILER [FLAG…], or headers_alone.py --self-test COMPILER [FLAG…]; the compiler must find mpi.h.
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
            "-Wno-unused-command-line-argument"]  # MPI's compiler wrappers pass libraries along


def check(root, compiler):
    include = Path(root) / "include"
    headers = sorted(path.relative_to(include).as_posix() for path in include.glob("gridlops/**/*.hpp"))

    def compile_alone(header):
        source = f'#include "{header}"\n#include "{header}"\n'
        command = [*compiler, *WARNINGS, "-I", str(include), "-x", "c++", "-"]
        result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        return f"{header} does not compile alone:\n{result.stderr}" if result.returncode != 0 else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return len(headers), [failure for failure in pool.map(compile_alone, headers) if failure]


def self_test(compiler):
    plants = {
        "good": "#pragma once\n#include <vector>\ninline int size(const std::vector<int>& v) { return v.empty(); }\n",
        "needs_more": "#pragma once\nstd::vector<int> numbers();\n",
        "no_guard": "struct Twice {};\n",
        "warns": "#pragma once\ninline int narrow(long value) { return value; }\n",
    }
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "include/gridlops"
        folder.mkdir(parents=True)
        for name, text in plants.items():
            (folder / f"{name}.hpp").write_text(text, encoding="utf-8")
        _, failures = check(root, compiler)
    found = {failure.split()[0] for failure in failures}
    expected = {f"gridlops/{name}.hpp" for name in plants if name != "good"}
    return len(plants), [f"self-test: {sorted(found)} failed, not {sorted(expected)}"] if found != expected else []


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    count, problems = self_test(sys.argv[2:]) if sys.argv[1] == "--self-test" else check(sys.argv[1], sys.argv[2:])
    print("\n".join(problems) if problems else f"{count} headers, as expected")
    sys.exit(1 if problems or count == 0 else 0)
