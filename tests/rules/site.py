#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The site of scripts/docs is built without a warning, and every link on it leads somewhere.

It is checked with the Doxygen that the site is made for; another has other warnings.
"""
import importlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import rule

DOXYGEN = "1.9.4"  # Debian 12's


def missing():
    """What is not here, or nothing."""
    if not Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css").exists():
        return "doxygen-awesome-css"
    if not importlib.util.find_spec("markdown_it"):
        return "markdown_it"
    if not shutil.which("doxygen"):
        return "doxygen"
    version = subprocess.run(["doxygen", "--version"], capture_output=True, text=True, check=True).stdout
    return "" if version.split()[0] == DOXYGEN else f"doxygen {DOXYGEN}, but {version.strip()}"


def check(root):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
    site = importlib.import_module("docs_site")
    with tempfile.TemporaryDirectory() as folder:
        complaints = site.build(Path(root).resolve(), Path(folder))
        start = Path(folder, "index.html").read_text(encoding="utf-8")
        if "‖" not in start:
            complaints.append("index.html: the formulas of README.md are not there")
    return complaints


GOOD = {
    "README.md": "# `A`\n\n‖x‖ in [B `code`](docs/b.md#a-heading) with `f()`, [source](include/gridlops/a.hpp) #7 @home\n",
    "docs/b.md": "# B\n\n## A heading\n\n| a |\n|---|\n| `'[#tag]'` |\n\n![picture](pictures/c.svg)\n\n```cpp\na<T>(); /* # */\n```\n",
    "docs/pictures/c.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "include/gridlops/a.hpp": "namespace gridlops {\n/// ‖x‖ of each.\nint f(int x);\nint g(int x);\n}  // namespace gridlops\n",
    "meson.build": "project('a', version: '0.1')\n",
}
PLANTS = [
    ("a link to no heading", {"docs/d.md": "# D\n\n[b](b.md#none)\n"}, "page-d.html: page-b.html#page-b--none leads nowhere"),
    ("a link to no file", {"docs/d.md": "# D\n\n[b](none.txt)\n"}, "files/docs/none.txt leads nowhere"),
    ("a picture that is not there", {"docs/d.md": "# D\n\n![b](none.png)\n"}, "files/docs/none.png leads nowhere"),
    ("a comment with a mark of HTML", {"include/gridlops/b.hpp": "/// Calls function.operator()<T>() once.\nvoid h();\n"}, "gridlops/b.hpp:1: "),
    ("a comment that refers to nothing", {"include/gridlops/b.hpp": "/// As #nothing.\nvoid h();\n"}, "'nothing'"),
]

if __name__ == "__main__":
    if missing():
        print(f"there is no {missing()} here; scripts/setup docs installs what this needs on Debian 12")
        sys.exit(rule.SKIPPED)
    rule.run(check, GOOD, PLANTS)
