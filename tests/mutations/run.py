#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries every planted fault of faults.toml: its test must fail, and must pass without it.

    tests/mutations/run.py [--folder build-mutations] [FAULT…]
    tests/mutations/run.py --names BUILD     only checks that the tests which faults name are tests of a build folder

The folder gets a copy of the sources in which every fault is a switch, and one build of it. The sources of the project have
no trace of it."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from planted import HEADER, LIST, VARIABLE, ListError, planted_sources, read_faults

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/rules"))
import rule  # noqa: E402

OPTIONS = ["tests=enabled", "apps=enabled", "python=disabled", "gpu=emulated", "buildtype=release", "optimization=1"]
LONGEST = 600  # seconds of a test that does not hang
MARK = "MUTATION_RUN"  # in the environment of everything that a test starts


def write_if_new(path, data):
    """What is there already keeps its time, so that it is not compiled again."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make_tree(tree, faults):
    """A copy of the project with all switches."""
    header = tree / "planted.hpp"
    sources = planted_sources(ROOT, faults, header)
    files = {path.as_posix() for path in rule.project_files(ROOT)}
    for name in files:
        data = sources[name].encode() if name in sources else (ROOT / name).read_bytes()
        write_if_new(tree / name, data)
        (tree / name).chmod((ROOT / name).stat().st_mode)
    write_if_new(header, HEADER.encode())
    for path in rule.project_files(tree):
        if path.as_posix() not in files | {header.name}:
            (tree / path).unlink()


def tests_of(build):
    """The tests of a build folder by their names."""
    found = json.loads((build / "meson-info/intro-tests.json").read_text(encoding="utf-8"))
    return {test["name"]: test for test in found}


def is_configured(fault, tests):
    """Whether the build folder of these tests has those of programs and of the emulation, where the fault needs them."""
    if fault.file.startswith("lib/cuda/") or fault.test.startswith("gpu_"):
        return "planted faults" in tests
    return not fault.test.startswith("program ") or "program solve" in tests


def check_names(faults, tests):
    """Throws ListError if a fault names no test."""
    missing = [f"{fault.name}: there is no test {fault.test!r}" for fault in faults if fault.test not in tests]
    if missing:
        raise ListError(f"{LIST}: " + "; ".join(missing))


def command_of(fault, test):
    """The command of the fault's test, of its cases alone if the fault names some."""
    command = test["cmd"]
    if not fault.cases:
        return command
    if any(word.endswith(".py") for word in command):
        return [*command, "--only", fault.cases]
    if "-#" not in command:
        return [*command, "-#", fault.cases]
    return [*command[:-1], ",".join(f"{file}{fault.cases}" for file in command[-1].split(","))]


def end_all_of(mark):
    """Ends what a test has left running: processes whose environment has its mark."""
    word = f"{MARK}={mark}".encode()
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        left = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    if word in (folder / "environ").read_bytes().split(b"\0"):
                        os.kill(int(folder.name), signal_number)
                        left.append(folder)
                except OSError:  # it has ended, or is another user's
                    continue
        if not left:
            return
        time.sleep(0.5)


def run(command, test, build, planted, limit):
    """Runs a test with a switch. Returns its status, which is none after the limit, its seconds and what it said."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {**os.environ, **test["env"], VARIABLE: planted, MARK: mark}
    environment["GRIDLOPS_TEST_CASE_SECONDS"] = str(int(limit))
    begin = time.monotonic()
    log = build / "mutation.log"
    with log.open("wb") as output, subprocess.Popen(command, cwd=test["workdir"] or build, env=environment, stdout=output,
                                                    stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_all_of(mark)
    return status, time.monotonic() - begin, log.read_text(encoding="utf-8", errors="replace")


def build_tests(tree, build, faults):
    """Builds what the tests of the faults need. Returns all tests."""
    subprocess.run([tree / "scripts/configure", build, *OPTIONS], check=True, stdout=subprocess.DEVNULL)
    tests = tests_of(build)
    check_names(faults, tests)
    targets = json.loads((build / "meson-info/intro-targets.json").read_text(encoding="utf-8"))
    wanted = {target for fault in faults for target in tests[fault.test]["depends"]}
    files = [os.path.relpath(target["filename"][0], build) for target in targets if target["id"] in wanted]
    subprocess.run(["ninja", "-C", build, *files], check=True)
    return tests


def verdict(fault, status, seconds):
    """What a run with the fault says of it, and whether the fault is found."""
    if status is None:
        if fault.hangs:
            return f"found by the limit of {fault.hangs:g} s", True
        return f"UNKNOWN: not done after {seconds:.0f} s; where it hangs, its line needs a limit", False
    if status in (0, rule.SKIPPED):
        return f"SURVIVED: status {status} in {seconds:.1f} s", False
    return f"found: status {status} in {seconds:.1f} s", True


def try_all(listed, faults, folder):
    """Tries some of the listed faults. Returns how many were not found, or could not be tried."""
    tree, build = folder / "tree", folder / "build"
    make_tree(tree, listed)  # with all, so that the same build serves for any choice
    tests = build_tests(tree, build, faults)
    right, wrong = {}, 0
    for k, fault in enumerate(faults, 1):
        test = tests[fault.test]
        command = command_of(fault, test)
        what = f"[{k}/{len(faults)}] {fault.name}: {fault.test} {fault.cases}".rstrip()
        if tuple(command) not in right:
            # With the variable, but with no fault of this name: it is the fault that must make the difference.
            right[tuple(command)] = run(command, test, build, "nothing", LONGEST)
        status, seconds, said = right[tuple(command)]
        if status != 0 or (fault.hangs and seconds > fault.hangs / 2):
            print(f"{what}: WITHOUT THE FAULT: status {status} in {seconds:.1f} s\n{said[-2000:]}", flush=True)
            wrong += 1
            continue
        text, is_found = verdict(fault, *run(command, test, build, fault.name, fault.hangs or LONGEST)[:2])
        print(f"{what}: {text}", flush=True)
        wrong += not is_found
    print(f"{len(faults)} faults, {len(faults) - wrong} found, {wrong} not")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", help="their names [all]")
    parser.add_argument("--folder", type=Path, default=ROOT / "build-mutations")
    parser.add_argument("--names", type=Path)
    arguments = parser.parse_args()
    faults = read_faults(ROOT)
    if arguments.names:
        tests = tests_of(arguments.names)
        check_names([fault for fault in faults if is_configured(fault, tests)], tests)
        return 0
    chosen = [fault for fault in faults if not arguments.faults or fault.name in arguments.faults]
    if len(chosen) < len(arguments.faults):
        raise ListError(f"{LIST}: not all of {', '.join(arguments.faults)} are faults")
    return 1 if try_all(faults, chosen, arguments.folder.resolve()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ListError as error:
        sys.exit(f"mutations: {error}")
