#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the installed library is complete: consume.py BUILD_FOLDER SOURCE_ROOT [COMPILER…].

Installs the build into a temporary folder, checks what is there, then builds tests/install/program.cpp and gpu_program.cpp
against it with nothing but pkg-config, an example with CMake where that is installed, and runs them.
"""
import os
import re
import resource
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from ways import build_with_cmake, run, write_project

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
# What a first program includes, and how much longer the header that has all may take to compile.
FEW = ("comm/mpi", "dist/dist_matrix", "dist/redistribute", "ops/local_operator", "ops/matrix_mult", "ops/operator_algebra", "solve/solver",
       "solve/solve_observer")
MOST_TIMES = 1.5
PACKAGES = ("gridlops", "gridlops_gpu")  # each with a library of that name


def only(paths, what):
    paths = list(paths)
    if len(paths) != 1:
        sys.exit(f"installed {what}: expected one, found {paths}")
    return paths[0]


def check_headers(include, source):
    expected = {path.relative_to(source / "include").as_posix().removesuffix(".in") for path in (source / "include").rglob("*.hpp*")}
    installed = {path.relative_to(include).as_posix() for path in include.rglob("gridlops/**/*") if path.is_file()}
    if expected != installed:
        sys.exit(f"installed headers differ from include/gridlops: {sorted(expected ^ installed)}")


def check_warnings(include, flags, compilers):
    """Users who have warnings on see none of ours, whichever compiler they use, and may name the options that they set."""
    headers = "".join(f"#include <{path.relative_to(include)}>\n" for path in sorted(include.glob("gridlops/**/*.hpp")))
    named = ("SolveOptions{.tolerance = 0.1}", "SolveOptions{.lambda = 0.1}", "AdmmOptions{.tau = 2}",
             "CheckpointOptions{.every_seconds = 60}", "MatrixMultOptions{.panel = 64}")
    source = headers + "".join(f"gridlops::{options.replace('{', f' options_{number}{{')};\n" for number, options in enumerate(named))
    for compiler in compilers:
        if shutil.which(compiler[0]):
            run([*compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *flags, "-x", "c++", "-"], input=source)


def check_compile_time(flags, compiler):
    """gridlops.hpp takes little longer than few headers. Other work on the machine lengthens both, so the least of three counts."""
    def seconds(names):
        text, times = "".join(f"#include <gridlops/{name}.hpp>\n" for name in names), []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            run([*compiler, "-std=c++20", "-O2", *flags, "-x", "c++", "-c", "-", "-o", os.devnull], input=text, env=dict(os.environ, CCACHE_DISABLE="1"))
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times)

    few, everything = seconds(FEW), seconds(["gridlops"])
    print(f"{len(FEW)} headers take {few:.2f} s of a processor to compile, gridlops.hpp {everything:.2f} s")
    if everything > MOST_TIMES * few:
        sys.exit(f"gridlops.hpp takes more than {MOST_TIMES} times as long")


def check_library(library, soname):
    dynamic = run(["readelf", "-d", library])
    if f"soname: [{soname}]" not in dynamic:
        sys.exit(f"{library.name}: its soname is not {soname}:\n{dynamic}")
    if re.search(r"\(R(?:UN)?PATH\)", dynamic):
        sys.exit(f"{library.name}: still has a path into the build:\n{dynamic}")
    # Besides our own names only what every C++ library shares: weak instances of the standard library's templates. Some names that
    # GCC 14 makes nm of Debian 13 leaves as they are.
    foreign = [line for line in run(["nm", "-D", "--defined-only", "-C", library]).splitlines()
               if "gridlops::" not in line and "8gridlops" not in line and not re.match(r"[0-9a-f]* *[VWu] .*(?:std|__gnu_cxx)::", line)]
    if foreign:
        sys.exit(f"{library.name} exports names that are not ours:\n" + "\n".join(foreign))


def move_package(package, root):
    """The package is moved before it is used: all its paths must follow from the one line that says where it is."""
    text = package.read_text(encoding="utf-8")
    prefix = re.search(r"^prefix=(.*)$", text, re.MULTILINE)[1]
    package.write_text(text.replace(f"prefix={prefix}\n", f"prefix={root}{prefix}\n", 1), encoding="utf-8")


def check_requirements(name, environment):
    """Users need only what public headers include, which is MPI, and not what the library was built with."""
    asked = run(["pkg-config", "--print-requires", "--print-requires-private", name], env=environment).split()
    foreign = [word for word in asked if word != "gridlops" and not re.search(r"mpi", word)]
    if foreign:
        sys.exit(f"{name}.pc asks users for {foreign}")


def main(build, source, compiler):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root])
        check_headers(only(root.rglob("include"), "include folder"), source)
        if (Path(build) / "bench/gridlops-bench").exists():
            only(root.rglob("bin/gridlops-bench"), "gridlops-bench")
            run([only(root.rglob("bin/gridlops-scaling"), "gridlops-scaling"), "list", only(root.rglob("studies/strong.toml"), "study")])
        for name in PACKAGES:
            soname = f"lib{name}.so.0.1"
            package = only(root.rglob(f"{name}.pc"), f"{name}.pc")
            move_package(package, root)
            library = only(root.rglob(soname), soname)
            check_library(library.resolve(), soname)

        def with_path(variable, first):
            return dict(os.environ, **{variable: ":".join(filter(None, [str(first), os.environ.get(variable, "")]))})

        found = with_path("PKG_CONFIG_PATH", package.parent)
        environment = with_path("LD_LIBRARY_PATH", library.parent)
        flags = shlex.split(run(["pkg-config", "--cflags", "gridlops_gpu"], env=found))
        check_warnings(only(root.rglob("include"), "include folder"), flags, [compiler, ["clang++"]])
        check_compile_time(flags, compiler)
        for name, source_file, launch in (("gridlops", "program.cpp", [source / "tests/support/launch", "2"]),
                                          ("gridlops_gpu", "gpu_program.cpp", [])):
            check_requirements(name, found)
            flags = shlex.split(run(["pkg-config", "--cflags", "--libs", name], env=found))
            program = Path(scratch) / "program"
            run([*compiler, "-std=c++20", source / "tests/install" / source_file, *flags, "-o", program])
            print(run([*launch, program], env=environment), end="")
        if shutil.which("cmake"):
            write_project(Path(scratch), source, "cmake", source / "docs/examples/steepest_descent.cpp")
            prefix = only(root.rglob("include"), "include folder").parent
            program = build_with_cmake(Path(scratch), dict(os.environ, CXX=shlex.join(compiler), CMAKE_PREFIX_PATH=str(prefix)))
            print(run([source / "tests/support/launch", "2", program]), end="")
        else:
            print("CMake is not tested, because it is not installed")
        for tool in root.rglob("bin/gridlops"):
            print(run([tool, "--version"], env=environment), end="")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3:] or shlex.split(os.environ.get("CXX", "c++")))
