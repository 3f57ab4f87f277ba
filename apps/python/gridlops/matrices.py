# SPDX-License-Identifier: BSD-3-Clause
"""Distributed matrices."""

from __future__ import annotations

from typing import Any, Callable, Protocol

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import UsageError
from .grids import Grid, Layout, Space

_TYPES = ("float32", "float64", "complex64", "complex128")


def type_name(dtype: npt.DTypeLike) -> str:
    """The name of an element type that the library has; UsageError for any other."""
    name = np.dtype(dtype).name
    if name not in _TYPES:
        raise UsageError(f"there are no matrices of {name}: element types are {', '.join(_TYPES)}; try array.astype(...)")
    return name


def functions_for(dtype: npt.DTypeLike) -> Any:
    """The native functions for an element type."""
    return getattr(_native, type_name(dtype))


class SupportsDLPack(Protocol):
    """An array of any library that exchanges memory by DLPack: PyTorch, JAX, CuPy and others."""

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule with the address, the sizes and the strides of the memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of the device that has the memory, and its number."""


def _host_array(block: npt.NDArray[Any] | SupportsDLPack) -> npt.NDArray[Any]:
    """A block as an array of NumPy, in the same memory, in which every element can be read in place."""
    array = _as_numpy(block)
    if np.ma.is_masked(array):
        raise UsageError(f"{np.ma.count_masked(array)} of the {array.size} elements of the block are masked, and what lies under a mask "
                         "would be read: leave their rows out of the problem, or say what they are: array.filled(0)")
    if array.ndim not in (1, 2):
        raise UsageError(f"a block of {array.ndim} dimensions cannot be that of a matrix, which has rows and columns: "
                         "array.reshape(rows, columns)")
    if not array.dtype.isnative:
        raise UsageError(f"the bytes of the block's elements, {array.dtype.str!r}, are in the order of another machine: "
                         "array.astype(array.dtype.newbyteorder('='))")
    if not array.flags.aligned:
        raise UsageError(f"the elements of the block, {array.dtype.name}, do not lie at multiples of their size: array.copy()")
    return np.asarray(array)


def _as_numpy(block: npt.NDArray[Any] | SupportsDLPack) -> npt.NDArray[Any]:
    if isinstance(block, np.ndarray):
        return block
    if not hasattr(block, "__dlpack__"):
        raise UsageError(f"a {type(block).__name__} cannot be a block: take an array of NumPy, or one that has __dlpack__")
    try:
        return np.from_dlpack(block)
    except (BufferError, RuntimeError) as error:
        raise UsageError(f"a {type(block).__name__} on device {block.__dlpack_device__()} cannot be used in place: {error}; "
                         "blocks are in the memory of the host, copy it there") from error


class Matrix:
    """A matrix on a process grid. Every rank has one block of it, as its layout says.

    ``Matrix(grid, layout, dtype)`` is a matrix of zeros with memory of its own (collective over the grid).
    :meth:`from_local` uses arrays that exist, without a copy. Elements are read and written through :attr:`local`, or by
    another library that takes DLPack: ``torch.from_dlpack(matrix)`` is this rank's block, not a copy.
    """

    def __init__(self, grid: Grid, layout: Layout, dtype: npt.DTypeLike = np.float64) -> None:
        self._adopt(grid, dtype, functions_for(dtype).allocate(grid.native, layout))

    def _adopt(self, grid: Grid, dtype: npt.DTypeLike, native: Any) -> None:
        self.grid = grid
        self.dtype = np.dtype(dtype)
        self.native = native

    @classmethod
    def of(cls, grid: Grid, dtype: npt.DTypeLike, native: Any) -> Matrix:
        """A matrix of the library, for this package's own files."""
        matrix = cls.__new__(cls)
        matrix._adopt(grid, dtype, native)
        return matrix

    @classmethod
    def from_local(cls, grid: Grid, layout: Layout, block: npt.NDArray[Any] | SupportsDLPack) -> Matrix:
        """Uses this rank's block in place; changes of one are changes of the other. Not collective.

        The block has the shape that the layout gives this rank (a vector is one column), one of the four element types,
        and columns without gaps inside: column-major (Fortran) order, as ``numpy.asfortranarray`` makes it. Idle ranks
        give an empty block. No element is masked or of swapped bytes. It is an array of NumPy, or of another library by DLPack, in the memory of the host. A matrix
        of a read-only block can be read only; NumPy before 2.1 makes all memory that comes by DLPack so. Raises
        UsageError or ShapeError, on this rank alone.
        """
        array = _host_array(block)
        array = array.reshape(-1, 1) if array.ndim == 1 else array
        native = functions_for(array.dtype).view(grid.native, layout, array, array.flags.writeable)
        return cls.of(grid, array.dtype, native)

    @property
    def layout(self) -> Layout:
        """How the matrix lies on the grid."""
        return self.native.layout

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix."""
        return self.layout.shape

    @property
    def local(self) -> npt.NDArray[Any]:
        """This rank's block, not a copy: rows × columns, column-major. It is 0 × 0 on idle ranks."""
        return np.asarray(self.native)

    def __dlpack__(self, **options: Any) -> Any:
        """This rank's block for another library, not a copy. NumPy before 2.1 refuses if it is read-only."""
        return self.local.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host."""
        return self.local.__dlpack_device__()

    @property
    def rows(self) -> slice:
        """The global rows of this rank's block."""
        return slice(*self.native.rows)

    @property
    def cols(self) -> slice:
        """The global columns of this rank's block."""
        return slice(*self.native.cols)

    @property
    def owned(self) -> bool:
        """Whether this rank's copy of its block is the one that counts in sums."""
        return self.native.owned

    def fill(self, value: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Any]) -> Matrix:
        """Elements become ``value(i, j)``, with arrays of global row and column numbers that broadcast. Not collective."""
        i = np.arange(self.rows.start, self.rows.stop)[:, np.newaxis]
        j = np.arange(self.cols.start, self.cols.stop)[np.newaxis, :]
        self.local[...] = value(i, j)
        return self

    def zeros_like(self) -> Matrix:
        """A matrix of zeros with the same layout (collective)."""
        return Matrix(self.grid, self.layout, self.dtype)

    def copy(self) -> Matrix:
        """The same elements in memory of their own (collective)."""
        result = self.zeros_like()
        result.local[...] = self.local
        return result

    def redistribute(self, layout: Layout) -> Matrix:
        """The same matrix in another layout on the same grid (collective; one all-to-all)."""
        result = Matrix(self.grid, layout, self.dtype)
        functions_for(self.dtype).redistribute(1, self.native, 0, result.native)
        return result

    def gather(self, root: int = 0) -> npt.NDArray[Any] | None:
        """The whole matrix on the grid's rank ``root``, and None elsewhere (collective)."""
        is_root = self.grid.is_member and self.grid.rank == root
        whole = np.empty(self.shape, self.dtype, order="F") if is_root else None
        functions_for(self.dtype).gather_into(self.native, root, whole)
        return whole

    def scatter(self, whole: npt.ArrayLike | None, root: int = 0) -> Matrix:
        """Takes the whole matrix that the grid's rank ``root`` has (collective); others pass None."""
        is_root = self.grid.is_member and self.grid.rank == root
        array = np.asfortranarray(np.asarray(whole, self.dtype).reshape(self.shape)) if is_root else None
        functions_for(self.dtype).scatter_from(array, root, self.native)
        return self

    def column_dots(self, other: Matrix) -> npt.NDArray[Any]:
        """xⱼᴴ yⱼ for each column, on every rank (collective; one reduction)."""
        return np.asarray(functions_for(self.dtype).column_dots(self.native, same_type(self, other).native))

    def column_norms(self, order: float = 2) -> npt.NDArray[np.float64]:
        """‖xⱼ‖ₚ for each column, on every rank (collective; one reduction)."""
        return np.asarray(functions_for(self.dtype).column_norms(self.native, order))

    def __repr__(self) -> str:
        return f"<Matrix {self.layout!r}, {self.dtype.name}>"


