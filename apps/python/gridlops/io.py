# SPDX-License-Identifier: BSD-3-Clause
"""Files of matrices and arrays. Each rank reads and writes its own part.

A name ends in ``.npy``, or is that of a dataset: ``file.h5:/group/dataset``, with ``@0:3,:,5`` for a part of it, or
``file.mat:/name`` in a MATLAB file of version 7.3, which can only be read. Arrays may also be objects with ``shape``, ``dtype``
and ``[…]``, such as those of zarr and h5py, NumPy's memory maps, and the traces of a SEG-Y file that :func:`open_survey` has. Everything here is
collective over ``grid.comm``, and raises on all ranks what goes wrong on one.
"""

from __future__ import annotations

import os
from typing import Any, Sequence

import numpy as np

from . import _native
from .blocks import type_name
from .errors import InputError, ShapeError
from .grids import Grid
from .matrices import Matrix, functions_for
from .segy import Survey, open_survey
from .spaces import Space, zeros


def shape_of(grid: Grid, name: str | os.PathLike[str]) -> tuple[tuple[int, ...], str]:
    """The sizes of the array in a file, and its element type."""
    sizes, dtype = _native.array_header(grid.all_ranks, os.fspath(name))
    return sizes, dtype


def read_matrix(grid: Grid, name: str | os.PathLike[str], algorithm: str = "stationary-a") -> Matrix:
    """A matrix for :func:`matrix_mult` by this algorithm, of the file's type. A vector is one column."""
    sizes, dtype = shape_of(grid, name)
    if len(sizes) > 2:
        raise ShapeError(f"{os.fspath(name)} is an array of {' x '.join(map(str, sizes))}, and no matrix: gridlops.io.read_array reads it")
    rows, cols = (*sizes, 1)[:2]
    A = Matrix(grid, grid.matrix_layout(rows, cols, algorithm), dtype)
    functions_for(dtype).read_matrix(os.fspath(name), A.native)
    return A


def read_array(space: Space, source: Any) -> Matrix:
    """A matrix in this space, of the type of the file or object. Right-hand sides are the last dimension of an array.

    An object is indexed with this rank's box; every rank must pass an object with the same contents.
    """
    is_name = isinstance(source, (str, os.PathLike))
    sizes, dtype = shape_of(space.grid, source) if is_name else (tuple(source.shape), type_name(source.dtype))
    form = space.form_of(sizes)
    if space.sizes and not form.has_sizes:
        raise ShapeError(f"an array of {' x '.join(map(str, sizes))} is not one of {' x '.join(map(str, space.sizes))}")
    X = zeros(space, 1 if form.nrhs is None else form.nrhs, dtype)
    if not is_name:
        def take() -> None:
            box = (*space.local_box, X.cols) if form.nrhs is not None else space.local_box
            if X.local.size:
                X.take_local(np.asarray(source[box]).reshape(X.local.shape))

        _native.attempt(space.grid.all_ranks, take)
    elif space.sizes:
        functions_for(dtype).read_array(os.fspath(source), space.native, X.native)
    else:
        functions_for(dtype).read_matrix(os.fspath(source), X.native)
    return X


def write_matrix(X: Matrix, name: str | os.PathLike[str], like: str = "") -> None:
    """Writes a matrix of rows and columns. The file appears complete or not at all; see :func:`write_array`."""
    functions_for(X.dtype).write_matrix(os.fspath(name), X.native, 2, like)


def write_array(X: Matrix, target: Any, like: str = "") -> None:
    """Writes a matrix as the array of its space; right-hand sides, unless there is one, are the last dimension.

    A named file appears complete or not at all, and an HDF5 file keeps all else that it holds. ``like`` names a dataset, whose
    attributes the new one gets. An object is assigned to, by one rank after the other, because two must not change one chunk.
    """
    space = X.space
    if space is None:
        raise ShapeError("this matrix was made of a layout, not in a space: gridlops.io.write_matrix writes its rows and columns")
    if isinstance(target, (str, os.PathLike)):
        if space.sizes:
            functions_for(X.dtype).write_array(os.fspath(target), space.native, X.native, like)
        else:
            functions_for(X.dtype).write_matrix(os.fspath(target), X.native, 1 if X.shape[1] == 1 else 2, like)
        return
    wanted = (*(space.sizes or (space.dimension,)), *([X.shape[1]] if X.shape[1] != 1 else []))
    if tuple(target.shape) != wanted:
        raise ShapeError(f"an array of {tuple(target.shape)} cannot take one of {wanted}")

    def put(turn: int) -> None:
        if space.grid.comm.rank == turn and space.grid.is_member and X.owned and X.local.size:
            box = (*space.local_box, X.cols) if X.shape[1] != 1 else space.local_box
            target[box] = X.host_copy().reshape([part.stop - part.start for part in box])

    for turn in range(space.grid.comm.size):
        _native.attempt(space.grid.all_ranks, lambda turn=turn: put(turn))


def from_zarr(space: Space, path: str | os.PathLike[str]) -> Matrix:
    """:func:`read_array` of the array of zarr in this folder or store, opened by the package ``zarr`` (2.13 and 3.1 are tried)."""
    return read_array(space, _open(space.grid, path, "r"))


def to_zarr(X: Matrix, path: str | os.PathLike[str], chunks: Sequence[int] | None = None) -> None:
    """Makes an array of zarr, with these chunks or those that zarr chooses, and writes a matrix as the array of its space."""
    space = X.space
    if space is None:
        raise ShapeError("this matrix was made of a layout, not in a space: gridlops.zeros(space) makes one in a space")
    shape = (*(space.sizes or (space.dimension,)), *([X.shape[1]] if X.shape[1] != 1 else []))
    options: dict[str, Any] = {} if chunks is None else {"chunks": tuple(chunks)}

    def make() -> None:
        import zarr

        if space.grid.comm.rank == 0:
            zarr.open(os.fspath(path), mode="w", shape=shape, dtype=X.dtype.str, **options)

    _native.attempt(space.grid.all_ranks, make)
    write_array(X, _open(space.grid, path, "r+"))


def _open(grid: Grid, path: str | os.PathLike[str], mode: str) -> Any:
    opened: list[Any] = []

    def open_it() -> None:
        import zarr

        array = zarr.open(os.fspath(path), mode=mode)
        if not hasattr(array, "shape"):
            raise InputError(f"{os.fspath(path)} is a group of zarr, not an array: name one of {', '.join(array)}")
        opened.append(array)

    _native.attempt(grid.all_ranks, open_it)
    return opened[0]
