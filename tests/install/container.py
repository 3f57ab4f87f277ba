#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Carries out the steps of scripts/packages/container on new machines with Debian 13, as an image would: container.py SOURCE_ROOT

One machine makes Debian's packages, another has nothing but them. Ends with 77 where scripts/fresh_debian cannot make machines.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = "scripts/packages/container"
RELEASE = "trixie"


def main(source):
    if not (source / ".git").exists():
        print("skipped: the sources are no checkout of git")
        return 77

    def status_of(*words):
        return subprocess.run([source / "scripts/fresh_debian", "--release", RELEASE, *words], check=False).returncode

    # The library need not be fast here, and is compiled for some minutes.
    status = status_of(f"DEB_CXXFLAGS_APPEND=-O0 {STEPS}/build build-packages")
    if status:
        return status
    with tempfile.TemporaryDirectory() as scratch:
        packages = Path(scratch) / "packages"
        packages.mkdir()
        for package in (source / "build-fresh" / RELEASE).glob("*.deb"):
            shutil.copy(package, packages)
        return status_of("--with", packages, f"{STEPS}/install packages", f"chmod -R a+rX . && su gridlops -c {STEPS}/check", "du -xsh /usr")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
