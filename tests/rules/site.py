#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The site of scripts/docs is built without a warning; a link to no page, heading or picture is one.

It is checked with the Doxygen that the site is made for; another has other warnings.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import rule

HERE = Path(__file__).resolve().parents[2]
DOXYGEN = "1.9.4"  # Debian 12's


def missing():
    """What is not here, or nothing."""
    found = subprocess.run([HERE / "scripts/python", "sphinx", "myst_parser", "furo", "numpy"], capture_output=True, text=True, check=False)
    if found.returncode or not Path("/usr/share/doxygen-awesome-css").exists() or not shutil.which("doxygen"):
        return found.stderr.strip() or "no doxygen with doxygen-awesome-css"
    version = subprocess.run(["doxygen", "--version"], capture_output=True, text=True, check=True).stdout
    return "" if version.split()[0] == DOXYGEN else f"not doxygen {DOXYGEN}, but {version.strip()}"


def check(root):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["bash", root / "scripts/docs", folder], capture_output=True, text=True, check=False)
        failures = done.stderr.splitlines()
        start = "".join(path.read_text(encoding="utf-8") for path in Path(folder).glob("*/index.html"))
    if "‖" not in start:
        failures.append("index.html: the formulas of README.md are not there")
    return failures or (["scripts/docs failed"] if done.returncode else [])


OWN = ["scripts/docs", "scripts/python", "docs/site/conf.py", "docs/site/comments.py", "docs/site/Doxyfile", "docs/site/layout.xml",
       "docs/site/cpp-api.rst", "docs/site/style.css", "docs/site/templates/version.html"]
GOOD = {
    "README.md": "# `A`\n\n‖x‖ in [B `code`](docs/b.md#a-heading) with `f()`, [source](include/gridlops/a.hpp), [all](docs) #7 @home\n",
    "docs/b.md": "# B\n\n## A heading\n\n| a |\n|---|\n| `'[#tag]'` |\n\n![picture](pictures/c.svg)\n\n```cpp\na<T>(); /* # */\n```\n",
    "docs/pictures/c.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "docs/site/tree.md": "\n```{toctree}\n:glob:\n\ndocs/*\ndocs/site/*\n```\n",
    "include/gridlops/a.hpp": "namespace gridlops {\n/// ‖x‖ of each.\nint f(int x);\nint g(int x);\n}  // namespace gridlops\n",
    "apps/python/gridlops/__init__.py": '"""A."""\n',
    "apps/python/gridlops/_native.pyi": "version: str\n",
    "meson.build": "project('a', version: '0.1')\n",
    **{name: (HERE / name).read_text(encoding="utf-8") for name in OWN},
}
BAD = {
    "docs/d.md": "# D\n\n[b](b.md#none)\n\n[b](none.txt)\n\n![b](none.png)\n",
    "docs/site/lost.rst": "Lost\n====\n\n.. autofunction:: gridlops.none\n",
    "include/gridlops/b.hpp": "/// Calls function.operator()<T>() once.\nvoid h();\n/// As #nothing.\nvoid i();\n",
}
PLANTS = [("faults of each kind", BAD, ("b.md#none", "none.txt", "none.png", "function 'none'", "b.hpp:1: ", "'nothing'"))]


if __name__ == "__main__":
    if missing():
        print(f"{missing()}; scripts/setup docs installs what this needs on Debian 12")
        sys.exit(rule.SKIPPED)
    rule.run(check, GOOD, PLANTS)
