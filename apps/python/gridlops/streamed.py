# SPDX-License-Identifier: BSD-3-Clause
"""Matrices on disks."""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar

import numpy.typing as npt

from . import io
from .grids import Grid
from .matrices import Matrix, functions_for
from .operators import Operator, matrix_of


class StoredOperator(Operator):
    """A matrix as an operator, of which a part may be on disks."""

    def __init__(self, grid: Grid, dtype: npt.DTypeLike, native: Any, disk_use: Callable[[], tuple[int, float]]) -> None:
        super().__init__(grid, dtype, native)
        self._disk_use = disk_use

    @property
    def bytes_read(self) -> int:
        """What this rank has read of its file so far, if it has one."""
        return self._disk_use()[0]

    @property
    def seconds_waited(self) -> float:
        """How long products of this rank have waited for its disk."""
        return self._disk_use()[1]


class StreamedOperator(StoredOperator):
    """A matrix on disks as an operator."""


Kind = TypeVar("Kind", bound=StoredOperator)


def stored_as(kind: type[Kind], A: Matrix | npt.NDArray[Any] | str | os.PathLike[str], grid: Grid | None, of_matrix: str, of_file: str, asked: tuple[Any, ...]) -> Kind:
    """The operator that one of two native functions makes of a matrix, or of a file."""
    if isinstance(A, (str, os.PathLike)):
        on = Grid() if grid is None else grid
        _, dtype = io.shape_of(on, A)
        return kind(on, dtype, *getattr(functions_for(dtype), of_file)(on.all_ranks, on.native, os.fspath(A), asked))
    matrix = matrix_of(of_matrix, A)
    return kind(matrix.grid, matrix.dtype, *getattr(functions_for(matrix.dtype), of_matrix)(matrix.native, asked))


def stream_matrix(A: Matrix | npt.NDArray[Any] | str | os.PathLike[str], *, scratch: str | os.PathLike[str] = "",
                  memory: int = 0, column_stable: bool = False, tiles: str | os.PathLike[str] = "",
                  in_place: bool = False, grid: Grid | None = None) -> StreamedOperator:
    """A matrix as an operator that keeps on disks what has no room in memory. Collective.

    Its products have the bits of ``matrix_mult(A, "stationary-a", storage="packed")``, and read ahead while they compute.
    A is a matrix with the layout of :meth:`Grid.matrix_layout`, which is only read; on one rank also an array of NumPy;
    or the name of a file, of which no rank ever holds its block, for a ``grid`` or one of all ranks. This rank keeps
    ``memory`` bytes of A, with those that it reads ahead, and the rest in a file without a name in the directory
    ``scratch``, by default ``$TMPDIR`` or ``/var/tmp``. With ``tiles`` what was made of a file stays in that directory, for the
    next operator of the same file and grid. With ``in_place`` nothing is made: A is read where its file has it, which keeps
    pace with a disk where rows, or the chunks of a dataset, are long. The file is to stay as it is.

    Raises OutputError on all ranks if the directory cannot take A, and UsageError if a file in Fortran order, compressed, or
    of another type is to be read in place. Products raise InputError on all ranks if a disk fails, or the file has changed.
    """
    asked = (os.fspath(scratch), memory, column_stable, os.fspath(tiles), in_place)
    return stored_as(StreamedOperator, A, grid, "stream_matrix", "stream_file", asked)