def same_type(first: Any, *others: Any) -> Any:
    """The last one, if all are of this package and have one element type; UsageError otherwise, on all ranks."""
    for each in (first, *others):
        if not hasattr(each, "native"):
            raise UsageError(_not_ours(each))
    for other in others:
        if other.dtype != first.dtype:
            raise UsageError(f"operands of {first.dtype.name} and of {other.dtype.name} do not go together: "
                             f"make all of them {np.result_type(first.dtype, other.dtype).name}")
    return others[-1] if others else first


def _not_ours(given: Any) -> str:
    return (f"a value of type {type(given).__name__} stands where a Matrix or an Operator is needed, of which every rank has one block: "
            "gridlops.from_local(space, block) makes a Matrix of a block, and gridlops.matrix_mult(A) an operator of a Matrix")


def require_matrix(name: str, given: Any) -> None:
    """UsageError, on all ranks that give it, unless it is a matrix."""
    if not isinstance(given, Matrix):
        raise UsageError(f"{name}: {_not_ours(given)}")


def zeros(space: Space, nrhs: int = 1, dtype: npt.DTypeLike = np.float64) -> Matrix:
    """A matrix of zeros in a space, with nrhs columns (collective over the grid)."""
    return Matrix(space.grid, space.layout(nrhs), dtype)


def from_local(space: Space, block: npt.NDArray[Any] | SupportsDLPack, nrhs: int | None = None) -> Matrix:
    """This rank's block as a matrix in a space, without a copy; see :meth:`Matrix.from_local`. Not collective.

    ``nrhs`` is the number of all columns; needed only where columns are cut over ranks.
    """
    array = _host_array(block)
    columns = (1 if array.ndim == 1 else array.shape[1]) if nrhs is None else nrhs
    return Matrix.from_local(space.grid, space.layout(columns), array)
