#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes the library as docs/using-the-library.md tells users to: by Meson, CMake and pkg-config, with the build files of the page.

ways.py SOURCE_ROOT COMPILER…: what no installation is needed for. A project with the library as a subproject is configured: it
must have no tests and no programs, and the example must compile. Other tests import this.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LONGEST = 10  # lines of a build file
BUILD_FILES = {"meson": "meson.build", "cmake": "CMakeLists.txt", "make": "Makefile"}
NEED_GPU_LIBRARY = {"multi_gpu"}


def run(command, **options):
    """The output of a command that must succeed."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(str(word) for word in command)}\nended with status {result.returncode}:\n"
                 f"{result.stdout}{result.stderr}")
    return result.stdout


def blocks(source, language):
    page = (source / "docs/using-the-library.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def build_file(source, way):
    """The text that users of this way copy."""
    found = blocks(source, way)
    if len(found) != 1 or len(found[0].splitlines()) > LONGEST:
        sys.exit(f"docs/using-the-library.md: there is not one block for {way} of at most {LONGEST} lines: {found}")
    return found[0]


def examples(source):
    return sorted((source / "docs/examples").glob("*.cpp"))


def make_project(folder, source, way, example):
    """A user's project: the example under the name that the page has, and the page's build file."""
    folder.mkdir(parents=True)
    shutil.copy(example, folder / "mine.cpp")
    text = build_file(source, way)
    if example.stem in NEED_GPU_LIBRARY:
        text = re.sub(r"(?<=dependency\(')gridlops|(?<=::)gridlops|gridlops(?=\))(?=.*-o)", "gridlops_gpu", text)
    (folder / BUILD_FILES[way]).write_text(text, encoding="utf-8")
    return folder


def set_up_subproject(folder, source, compiler, options=()):
    """The build folder of a user's project that has the library as a subproject."""
    (folder / "subprojects").mkdir()
    (folder / "subprojects/gridlops").symlink_to(source)
    run(["meson", "setup", folder / "build", folder, "--force-fallback-for=gridlops,gridlops_gpu", *options],
        env=dict(os.environ, CXX=shlex.join(compiler)))
    return folder / "build"


def check_targets(build):
    """Nothing but the two libraries, and what they consist of, comes along."""
    targets = json.loads(run(["meson", "introspect", "--targets", build]))
    programs = [target["name"] for target in targets if target["type"] == "executable"]
    libraries = {target["name"] for target in targets if target["type"] == "shared library"}
    tests = json.loads(run(["meson", "introspect", "--tests", build]))
    if programs != ["mine"] or libraries != {"gridlops", "gridlops_gpu"} or tests:
        sys.exit(f"a subproject brings programs {programs}, libraries {libraries}, {len(tests)} tests")


def main(source, compiler):
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_project(Path(scratch) / "mine", source, "meson", source / "docs/examples/steepest_descent.cpp")
        build = set_up_subproject(folder, source, compiler, ["--buildtype", "plain"])
        check_targets(build)
        run(["ninja", "-C", build, "mine.p/mine.cpp.o"])
        print("a subproject has the libraries alone, and a program compiles")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
