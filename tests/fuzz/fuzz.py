#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fuzzes the parsers with libFuzzer, which takes clang++: fuzz.py INCLUDE [--seconds S] [--runs N] [--fast] [TARGET...]

INCLUDE is the folder of a build that has gridlops/base/version.hpp. The corpus is read only; what the fuzzer finds on the way is
thrown away, and a text that breaks something is printed and kept in the working folder. S = 0 sets no limit of time. With
--fast the runs are made without sanitizers, in half the time, and then all texts that reached something new are checked with
them. Without clang++ the status is 77.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = [HERE / "targets.cpp", *(ROOT / name for name in (
    "lib/base/hash.cpp", "lib/base/message.cpp", "lib/io/formats/array_name.cpp", "lib/io/formats/npy_header.cpp", "lib/io/formats/manifest.cpp", "lib/io/calibration_file.cpp", "lib/comm/grid_shape.cpp",
    "lib/compressed/tile_tables.cpp", "lib/dist/partition.cpp", "lib/solve/methods/small_dense.cpp",
    "lib/solve/run/active_columns.cpp", "lib/solve/run/column_state.cpp", "lib/solve/run/verdict.cpp",
    "apps/machine/machine_text.cpp", "apps/command_line/option_values.cpp"))]
TARGETS = sorted(path.name for path in (HERE / "corpus").iterdir())
FLAGS = ["-std=c++20", "-O2", "-g", "-DXXH_INLINE_ALL", "-DFMT_HEADER_ONLY"]
SANITIZED = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
FAST = ["-fsanitize=fuzzer", "-D_GLIBCXX_ASSERTIONS"]


def compiler():
    """A clang++ that has libFuzzer; None if there is none."""
    for name in ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1))):
        if shutil.which(name) is None:
            continue
        resources = subprocess.run([name, "-print-resource-dir"], capture_output=True, text=True, check=False)
        if list(Path(resources.stdout.strip()).rglob("libclang_rt.fuzzer*.a")):
            return name
    return None


def build(clang, include, folder, flags):
    folder.mkdir()
    folders = [include, ROOT / "include", ROOT / "lib", ROOT / "apps"]
    command = [clang, *FLAGS, *flags, *(f"-I{path}" for path in folders)]
    objects = [folder / f"{path.stem}.o" for path in SOURCES]

    def compile_one(source, out):
        subprocess.run([*command, "-c", source, "-o", out], check=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(compile_one, *pair) for pair in zip(SOURCES, objects)]:
            done.result()
    subprocess.run([*command, *objects, "-o", folder / "fuzz"], check=True)
    return folder / "fuzz"


def fuzz(programs, target, arguments, folder):
    """The status and a line about a target. The first program fuzzes, others check the texts that it kept."""
    found = folder / target
    found.mkdir()
    limits = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=256",
              f"-artifact_prefix={os.getcwd()}/{target}-", "-print_final_stats=1"]
    # The target counts what is allocated by operators of its own, which the sanitizer takes for a mismatch. Where memory was
    # allocated is seldom of interest, and takes a third of the time to find out.
    variables = {"GRIDLOPS_TEST_TARGET": target, "ASAN_OPTIONS": "alloc_dealloc_mismatch=0:malloc_context_size=1"}
    count = None
    for program in programs:
        bounds = ["-runs=0"] if count else [f"-max_total_time={arguments.seconds}", f"-runs={arguments.runs}"]
        run = subprocess.run([program, *limits, *bounds, found, HERE / "corpus" / target], env={**os.environ, **variables},
                             capture_output=True, text=True, errors="replace", check=False)
        count = count or re.search(r"number_of_executed_units: (\d+)", run.stderr)
        if run.returncode != 0:
            return run.returncode, f"{target}: A FINDING\n{run.stderr[-8000:]}"
    return 0, f"{target}: {count[1]} runs, no finding"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", type=Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("targets", nargs="*", default=TARGETS)
    arguments = parser.parse_intermixed_args()
    clang = compiler()
    if clang is None:
        print("skipped: there is no clang++ with libFuzzer")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = {"fast": FAST, "sanitized": SANITIZED} if arguments.fast else {"sanitized": SANITIZED}
        programs = [build(clang, arguments.include, folder / kind, flags) for kind, flags in kinds.items()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda target: fuzz(programs, target, arguments, folder), arguments.targets))
    print(*(line for _, line in results), sep="\n")
    return max(min(status, 1) for status, _ in results)


if __name__ == "__main__":
    sys.exit(main())
