# SPDX-License-Identifier: BSD-3-Clause
"""Files of matrices and arrays. Each rank reads and writes its own part.

A name ends in ``.npy``, or is that of a dataset: ``file.h5:/group/dataset``, with ``@0:3,:,5`` for a part of it, or
``file.mat:/name`` in a MATLAB file of version 7.3, which can only be read. Arrays may also be objects with ``shape``, ``dtype``
and ``[…]``, such as those of zarr and h5py, NumPy's memory maps, and the traces of a SEG-Y file that :func:`open_survey` has. Everything here is
collective over ``grid.comm``, and raises on all ranks what goes wrong on one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .blocks import type_name
from .errors import InputError, OutputError, ShapeError
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

    An object is indexed with this rank's box; every rank must pass an object with the same contents. Raises ShapeError if it gives
    a part of another shape, UsageError if elements are masked, and InputError if attributes of netCDF (``scale_factor``,
    ``_FillValue``, …) make them others or none, or if chunks of zarr are missing that have no fill value.
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
                part = np.asanyarray(source[box])
                wanted = tuple(each.stop - each.start for each in box)
                if part.shape != wanted:
                    raise ShapeError(f"the part {box} of an object with shape {tuple(source.shape)} is an array of {part.shape}, and not of {wanted}")
                _refuse_missing(source, part)
                X.take_local(part.reshape(X.local.shape))

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
    """Makes an array of zarr, with these chunks or those that zarr chooses, and writes a matrix as the array of its space.

    The folder is missing, empty, or an array of zarr and nothing else, which is replaced; otherwise raises OutputError.
    """
    space = X.space
    if space is None:
        raise ShapeError("this matrix was made of a layout, not in a space: gridlops.zeros(space) makes one in a space")
    shape = (*(space.sizes or (space.dimension,)), *([X.shape[1]] if X.shape[1] != 1 else []))
    options: dict[str, Any] = {} if chunks is None else {"chunks": tuple(chunks)}

    def make() -> None:
        import zarr

        if space.grid.comm.rank == 0:
            mode = _mode_to_make(os.fspath(path))
            try:
                zarr.open(os.fspath(path), mode=mode, shape=shape, dtype=X.dtype.str, **options)
            except (OSError, ValueError) as error:
                raise OutputError(f"{os.fspath(path)}: zarr cannot make an array there: {error}") from error

    _native.attempt(space.grid.all_ranks, make)
    write_array(X, _open(space.grid, path, "r+"))


def _mode_to_make(path: str) -> str:
    """With which mode zarr makes an array: "w" replaces one, "w-" nothing. OutputError if anything else would be lost."""
    if not os.path.isdir(path):
        if os.path.lexists(path):
            raise OutputError(f"{path} exists, and is no folder of zarr: name another one, or remove it")
        return "w-"
    entries = [os.path.relpath(os.path.join(folder, name), path) for folder, inner, files in os.walk(path) for name in inner + files]
    if not entries:
        return "w-"
    foreign = [name for name in sorted(entries) if not _OF_ZARR.fullmatch(name)]
    if foreign or not _has_array(path):
        raise OutputError(f"{path} holds {foreign[0] if foreign else 'no array of zarr'}, and all in it would be removed: name a folder that is missing or "
                          "empty, or an array of zarr, which is replaced")
    return "w"


#: What the folder of an array has: what describes it, and chunks, of both formats.
_OF_ZARR = re.compile(r"\.zarray|\.zattrs|zarr\.json|c|(c[/.])?\d+([/.]\d+)*")


def _has_array(path: str) -> bool:
    if os.path.isfile(os.path.join(path, ".zarray")):
        return True
    try:
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            return json.load(file)["node_type"] == "array"
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _refuse_missing(source: Any, part: npt.NDArray[Any]) -> None:
    """InputError if numbers of an object are packed or stand for none, by its attributes of netCDF, or if chunks are missing."""
    if getattr(source, "fill_value", 0) is None and getattr(source, "nchunks_initialized", 0) < getattr(source, "nchunks", 0):
        raise InputError(f"{source.nchunks - source.nchunks_initialized} of the {source.nchunks} chunks are missing, and the array has no fill value: "
                         "bring their files back, or write them")
    attributes = getattr(source, "attrs", {})

    def numbers(name: str) -> npt.NDArray[Any]:
        given = attributes.get(name, ())
        try:
            # In zarr's format 3 xarray writes the bytes of a number as a text.
            given = struct.unpack("<d", base64.b64decode(given, validate=True)) if isinstance(given, str) else given
            return np.ravel(np.asarray(given, np.float64))
        except (ValueError, TypeError, struct.error):
            raise InputError(f"the attribute {name} is {given!r}, and no number, so that it is not known which elements are missing") from None

    for name, neutral in (("scale_factor", 1), ("add_offset", 0)):
        if (numbers(name) != neutral).any():
            raise InputError(f"the object holds packed numbers: its attribute {name} is {attributes[name]}; unpack them, for example by xarray")
    if "_Unsigned" in attributes:
        raise InputError("the object has an attribute _Unsigned, by which its integers may be others than they seem: convert them, for example by xarray")
    if part.dtype.kind == "c":
        part = np.ascontiguousarray(part).view(part.real.dtype)
    in_its_precision = part.dtype.type if part.dtype.kind == "f" else float
    missing = np.zeros(part.shape, bool)
    for name in ("_FillValue", "missing_value"):
        missing |= np.isin(part, numbers(name).astype(part.dtype))
    for name, is_wrong in (("valid_min", np.less), ("valid_max", np.greater)):
        for bound in numbers(name):
            missing |= is_wrong(part, in_its_precision(bound))
    if numbers("valid_range").size not in (0, 2):
        raise InputError(f"the attribute valid_range is {attributes['valid_range']!r}, where two numbers are needed")
    for least, most in numbers("valid_range").reshape(-1, 2):
        missing |= (part < in_its_precision(least)) | (part > in_its_precision(most))
    if missing.any():
        raise InputError(f"{missing.sum()} of the {missing.size} numbers of this rank's part stand for none, by attributes of netCDF such as _FillValue: leave them out, or "
                         "write numbers for them")


def _open(grid: Grid, path: str | os.PathLike[str], mode: str) -> Any:
    opened: list[Any] = []

    def open_it() -> None:
        import zarr

        try:
            array = zarr.open(os.fspath(path), mode=mode)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{os.fspath(path)}: zarr cannot open it: {error!r}") from error
        if not hasattr(array, "shape"):
            raise InputError(f"{os.fspath(path)} is a group of zarr, not an array: name one of {', '.join(array)}")
        opened.append(array)

    _native.attempt(grid.all_ranks, open_it)
    return opened[0]
