#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries what scripts/release rests on: release_test.py SOURCE_ROOT BUILD_FOLDER COMPILER…

All files that name the version name the same. scripts/sbom.py has every library of this build, and the checksum of a file.
scripts/abi.py finds a name that is gone, and a type that has grown, in libraries that are compiled here. scripts/release makes
three versions of a project as docs/releasing.md says, and refuses what would spoil them.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packages import version_of
from ways import run

# What scripts/release calls, in a project of its own: builds take libraries from here, and old wheels lie around.
STAND_INS = {
    "scripts/setup": "",
    "scripts/python": "exit 1",  # no site
    "scripts/configure": 'mkdir -p "$1/lib" "$1/meson-dist"',
    "scripts/wheel": 'mkdir -p build-packages/new build-packages/old\ntouch build-packages/old/gridlops-0.0.9-cp311.whl "build-packages/new/gridlops-$(cat version)-cp311.whl"',
    "scripts/sbom.py": "echo {}",
    "bin/meson": 'echo sources >"$3/meson-dist/gridlops-$(cat version).tar.xz"',
    "bin/ninja": 'for library in lib/libgridlops lib/libgridlops_gpu; do cp libgridlops.so "$2/$library.so.$(cat version)"; done',
}

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


class Project:
    """A project whose versions scripts/release makes."""

    def __init__(self, folder, source, compiler):
        self.folder, self.compiler = folder, compiler
        self.env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        self.releases = folder / "build-releases"
        for name in ("scripts", "bin"):
            (folder / name).mkdir(parents=True)
        for name, commands in STAND_INS.items():
            (folder / name).write_text(f"#!/bin/sh\nset -eu\n{commands}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
        for name in ("release", "abi.py"):
            shutil.copy(source / "scripts" / name, folder / "scripts")
        (folder / ".gitignore").write_text("/build*/\n__pycache__/\n", encoding="utf-8")
        self.git("init", "-q")

    def git(self, *words):
        run(["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false", *words], cwd=self.folder)

    def write(self, version, date, **how):
        """Commits this version, whose library is made as make_library() says."""
        with tempfile.TemporaryDirectory() as scratch:
            include, library = make_library(Path(scratch), self.compiler, **how)
            shutil.rmtree(self.folder / "include", ignore_errors=True)
            shutil.copytree(include, self.folder / "include")
            shutil.copy(library, self.folder)
        (self.folder / "version").write_text(version, encoding="utf-8")
        (self.folder / "meson.build").write_text(f"project('gridlops', version: '{version}')\n", encoding="utf-8")
        (self.folder / "CHANGELOG.md").write_text(f"## [Unreleased]\n\n## [{version}] – {date}\n", encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", version)

    def release(self, *words, status=0, says=""):
        result = subprocess.run([self.folder / "scripts/release", *words], env=self.env, capture_output=True, text=True, check=False)
        text = result.stdout + result.stderr
        if result.returncode != status or says not in text:
            sys.exit(f"scripts/release {words}: status {result.returncode}, not {status} with “{says}”:\n{text}")

    def check_files(self, version, *wanted):
        folder = self.releases / version
        found = sorted(path.name for path in folder.iterdir())
        if found != sorted([*wanted, f"gridlops-{version.removesuffix('-try')}.tar.xz", "SHA256SUMS", "abi.tar.xz", "sbom.spdx.json"]):
            sys.exit(f"build-releases/{version} has {found}")
        if len(run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder).splitlines()) != len(found) - 1:
            sys.exit(f"SHA256SUMS of {version} does not have all of {found}")


def check_release(source, compiler):
    with tempfile.TemporaryDirectory() as scratch:
        project = Project(Path(scratch) / "project", source, compiler)
        first, wheel = project.releases / "0.1.0/abi.tar.xz", "gridlops-{}-cp311.whl"

        project.write("0.1.0", "unreleased")
        project.release(status=1, says="has no date")
        project.release("--try")
        project.check_files("0.1.0-try")
        project.write("0.1.0", "2026-01-02")
        (project.folder / "new").touch()
        project.release(status=1, says="not committed")
        (project.folder / "new").unlink()
        project.release()
        project.release()  # until it is tagged
        project.git("tag", "v0.1.0")
        kept = first.stat().st_mtime_ns
        project.release(status=1, says="v0.1.0 is tagged")
        project.release("--try")
        project.release("--try", "--against", first, says="find all their names")
        for spoilt in (project.folder / "no.tar.xz", project.releases / "0.1.0/gridlops-0.1.0.tar.xz"):
            project.release("--try", "--against", spoilt, status=1, says="cannot be unpacked")
        project.release("--try", "--against", project.releases / "0.1.0-try/abi.tar.xz", status=1, says="is of this release")
        project.check_files("0.1.0", wheel.format("0.1.0"))
        if first.stat().st_mtime_ns != kept:
            sys.exit("the files of a version that is tagged were replaced")
        project.write("0.1.0", "2026-01-03")
        project.release(status=1, says="the tag v0.1.0 is on another commit")

        # A patch version must serve programs of the first, a minor version need not.
        project.write("0.1.1", "2026-02-03", more=False)
        project.release("--against", first, status=1, says="programs of 0.1.0 may not run with 0.1.1")
        project.write("0.1.1", "2026-02-03", inside=NO_LAMBDA)
        project.release("--against", first, says="programs of abi-0.1.0 find all their names in abi-0.1.1")
        project.check_files("0.1.1", wheel.format("0.1.1"))
        project.write("0.2.0", "2026-03-04", more=False)
        project.release("--against", project.releases / "0.1.1/abi.tar.xz", says="0.2.0 has another soname than 0.1.1")
        project.check_files("0.2.0", wheel.format("0.2.0"))
        run(["tar", "-cJf", project.releases / "other.tar.xz", "version"], cwd=project.folder)
        project.release("--against", project.releases / "other.tar.xz", status=1, says="has no abi-VERSION/abi.json")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    root = Path(sys.argv[1]).resolve()
    check_versions(root)
    check_sbom(root, Path(sys.argv[2]))
    check_abi(root, sys.argv[3:])
    check_release(root, sys.argv[3:])
    print("the version is one, the bill complete, changes of the interface are found, and releases are kept")
