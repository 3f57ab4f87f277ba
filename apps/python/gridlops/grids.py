# SPDX-License-Identifier: BSD-3-Clause
"""Process grids, and how matrices lie on them."""

from __future__ import annotations

from typing import Any, Sequence

from mpi4py import MPI

from . import _native


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
    """

    def __init__(self, comm: MPI.Comm | None = None, shape: tuple[int, int] | None = None, *, transport: str = "mpi") -> None:
        self.comm: MPI.Comm = MPI.COMM_WORLD if comm is None else comm
        self.native = _native.make_grid(MPI._addressof(self.comm), shape, transport)

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

    def traffic(self) -> dict[str, Any]:
        """What this rank sent and received on this grid: bytes_sent, bytes_received, …, seconds_waiting."""
        return self.native.traffic()

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
        from .matrices import type_name

        return _native.choose_algorithm(self.native, rows, cols, nrhs, type_name(dtype))

    def __repr__(self) -> str:
        return f"<Grid {self.shape[0]} x {self.shape[1]}, {self.transport}>"


class Space:
    """Where models or data of an operator live: matrices with a fixed number of rows, cut in a fixed way.

    ``rows`` is a :class:`Cut`; columns (right-hand sides) are cut along the axis ``columns``. Equal spaces hold the same
    elements at the same places.
    """

    def __init__(self, grid: Grid, rows: Cut, columns: str = "uncut") -> None:
        self._adopt(grid, _native.Space(grid.native, rows, columns))

    def _adopt(self, grid: Grid, native: _native.Space) -> None:
        self.grid = grid
        self.native = native

    @classmethod
    def of(cls, grid: Grid, native: _native.Space) -> Space:
        """A space of the library, for this package's own files."""
        space = cls.__new__(cls)
        space._adopt(grid, native)
        return space

    @classmethod
    def array(cls, grid: Grid, sizes: Sequence[int], cut: int = 0, *, axis: str = "all", columns: str = "uncut") -> Space:
        """Arrays of these sizes, in C order, cut along dimension ``cut`` into balanced parts.

        The rows of a matrix in this space are the elements of the array, block by block.
        """
        return cls.of(grid, _native.Space.array(grid.native, list(sizes), cut, axis, columns))

    @classmethod
    def array_with_cuts(cls, grid: Grid, cuts: Sequence[Sequence[int]], *, axis: str = "all", columns: str = "uncut") -> Space:
        """Arrays whose dimensions are cut into parts of the given sizes, one list for each dimension."""
        return cls.of(grid, _native.Space.array_with_cuts(grid.native, [list(sizes) for sizes in cuts], axis, columns))

    @property
    def dimension(self) -> int:
        """The number of rows."""
        return self.native.dimension

    @property
    def rows(self) -> Cut:
        """How the rows are cut."""
        return self.native.rows

    @property
    def columns(self) -> str:
        """The axis along which columns are cut."""
        return self.native.columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those of the array, if the rows are one."""
        return tuple(self.native.sizes)

    @property
    def local_box(self) -> tuple[slice, ...]:
        """The part of the array that this rank holds, as an index of a whole array."""
        return self.native.local_box

    def layout(self, nrhs: int) -> Layout:
        """The layout of a matrix with so many columns."""
        return self.native.layout(nrhs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.native == other.native

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Space {self.native!r}>"
