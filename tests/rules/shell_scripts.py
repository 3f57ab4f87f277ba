#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shell scripts parse, may be executed, stop at errors, and shellcheck has nothing to say.

Where there is no shellcheck the rest is checked, and the test counts as skipped.
"""
import os
import shutil
import subprocess
import sys

import rule


def check(root):
    failures = []
    for path in rule.project_files(root):
        if not rule.is_shell_script(root, path):
            continue
        text = rule.read(root, path)
        shell = "bash" if "bash" in text.splitlines()[0] else "sh"
        commands = [[shell, "-n", str(root / path)]]
        if shutil.which("shellcheck"):
            commands.append(["shellcheck", "--format=gcc", str(root / path)])
        for command in commands:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                failures += [f"{path}: {line}" for line in (result.stdout + result.stderr).splitlines()]
        if "\nset -eu" not in text:
            failures.append(f"{path}: does not stop at errors; begin with set -euo pipefail, or set -eu in sh")
        if not os.access(root / path, os.X_OK) and (root / ".git").exists():
            failures.append(f"{path}: is not executable")
    return failures


GOOD = {"scripts/a": "#!/usr/bin/env bash\nset -euo pipefail\necho ready\n", "README.md": "not a script\n"}
PLANTS = [
    ("a script that does not parse", {"scripts/a": "#!/bin/sh\nset -eu\nif true; then\n"}, "scripts/a: "),
    ("a script that goes on after errors", {"scripts/b": "#!/bin/bash\necho ready\n"}, "does not stop at errors"),
]
if shutil.which("shellcheck"):
    PLANTS.append(("an unquoted variable", {"scripts/c": "#!/bin/sh\nset -eu\nrm $1\n"}, "SC2086"))

if __name__ == "__main__":
    try:
        rule.run(check, GOOD, PLANTS)
    except SystemExit as end:
        if end.code == 0 and not shutil.which("shellcheck"):
            print("there is no shellcheck here")
            sys.exit(rule.SKIPPED)
        raise
