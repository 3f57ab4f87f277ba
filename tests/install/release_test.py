#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries what scripts/release rests on: release_test.py SOURCE_ROOT BUILD_FOLDER COMPILER…

All files that name the version name the same. scripts/sbom.py has every library of this build, and the checksum of a file.
scripts/abi.py finds a name that is gone, and a type that has grown, in libraries that are compiled here.
"""
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packages import version_of
from ways import run

HEADER = "#pragma once\nnamespace gridlops {{\nstruct Options {{ {fields} }};\nPUBLIC int solve(const Options& options);\n{more}}}\n"
SOURCE = '#include <functional>\n#include "gridlops/solve/solver.hpp"\nnamespace gridlops {{\nint solve(const Options& options) {{ return options.iterations; }}\n{inside}{more}}}\n'
# The type of a lambda has a name that is exported, of which programs know nothing.
LAMBDA = "template <class T> PUBLIC void each() { std::function<void()>([] {})(); }\ntemplate void each<int>();\n"
NO_LAMBDA = "template <class T> PUBLIC void each() {}\ntemplate void each<int>();\n"
DECLARED, DEFINED = "PUBLIC void stop();\n", "void stop() {}\n"


def check_versions(source):
    """The version is in meson.build; these cannot take it from there."""
    version = version_of(source)
    citation = re.search(r"^version: (\S+)$", (source / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    if citation != version:
        sys.exit(f"CITATION.cff has version {citation}, meson.build {version}")
    headings = re.findall(r"^## \[(.*?)\](?: – (.*))?$", (source / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if headings[0][0] != "Unreleased" or headings[1][0] != version or not re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", headings[1][1]):
        sys.exit(f"CHANGELOG.md must begin with [Unreleased] and [{version}], with a date or “unreleased”, not with {headings[:2]}")


def check_sbom(source, build):
    text = run([source / "scripts/sbom.py", build, source / "LICENSE"])
    bill = json.loads(text)
    names = {package["name"]: package["versionInfo"] for package in bill["packages"]}
    project = json.loads(run(["meson", "introspect", "--projectinfo", build]))
    if names.get("gridlops") != project["version"] or "xxHash" not in names or not {"Open MPI", "MPICH"} & set(names):
        sys.exit(f"the bill of materials has {names}")
    identifiers = {item["SPDXID"] for kind in ("packages", "files") for item in bill[kind]} | {bill["SPDXID"]}
    ends = {relation[end] for relation in bill["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    if ends - identifiers or not all(package["licenseDeclared"] for package in bill["packages"]):
        sys.exit(f"the bill of materials names {ends - identifiers}, which it does not have")
    wanted = hashlib.sha256((source / "LICENSE").read_bytes()).hexdigest()
    if wanted not in text:
        sys.exit("the bill of materials lacks the checksum of its file")


def check_refusals(source):
    """Not released without a date, nor of another version than the changelog's."""
    heading = re.search(r"^## \[[\d.]+\] – (.*)$", (source / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    if heading == "unreleased":
        result = subprocess.run([source / "scripts/release"], capture_output=True, text=True, check=False)
        if result.returncode != 1 or "has no date" not in result.stderr:
            sys.exit(f"scripts/release goes on without a date: {result.returncode}\n{result.stdout}{result.stderr}")


def make_library(folder, compiler, fields="int iterations = 1;", inside=LAMBDA, more=True):
    """Makes a library in this folder, and returns its headers and itself."""
    (folder / "include/gridlops/solve").mkdir(parents=True)
    header = HEADER.format(fields=fields, more=DECLARED if more else "")
    (folder / "include/gridlops/solve/solver.hpp").write_text(header, encoding="utf-8")
    source = folder / "solver.cpp"
    source.write_text(SOURCE.format(inside=inside, more=DEFINED if more else ""), encoding="utf-8")
    run([*compiler, "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-DPUBLIC=__attribute__((visibility(\"default\")))", f"-I{folder / 'include'}", source, "-o", folder / "libgridlops.so"])
    return folder / "include", folder / "libgridlops.so"


def check_abi(source, compiler):
    abi = source / "scripts/abi.py"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cases = {"first": {}, "same": {"inside": NO_LAMBDA}, "without": {"more": False}, "grown": {"fields": "int iterations = 1; double damp = 0;"}}
        for name, how in cases.items():
            run([abi, "save", folder / "kept" / name, *make_library(folder / name, compiler, **how)])
        # The status of each comparison with the first, and words of it.
        wanted = {"same": (0, "find all their names"), "without": (1, "gridlops::stop()"), "grown": (1, "type size changed")}
        if not shutil.which("abidiff"):
            print("types were not compared: abidiff is not installed")
            wanted["grown"] = (0, "look at gridlops/solve/solver.hpp")
        for name, (status, words) in wanted.items():
            result = subprocess.run([abi, "compare", folder / "kept/first", folder / "kept" / name], capture_output=True, text=True, check=False)
            if result.returncode != status or words not in result.stdout:
                sys.exit(f"{name}: status {result.returncode}, not {status} with “{words}”:\n{result.stdout}{result.stderr}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    root = Path(sys.argv[1]).resolve()
    check_versions(root)
    check_refusals(root)
    check_sbom(root, Path(sys.argv[2]))
    check_abi(root, sys.argv[3:])
    print("the version is one, the bill complete, and changes of the interface are found")
