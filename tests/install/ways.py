#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes the library as docs/using-the-library.md tells users to: by Meson, CMake and pkg-config, with the build files of the page.

ways.py SOURCE_ROOT COMPILER…: what needs no installed library. A project with the library as a subproject is configured; it
must have no tests and no programs of the library, and the example must compile. Other tests import this.
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
BUILD_FILES = {"meson": "meson.build", "cmake": "CMakeLists.txt", "sh": "build.sh"}
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
    """The text that users of this way copy: of the two blocks for a shell the first installs the library."""
    found = blocks(source, way)
    if len(found) != (2 if way == "sh" else 1) or len(found[-1].splitlines()) > LONGEST:
        sys.exit(f"docs/using-the-library.md: there is not one block for {way} of at most {LONGEST} lines: {found}")
    return found[-1]


def examples(source):
    return sorted((source / "docs/examples").glob("*.cpp"))


def write_project(folder, source, way, example):
    """A user's project: the example under the name that the page has, and the page's build file."""
    shutil.copy(example, folder / "mine.cpp")
    text = build_file(source, way)
    if example.stem in NEED_GPU_LIBRARY:
        text = re.sub(r"(?<=dependency\(')gridlops|(?<=::)gridlops|(?<=--libs )gridlops", "gridlops_gpu", text)
    (folder / BUILD_FILES[way]).write_text(text, encoding="utf-8")


def build_with_pkg_config(folder, environment):
    """Builds a project, and returns its program; so do the others."""
    run(["sh", "-e", BUILD_FILES["sh"]], cwd=folder, env=environment)
    return folder / "mine"


def build_with_cmake(folder, environment):
    run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build"], env=environment)
    run(["cmake", "--build", folder / "build"], env=environment)
    return folder / "build/mine"


def set_up_subproject(folder, source, environment, *options):
    """Makes the build folder of a project that has the library as a subproject."""
    (folder / "subprojects").mkdir(parents=True)
    (folder / "subprojects/gridlops").symlink_to(source)
    write_project(folder, source, "meson", examples(source)[0])
    run(["meson", "setup", folder / "build", folder, "--force-fallback-for=gridlops,gridlops_gpu", *options], env=environment)


def build_with_meson(folder, environment):
    run(["ninja", "-C", folder / "build", "mine"], env=environment)
    return folder / "build/mine"


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
        folder = Path(scratch)
        environment = dict(os.environ, CXX=shlex.join(compiler))
        set_up_subproject(folder, source, environment, "--buildtype", "plain")
        check_targets(folder / "build")
        run(["ninja", "-C", folder / "build", "mine.p/mine.cpp.o"])
        print("a subproject has the libraries alone, and a program compiles")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
