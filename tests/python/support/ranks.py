# SPDX-License-Identifier: BSD-3-Clause
"""What tests of the Python package share, and a plug-in of pytest, which every rank runs: they begin each test together."""
import functools
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import pytest
from mpi4py import MPI

try:
    import gridlops as gl
except ImportError as error:
    if "mpi4py uses" not in str(error):
        raise
    pytest.exit(f"skipped: {error}", returncode=77)

COMM = MPI.COMM_WORLD
TYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def together():
    COMM.Barrier()


@pytest.fixture(name="folder")
def folder_of_all_ranks():
    path = pathlib.Path(COMM.bcast(tempfile.mkdtemp() if COMM.rank == 0 else None))
    yield path
    COMM.Barrier()
    if COMM.rank == 0:
        shutil.rmtree(path)


def on_root(action):
    COMM.Barrier()  # others may still read what it replaces
    if COMM.rank == 0:
        action()
    COMM.Barrier()


def end_job_on_failure(report):
    """The other ranks may wait for the one whose test failed."""
    if report.failed:
        print(f"rank {COMM.rank}: {report.nodeid}\n{report.longreprtext}", file=sys.__stderr__, flush=True)
        COMM.Abort(1)


pytest_runtest_logreport = pytest_collectreport = end_job_on_failure


def pytest_sessionfinish(session, exitstatus):
    """A file that is skipped whole has no tests, which would be an error."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped"):
        session.exitstatus = 77


@functools.cache
def grids():
    """All grids that these ranks can make, and one that leaves a rank idle."""
    shapes = [(p, COMM.size // p) for p in range(1, COMM.size + 1) if COMM.size % p == 0]
    if COMM.size > 1:
        shapes.append((COMM.size - 1, 1))
    return [gl.Grid(COMM, shape) for shape in shapes]


def integers(dtype, seed):
    """Small integers as a function of the global index: sums of their products are exact."""
    def value(i, j):
        real = (i * 7 + j * 5 + seed) % 9 - 4
        return (real + 1j * ((i * 3 + j * 2 + seed) % 7 - 3) if np.dtype(dtype).kind == "c" else real).astype(dtype)

    return value


def whole(dtype, seed, rows, cols):
    i, j = np.arange(rows)[:, None], np.arange(cols)[None, :]
    return integers(dtype, seed)(i, j)


def block_of(matrix, array):
    """The part of a whole array that this rank's block of a matrix should be."""
    return array[matrix.rows, matrix.cols]


def expect_error(kind, function, *words):
    """All members raise this type, and the text has these words."""
    try:
        function()
    except kind as error:
        for word in words:
            assert word in str(error), (word, str(error))
        return error
    raise AssertionError(f"no {kind} was raised")
