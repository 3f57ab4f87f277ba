#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes the library from nothing, in every way that docs/using-the-library.md names: all_ways.py SOURCE_ROOT [FOLDER]

Runs the page's commands that install the library. With FOLDER they build and install it there, for hosts alone, and without
what needs root. Then each example of docs/examples is built with the page's build file for Meson, CMake and pkg-config, and
solves its problem on two ranks. The last one is built with a static library, too.
"""
import os
import sys
import tempfile
from pathlib import Path

import ways


def install(source, folder, *options):
    """Runs the page's commands. Returns the environment that the page asks for where the library is in a folder of its own."""
    commands = ways.blocks(source, "sh")[0]
    if folder is None:
        ways.run(["sh", "-ec", commands], cwd=source)
        return dict(os.environ)
    build, prefix = folder / "build", folder / "installed"
    commands = commands.replace("setup build", f"setup {build} --prefix {prefix} -Dgpu=disabled {' '.join(options)}").replace("-C build", f"-C {build}")
    for command in commands.splitlines():
        if not command.startswith(("scripts/setup", "ldconfig")):
            ways.run(["sh", "-c", command], cwd=source)
    library = next(prefix.rglob("libgridlops.*")).parent
    return dict(os.environ, CMAKE_PREFIX_PATH=str(prefix), PKG_CONFIG_PATH=str(library / "pkgconfig"), LD_LIBRARY_PATH=str(library))


def main(source, folder):
    environment = install(source, folder)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        builds = {"sh": ways.build_with_pkg_config, "cmake": ways.build_with_cmake, "meson": ways.build_with_meson}
        for way in ("sh", "cmake"):
            (scratch / way).mkdir()
        ways.set_up_subproject(scratch / "meson", source, environment)
        for example in ways.examples(source):
            for way, build in builds.items():
                ways.write_project(scratch / way, source, way, example)
                program = build(scratch / way, environment)
                ways.run([source / "tests/support/launch", "2", program], env=environment)
                print(f"{example.stem} by {ways.BUILD_FILES[way]}: solved", flush=True)
        # A static library brings what it was made with.
        environment = install(source, scratch / "static", "-Ddefault_library=static")
        for way in ("sh", "cmake"):
            project = scratch / f"static-{way}"
            project.mkdir()
            ways.write_project(project, source, way, example)
            program = builds[way](project, environment)
            ways.run([source / "tests/support/launch", "2", program], env=environment)
            print(f"{example.stem} by {ways.BUILD_FILES[way]}, static: solved", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else None)
