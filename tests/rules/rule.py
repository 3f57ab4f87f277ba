# SPDX-License-Identifier: BSD-3-Clause
"""What the rules of this folder share: which files the project has, and how a rule is run and tested.

A rule is a function from the source root to a list of failures, each one line: path, and what is wrong. It comes with a
small tree that obeys it, and violations to plant there, so that `--self-test` proves that it can fail.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77  # the exit status by which Meson knows a skipped test
_NOT_OURS = re.compile(r"(^|/)(\.git|\.cache|__pycache__|build[^/]*|demo)(/|$)")


def project_files(root):
    """All files of the project, relative to root: what git tracks or would track, or everything where git is not."""
    root = Path(root)
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", "safe.directory=*", "-C", str(root)]
        command += ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, capture_output=True, check=False)
        if listing.returncode == 0:
            names = listing.stdout.decode().split("\0")
            return sorted(Path(name) for name in set(names) if name and (root / name).is_file())
    return sorted(Path(folder, name).relative_to(root) for folder, _, names in os.walk(root) for name in names
                  if not _NOT_OURS.search(Path(folder).relative_to(root).as_posix()))


def read(root, path):
    """The text of a file; empty for one that is not text."""
    data = (Path(root) / path).read_bytes()
    try:
        return "" if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def is_cpp(path):
    return path.name.endswith((".cpp", ".hpp", ".cu", ".hpp.in"))


def is_shell_script(root, path):
    return bool(re.match(r"#!.*\b(ba)?sh\b", read(root, path)))


def includes(text):
    """(line number, included name) of every #include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match[1]


def _write_tree(root, files):
    for name, text in files.items():
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _self_test(check, good, plants):
    problems = []
    for what, files, expected in [("a tree that obeys", {}, None), *plants]:
        with tempfile.TemporaryDirectory() as root:
            _write_tree(root, {**good, **files})
            failures = check(Path(root))
        if expected is None:
            problems += [f"{what}: unexpected failure: {failure}" for failure in failures]
        else:
            problems += [f"{what}: no failure says {piece!r}; found {failures}"
                         for piece in ([expected] if isinstance(expected, str) else expected)
                         if not any(piece in failure for failure in failures)]
    return problems


def run(check, good, plants):
    """The main program of a rule. plants: (what is planted, files, a piece of the failure that must be reported, or several)."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE_ROOT | --self-test")
    if sys.argv[1] == "--self-test":
        failures = _self_test(check, good, plants)
        done = f"{len(plants)} planted violations were found"
    else:
        failures = check(Path(sys.argv[1]))
        done = "nothing to report"
    print("\n".join(failures) if failures else done)
    sys.exit(1 if failures else 0)
