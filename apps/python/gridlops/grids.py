# SPDX-License-Identifier: BSD-3-Clause
"""Process grids, and how matrices lie on them."""

from __future__ import annotations

import json
from typing import Any, Callable

from mpi4py import MPI

from . import _native, errors
from .blocks import type_name
from .errors import UsageError


def with_docstrings(kind: Any, text: str, **properties: str) -> Any:
    """A class of the module in C++, which has no docstrings, with these."""
    kind.__doc__ = text
    for name, line in properties.items():
        getattr(kind, name).__doc__ = line
    return kind


Cut = with_docstrings(
    _native.Cut,
    """How one dimension is cut: ``Cut(axis, sizes)``, one size for each part; parts may be empty.

    The axis is ``"grid_rows"`` (P parts, part i on the ranks of grid row i), ``"grid_cols"`` (Q parts), ``"all"`` (one part a rank,
    in rank order), ``"all_transposed"`` (in column-major order) or ``"uncut"`` (one part, a copy on every rank).
    ``Cut.balanced(axis, total, grid.native)`` has parts whose sizes differ by at most one, larger ones first.
    """,
    axis="The name of the axis.", sizes="The sizes of all parts.", total="The sum of the sizes.")

Layout = with_docstrings(
    _native.Layout, "How a matrix lies on a grid: ``Layout(rows, cols)``, two cuts that do not use one dimension of the grid twice.",
    rows="How the rows are cut.", cols="How the columns are cut.", shape="(rows, columns) of the whole matrix.")


class Grid:
    """P × Q ranks in row-major order: rank r is in row r // Q and column r % Q.

    Collective over ``comm``. Ranks beyond P·Q are idle: they own nothing, and what is collective over the grid returns
    at once on them. ``shape`` is near to square unless it is given. ``transport`` says how data travel between ranks
    ("mpi", "chain", "one-sided", "shared", "mixed", "auto"). The communicator is duplicated.

    With ``device="gpu"`` each rank takes a GPU of its host, where matrices then lie and are multiplied; their transport is
    "nccl", "mpi" or "auto", which is "nccl". Raises UsageError on all ranks if one has no GPU.
    """

    def __init__(self, comm: MPI.Comm | None = None, shape: tuple[int, int] | None = None, *, transport: str = "mpi", device: str = "cpu") -> None:
        if device not in ("cpu", "gpu"):
            raise UsageError(f"there is no device {device!r}: a grid is on 'cpu' or 'gpu'")
        self.comm: MPI.Comm = MPI.COMM_WORLD if comm is None else comm
        self.device = device
        #: The number of this rank's GPU; 0 on a CPU.
        self.gpu: int
        self.native, self.all_ranks, self.gpu = _native.make_grid(MPI._addressof(self.comm), shape, transport, device == "gpu")

    @property
    def shape(self) -> tuple[int, int]:
        """(P, Q)."""
        return self.native.rows, self.native.cols

    @property
    def is_member(self) -> bool:
        """False on idle ranks, where rank, row and column must not be asked for."""
        return self.native.is_member

    @property
    def rank(self) -> int:
        """This rank's number within the grid."""
        return self.native.rank

    @property
    def row(self) -> int:
        """This rank's row of the grid."""
        return self.native.my_row

    @property
    def col(self) -> int:
        """This rank's column of the grid."""
        return self.native.my_col

    @property
    def transport(self) -> str:
        """What carries the data, and "none" on idle ranks."""
        return self.native.transport

    @property
    def stream(self) -> int:
        """The address of the CUDA stream of this rank's GPU, which does all work of the grid in order: ``cupy.cuda.ExternalStream(grid.stream)``.

        0 on a CPU.
        """
        return self.native.queue

    def traffic(self) -> dict[str, Any]:
        """What this rank sent and received on this grid: bytes_sent, bytes_received, …, seconds_waiting."""
        return self.native.traffic()

    def told_by(self, root: int, question: Callable[[], Any]) -> Any:
        """What question() returns on the grid's rank ``root``, on all ranks of ``comm`` (collective); JSON must be able to hold it.

        If it raises there, all ranks raise that error.
        """
        if not 0 <= root < self.shape[0] * self.shape[1]:
            raise UsageError(f"there is no rank {root} in a grid of {self.shape[0]} x {self.shape[1]}")
        told = ""
        if self.comm.rank == root:
            try:
                told = json.dumps({"answer": question()})
            except Exception as error:  # pylint: disable=broad-exception-caught  # the other ranks wait for it
                kind = type(error).__name__ if isinstance(error, errors.Error) else "UsageError"
                told = json.dumps({"kind": kind, "text": str(error)})
        heard = json.loads(_native.broadcast_text(self.all_ranks, told, root))
        if "kind" in heard:
            raise getattr(errors, heard["kind"])(heard["text"])
        return heard["answer"]

    def blocks_2d(self, rows: int, cols: int) -> Layout:
        """Rows are cut along grid rows, and columns along grid columns."""
        return _native.blocks_2d(self.native, rows, cols)

    def row_blocks(self, rows: int, cols: int) -> Layout:
        """Rows are cut along all ranks."""
        return _native.row_blocks(self.native, rows, cols)

    def column_blocks(self, rows: int, cols: int) -> Layout:
        """Columns are cut along all ranks."""
        return _native.column_blocks(self.native, rows, cols)

    def replicated(self, rows: int, cols: int) -> Layout:
        """The whole matrix is on every rank."""
        return _native.replicated(rows, cols)

    def matrix_layout(self, rows: int, cols: int, algorithm: str = "stationary-a") -> Layout:
        """The layout that an algorithm of :func:`matrix_mult` needs its matrix in."""
        return _native.matrix_layout(algorithm, self.native, rows, cols)

    def choose_algorithm(self, rows: int, cols: int, nrhs: int, dtype: Any = "float64") -> str:
        """The algorithm with the smallest modelled time for a matrix of rows × cols and nrhs columns."""
        return _native.choose_algorithm(self.native, rows, cols, nrhs, type_name(dtype))

    def __repr__(self) -> str:
        return f"<Grid {self.shape[0]} x {self.shape[1]}, {self.transport}>"
