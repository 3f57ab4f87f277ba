#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that scripts/fresh_debian says what it did, or why it could not, and leaves nothing behind: fresh.py SOURCE_ROOT

Stand-ins replace whatever would touch the machine: user, mounts, packages, the chroot. A chroot is then a folder, and its
commands run in the clone there.
"""
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RELEASE = platform.freedesktop_os_release().get("VERSION_CODENAME")
# What each program of that name does.
STAND_INS = {
    "id": "echo 0",
    "unshare": 'while [ "$#" -gt 0 ]; do case $1 in --propagation) shift 2 ;; -*) shift ;; *) break ;; esac; done; exec "$@"',
    "apt-get": 'case $1 in indextargets)'
               ' . /etc/os-release; echo "$VERSION_CODENAME main http://nowhere/"; echo "other main http://x/" ;; esac',
    "debootstrap": 'mkdir -p "$4/proc" "$4/etc" "$4/srv"',
    "mount": "exit 0",
    "umount": "exit 0",
    "chroot": 'root=$1; shift; [ "$#" -gt 1 ] || exit 0; for last; do :; done;'
              ' cd "$root/srv/gridlops" && exec sh -c "${last#cd /srv/gridlops && }"',
}

# (what, stand-ins that differ, words of the command line, status, words of the output, the log's names and results)
GOOD, BAD = "sh good", "sh bad"
OTHER = ["--release", "other"]
# Which suites are sources, and where: the system's, which this machine may have in several files, or the mirror alone.
SOURCES = "grep -rhoE '(Suites: |[a-z]+://[^ ]+ )other' ../../etc/apt/sources.list*"
UPDATE_FAILS = STAND_INS["apt-get"].replace(" esac", " update) exit 100 ;; esac")
CASES = [
    ("all goes well", {}, [GOOD, "sh more"], 0, ["good is done", "more is done", "making the chroot", "sh good: OK"],
     [(GOOD, "OK"), ("sh more", "OK")]),
    ("the first command fails", {}, [BAD, GOOD], 1, ["sh bad: FAIL; bad fails"], [(BAD, "FAIL")]),
    ("not root", {"id": "echo 1000"}, [GOOD], 77, ["skipped", "only root"], [(GOOD, "SKIP")]),
    ("no mounts", {"unshare": "exit 1"}, [GOOD], 77, ["skipped", "mounts are not allowed"], [(GOOD, "SKIP")]),
    ("a mount that fails", {"mount": "echo mount: denied; exit 1"}, [GOOD], 77, ["skipped", "mount: denied"], [(GOOD, "SKIP")]),
    ("no network", {"debootstrap": "echo E: no mirror; exit 1"}, [GOOD], 77, ["skipped", "E: no mirror"], [(GOOD, "SKIP")]),
    ("no sources", {"apt-get": "exit 0"}, [GOOD], 77, ["skipped", "apt has no source"], [(GOOD, "SKIP")]),
    ("another release", {}, [*OTHER, GOOD, SOURCES], 0, ["fresh other: sh good", " other"], [(GOOD, "OK"), (SOURCES, "OK")]),
    ("another release, of which the mirror has one suite", {"apt-get": UPDATE_FAILS}, [*OTHER, GOOD, SOURCES], 0, ["http://nowhere/ other"],
     [(GOOD, "OK"), (SOURCES, "OK")]),
    ("a file that git does not know", {}, ["--with", "new", "sh new"], 0, ["new is done"], [("sh new", "OK")]),
    ("no other release", {"debootstrap": "exit 1"}, [*OTHER, GOOD], 77, ["no fresh other"], [(GOOD, "SKIP")]),
    ("a release without commands", {}, OTHER, 2, ["usage"], []),
]


def make_project(folder, source):
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(source / "scripts/fresh_debian", folder / "scripts")
    (folder / "good").write_text("mkdir -p demo build-packages; echo picture >demo/demo.png; echo wheel >build-packages/a.whl; echo good is done\n",
                                 encoding="utf-8")
    (folder / "more").write_text("echo more is done\n", encoding="utf-8")
    (folder / "bad").write_text("echo bad fails; exit 3\n", encoding="utf-8")
    git = ["git", "-C", folder, "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "All"]):
        subprocess.run([*git, *words], check=True)
    (folder / "good").write_text("echo what is not committed does not count; exit 1\n", encoding="utf-8")
    (folder / "new").write_text("echo new is done\n", encoding="utf-8")


def check(source, stand_ins, commands):
    """The run, the log, whether the picture and the wheel came, and what was left."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        make_project(scratch / "project", source)
        for folder in ("bin", "tmp"):
            (scratch / folder).mkdir()
        for name, text in {**STAND_INS, **stand_ins}.items():
            (scratch / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (scratch / "bin" / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}", "TMPDIR": str(scratch / "tmp")}
        environment.pop("FRESH_DEBIAN_MOUNTS", None)
        run = subprocess.run([scratch / "project/scripts/fresh_debian", *commands], env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        out = scratch / "project/build-fresh" / (OTHER[1] if commands[0] == OTHER[0] else RELEASE)
        kept = out / "meson-logs/testlog.json"
        log = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
        has_results = (out / "demo.png").exists() and (out / "a.whl").exists()
        return run, log, has_results, sorted(path.name for path in (scratch / "tmp").iterdir())


def main(source):
    if not RELEASE:
        print("skipped: this is no Debian")
        return 77
    failures = 0
    for what, stand_ins, commands, status, words, results in CASES:
        run, log, has_results, left = check(source, stand_ins, commands)
        found = [(entry["name"].split(" on a fresh")[0], entry["result"]) for entry in log]
        missing = [word for word in words if word not in run.stdout]
        if run.returncode != status or missing or found != results or left or has_results != ((GOOD, "OK") in results):
            failures += 1
            print(f"FAILED: {what}: status {run.returncode}, without {missing}, log {found}, results {has_results},"
                  f" left {left}:\n{run.stdout}")
    print(f"{len(CASES)} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
