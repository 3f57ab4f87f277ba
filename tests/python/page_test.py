# SPDX-License-Identifier: BSD-3-Clause
"""Runs every block of code of docs/python.md, each as a program of its own."""
import importlib.util
import pathlib
import re

from ranks import COMM

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


def test_the_page():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    for number, block in enumerate(blocks):
        if "import pylops_mpi" in block and importlib.util.find_spec("pylops_mpi") is None:
            print(f"rank {COMM.rank}: block {number} is skipped, because there is no pylops_mpi")
            continue
        # Names in a program are its own.
        exec(compile(block, f"block {number} of {PAGE.name}", "exec"), {"__name__": "__main__"})  # pylint: disable=exec-used
