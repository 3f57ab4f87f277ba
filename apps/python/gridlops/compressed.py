# SPDX-License-Identifier: BSD-3-Clause
"""Matrices in tiles of low rank, whose error is known."""

from __future__ import annotations

import os
from typing import Any, Callable, TypedDict

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import ShapeError
from .grids import Grid
from .matrices import Matrix, functions_for
from .streamed import StoredOperator, stored_as


class CompressionReport(TypedDict):
    """What a compressed matrix takes, and how far it is from the matrix that it was made of."""
    norm: float  #: ‖A‖_F
    error: float  #: ‖A − Ã‖_F / ‖A‖_F, of the numbers as they are stored
    bytes: int  #: of Ã, on all ranks
    dense_bytes: int  #: of A
    tiles: int  #: all; the others are those of low rank
    dense_tiles: int  #: stored as they are, rounded to some precision
    empty_tiles: int  #: so small that they are zero


class CompressedOperator(StoredOperator):
    """A compressed matrix as an operator, with a :attr:`report` that is the same on all ranks of the grid, and zeros on idle ranks."""

    def __init__(self, grid: Grid, dtype: npt.DTypeLike, native: Any, disk_use: Callable[[], tuple[int, float]], report: CompressionReport) -> None:
        super().__init__(grid, dtype, native, disk_use)
        self.report = report


def compress(A: Matrix | npt.NDArray[Any] | str | os.PathLike[str], tolerance: float = 1e-3, *, tile: int = 256,
             row_order: npt.ArrayLike | None = None, col_order: npt.ArrayLike | None = None,
             directory: str | os.PathLike[str] = "", grid: Grid | None = None) -> CompressedOperator:
    """An operator Ã of fewer bytes, with ‖A − Ã‖_F ≤ tolerance · ‖A‖_F, and the spaces of ``stationary-a``. Collective.

    A is a matrix with the layout of :meth:`Grid.matrix_layout`, which is only read; on one rank also an array of NumPy;
    or the name of a file, of which no rank ever holds its block, for a ``grid`` or one of all ranks. Tiles have at most
    ``tile`` rows and columns. The orders, such as :func:`hilbert_order` of the stations, say in which order rows and
    columns are cut into tiles; X and Y keep theirs. With a ``directory`` Ã is saved there, too, for
    :func:`read_compressed` and the program.

    Raises UsageError on all ranks if A has NaN or infinity, and OutputError if something was saved in the directory.
    """
    orders = [[] if order is None else _indices(order) for order in (row_order, col_order)]
    asked = (tolerance, tile, *orders, os.fspath(directory))
    return stored_as(CompressedOperator, A, grid, "compress", "compress_file", asked)


def read_compressed(directory: str | os.PathLike[str], grid: Grid | None = None, *, memory: int | None = None,
                    scratch: str | os.PathLike[str] = "") -> CompressedOperator:
    """The compressed matrix that was saved in a directory, on any grid, by default one of all ranks. Collective.

    With ``memory`` this rank keeps as many bytes of it, with those that it reads ahead, and the rest in a file without a name
    in the directory ``scratch``, as :func:`stream_matrix` does; products have the same bits.

    Raises InputError on all ranks if there is none, or if its files are damaged, and OutputError if ``scratch`` cannot take it.
    """
    on = Grid() if grid is None else grid
    rows, cols, dtype = _native.compressed_header(on.all_ranks, os.fspath(directory))
    return CompressedOperator(on, dtype, *functions_for(dtype).read_compressed(on.native, os.fspath(directory), (rows, cols), memory, os.fspath(scratch)))


def _indices(order: npt.ArrayLike) -> list[int]:
    indices = np.asarray(order)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ShapeError(f"an order is a vector of indices, not an array of {indices.dtype} with the shape {indices.shape}")
    return [int(index) for index in indices]
