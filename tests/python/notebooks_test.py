# SPDX-License-Identifier: BSD-3-Clause
"""Every program of docs/notebooks runs on these ranks; and on one rank Jupyter executes the notebook that is made of it."""
import pathlib
import subprocess

import pytest
from ranks import COMM

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "docs/notebooks").glob("*.py"))


def text_of(program):
    text = program.read_text(encoding="utf-8")
    for module in ("matplotlib", "pylops_mpi", "segyio"):
        if module in text or module == "matplotlib":
            pytest.importorskip(module)
    return text


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_as_a_program(program, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    exec(compile(text_of(program), program.name, "exec"), {"__name__": "__main__"})  # pylint: disable=exec-used


@pytest.mark.skipif(COMM.size > 1, reason="a notebook is one process")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_as_a_notebook(program, tmp_path):
    text = text_of(program)
    subprocess.run([ROOT / "scripts/notebooks", tmp_path], check=True)
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(tmp_path / program.with_suffix(".ipynb").name, 4)
    nbformat.validate(notebook)
    assert sum(cell.cell_type == "code" for cell in notebook.cells) == text.count("# %%\n")
    nbclient.NotebookClient(notebook, timeout=120).execute()


def test_there_are_some():
    assert len(PROGRAMS) >= 5
