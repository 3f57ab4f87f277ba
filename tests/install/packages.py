#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the recipes in scripts/packages: packages.py SOURCE_ROOT [--build]

Spack's are run by stand-ins for its words, with every variant on and off: options that they give to Meson must exist, as must
those of conda's recipe, which must have this project's version and licence. Debian's must have this version, too, and the
shared library's number. What images copy and run must be there. --build makes Debian's packages, which lintian must accept;
status 77 where debhelper or lintian are missing.
"""
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from ways import run


class Spec:
    """A stand-in for what Spack was asked to build: the variants that are on, and any package it is asked for."""
    mpicxx = "/mpi/bin/mpicxx"
    prefix = "/prefix"
    variants = {"cuda_arch": types.SimpleNamespace(value=("80", "90"))}

    def __init__(self, variants):
        self.on = variants

    def __getitem__(self, _name):
        return self

    def satisfies(self, what):
        return what in self.on


def recipe_of(path, known):
    """The class of a recipe, and the names of its variants."""
    variants = []
    words = {name: lambda *_args, **_others: None for name in ("license", "version", "depends_on", "conflicts")}
    words["variant"] = lambda name, **_others: variants.append(name)
    base = type("Package", (), {"define": staticmethod(lambda name, value: f"-D{name}:={value}")})
    package = types.ModuleType("spack.package")
    package.__dict__.update(words, MesonPackage=base, CMakePackage=base)
    package.__all__ = [*words, "MesonPackage", "CMakePackage"]
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})
    scope = {"__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)  # pylint: disable=exec-used
    classes = [value for name, value in scope.items() if isinstance(value, type) and issubclass(value, base) and name not in known]
    return classes[0], variants


def options_of(source):
    """What Meson may be given by -D."""
    return {"default_library", *re.findall(r"^option\('(\w+)'", (source / "meson_options.txt").read_text(encoding="utf-8"), re.MULTILINE)}


def version_of(source):
    return re.search(r"version: '([\d.]+)'", (source / "meson.build").read_text(encoding="utf-8"))[1]


def check_spack(source):
    """What is wrong with the options that the recipes give."""
    options = options_of(source)
    folder = source / "scripts/packages/spack/packages"
    gridlops, variants = recipe_of(folder / "gridlops/package.py", {"MesonPackage", "CMakePackage"})
    failures = []
    switches = [f"+{name}" for name in variants if name != "cuda_arch"] + ["^[virtuals=mpi] mpich"]
    for on in itertools.product((True, False), repeat=len(switches)):
        recipe = gridlops()
        recipe.spec = Spec({switch for switch, is_on in zip(switches, on) if is_on})
        for argument in recipe.meson_args():
            match = re.fullmatch(r"-D(\w+)=(\S+)", argument)
            if match is None or match[1] not in options:
                failures.append(f"Spack: {argument} is no option of meson_options.txt")
    if gridlops.git != source.as_uri():
        failures.append(f"Spack: the sources are to come from {gridlops.git}, not from {source}")
    kissfft, _ = recipe_of(folder / "kissfft/package.py", {"MesonPackage", "CMakePackage"})
    if not kissfft().cmake_args():
        failures.append("Spack: kissfft has no options")
    return failures


def check_debian(source):
    version = version_of(source)
    folder = source / "scripts/packages/debian"
    named = re.match(r"gridlops \(([\d.]+)\) ", (folder / "changelog").read_text(encoding="utf-8"))
    failures = [] if named and named[1] == version else [f"Debian: the changelog does not begin with gridlops ({version})"]
    number = ".".join(version.split(".")[:2]) if version.startswith("0.") else version.split(".")[0]
    control = (folder / "control").read_text(encoding="utf-8")
    if f"Package: libgridlops{number}\n" not in control or not (folder / f"libgridlops{number}.install").exists():
        failures.append(f"Debian: no package libgridlops{number}, which is the shared library's number")
    if shutil.which("dpkg-parsechangelog"):
        run(["dpkg-parsechangelog", "-l", folder / "changelog"])
    return failures


def check_conda(source):
    recipe = (source / "scripts/packages/conda/gridlops/recipe.yaml").read_text(encoding="utf-8")
    failures = [f"conda: -D{name} is no option of meson_options.txt" for name in re.findall(r"-D(\w+)=", recipe) if name not in options_of(source)]
    if f"\n  version: {version_of(source)}\n" not in recipe:
        failures.append(f"conda: the version is not {version_of(source)}")
    if (source / "scripts/packages/conda/gridlops" / re.search(r"path: (\S+)", recipe)[1]).resolve() != source:
        failures.append("conda: the path of the sources does not lead here")
    return failures


def check_images(source):
    """What is wrong with the files that images copy, and the steps that they run."""
    folder = source / "scripts/packages/container"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in ("Dockerfile", "gridlops.def")}
    copied = {"Dockerfile": {name for line in re.findall(r"^COPY (.*)$", texts["Dockerfile"], re.MULTILINE) for name in line.split()[:-1]},
              "gridlops.def": set(re.findall(r"^    (\S+) /src/\S+$", texts["gridlops.def"], re.MULTILINE))}
    failures = [f"{image}: {name} is not there" for image, names in copied.items() for name in names if not (source / name).exists()]
    if copied["Dockerfile"] != copied["gridlops.def"]:
        failures.append(f"images: one of Dockerfile and gridlops.def alone copies {sorted(copied['Dockerfile'] ^ copied['gridlops.def'])}")
    for image, text in texts.items():
        failures += [f"{image}: does not run {step.name}" for step in folder.iterdir()
                     if step.name not in texts and not re.search(rf"/{step.name}\b", text)]
    return failures


def build_debian(source):
    """Makes the packages of a copy of the sources, and asks lintian about them."""
    for tool in ("dpkg-buildpackage", "dh", "lintian"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            return 77
    if not (source / ".git").exists():
        print("skipped: the sources are no checkout of git")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "gridlops"
        files = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
        for name in filter(None, files.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, copy / name)
        shutil.copytree(copy / "scripts/packages/debian", copy / "debian")
        run(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=copy)
        changes = next(Path(scratch).glob("*.changes"))
        print(run(["lintian", "--allow-root", "--fail-on", "error,warning", changes]))
        print("\n".join(path.name for path in Path(scratch).glob("*.deb")))
    return 0


def main(source, build):
    failures = check_spack(source) + check_debian(source) + check_conda(source) + check_images(source)
    print("\n".join(failures) or "the recipes fit the project")
    if failures:
        return 1
    return build_debian(source) if build else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), "--build" in sys.argv))
