# SPDX-License-Identifier: BSD-3-Clause
"""Runs every block of code of the pages about Python, each as a program of its own."""
import importlib.util
import pathlib
import re

import pytest
from ranks import COMM

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page, least", [("python.md", 5), ("ridge.md", 2)])
def test_the_page(page, least):
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    for number, block in enumerate(blocks):
        if "import pylops_mpi" in block and importlib.util.find_spec("pylops_mpi") is None:
            print(f"rank {COMM.rank}: block {number} is skipped, because there is no pylops_mpi")
            continue
        # Names in a program are its own.
        exec(compile(block, f"block {number} of {page}", "exec"), {"__name__": "__main__"})  # pylint: disable=exec-used
