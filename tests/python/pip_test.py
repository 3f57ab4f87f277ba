#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs the package by pip from a copy of the sources, and runs the examples of docs/python.md on it: pip_test.py SOURCE_ROOT.

Nothing is fetched. Ends with 77 where pip, or what builds the package, is missing."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

#: The library need not be fast here, and is compiled for some minutes.
BUILD_OPTION = "setup-args=-Doptimization=0"


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode != 0:
        print(result.stdout[-20000:])
        sys.exit(f"{command} ended with {result.returncode}")
    return result.stdout


def check_what_was_installed(installed, source, version):
    """The package with its module, what pip says of it, and nothing else: no headers, libraries or programs."""
    metadata = f"gridlops-{version}.dist-info"
    assert sorted(path.name for path in installed.iterdir()) == ["gridlops", metadata], list(installed.iterdir())
    expected = {path.name for path in (source / "apps/python/gridlops").iterdir() if path.suffix in (".py", ".pyi", ".typed")}
    found = {path.name for path in (installed / "gridlops").iterdir()} - {"__pycache__"}
    more = sorted(found - expected)
    assert len(more) == 1 and more[0].startswith("_native.") and expected <= found, found ^ expected
    assert "\nRequires-Dist: mpi4py" in (installed / metadata / "METADATA").read_text(encoding="utf-8")


def main(source):
    source = pathlib.Path(source)
    for module in ("pip", "mesonpy", "numpy", "mpi4py"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}")
            return 77
    if shutil.which("pkg-config") is None or subprocess.run(["pkg-config", "--exists", "pybind11"], check=False).returncode != 0:
        print("skipped: pybind11 is not installed")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        # meson-python writes to the sources. Debian's builds twice unless it has a folder to build in.
        shutil.copytree(source, folder / "copy", ignore=shutil.ignore_patterns(".git", "build*", "demo", ".mesonpy*"))
        (folder / "build").mkdir()
        run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--target", folder / "installed",
             "--config-settings", f"builddir={folder / 'build'}", "--config-settings", BUILD_OPTION, folder / "copy"])
        project = json.loads((folder / "build/meson-info/intro-projectinfo.json").read_text(encoding="utf-8"))
        check_what_was_installed(folder / "installed", folder / "copy", project["version"])
        for ranks in ("1", "2"):
            # Not in the source folder, and with nothing else to find the package by.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            run([sys.executable, source / "tests/python/support/run.py", folder / "installed", ranks, source / "tests/python/page_test.py"],
                env=environment, cwd=folder)
    return 0


sys.exit(main(*sys.argv[1:]))
