# SPDX-License-Identifier: BSD-3-Clause
"""Distributed matrices."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .blocks import CPU, CUDA, Block, DeviceBlock, Usable, block_of, give_tensor, refuse_masked, type_name
from .errors import ShapeError, UsageError
from .grids import Grid, Layout

#: One number for all columns of a matrix, or one for each.
PerColumn = float | Sequence[float] | npt.NDArray[np.float64]


def functions_for(dtype: npt.DTypeLike) -> Any:
    """The native functions for an element type."""
    return getattr(_native, type_name(dtype))


def whole_array(given: npt.ArrayLike | None, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """An array of this machine's order of bytes, of the given element type or of its own. UsageError if digits would be lost."""
    array = np.asanyarray(given)
    refuse_masked(array, "array")
    name = type_name(array.dtype if dtype is None else dtype)
    if not np.can_cast(array.dtype, name, "safe"):
        raise UsageError(f"an array of {array.dtype} is not one of {name}, and may lose digits: array.astype({name!r})")
    return np.asarray(array, name)


def hilbert_order(positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Orders points along a Hilbert curve, on which neighbours in the order are close in space (not collective).

    ``positions`` has a row for each point, with one, two or three coordinates; or one number for each point.
    ``positions[hilbert_order(positions)]`` are the points along the curve. Neither a shift nor a common scale changes
    the order. Raises UsageError for coordinates that are not finite.
    """
    points = np.ascontiguousarray(whole_array(positions, np.float64))
    if points.ndim == 1:
        points = points[:, np.newaxis]
    if points.ndim != 2:
        raise UsageError(f"positions are an array of points × coordinates, or of one number for each point, not of shape {points.shape}")
    order = np.empty(len(points), np.int64)
    _native.hilbert_order(points, order)
    return order


class Matrix:
    """A matrix on a process grid. Every rank has one block of it, as its layout says.

    ``Matrix(grid, layout, dtype)`` is a matrix of zeros with memory of its own (collective over the grid).
    :meth:`from_local` uses arrays that exist, without a copy. Elements are read and written through :attr:`local`, or by
    another library that takes DLPack: ``torch.from_dlpack(matrix)`` is this rank's block, not a copy. A matrix that is made
    in a :class:`Space` has it as its attribute ``space``.
    """

    __array_ufunc__ = None  # NumPy's arrays leave arithmetic with a matrix to it

    def __init__(self, grid: Grid, layout: Layout, dtype: npt.DTypeLike = np.float64) -> None:
        self._adopt(grid, dtype, functions_for(dtype).allocate(grid.native, layout), None)

    def _adopt(self, grid: Grid, dtype: npt.DTypeLike, native: Any, space: Any) -> None:
        self.grid = grid
        self.dtype = np.dtype(type_name(dtype))
        self.native = native
        self.space = space

    @classmethod
    def of(cls, grid: Grid, dtype: npt.DTypeLike, native: Any, space: Any = None) -> Matrix:
        """A matrix of the library, for this package's own files."""
        matrix = cls.__new__(cls)
        matrix._adopt(grid, dtype, native, space)
        return matrix

    @classmethod
    def from_local(cls, grid: Grid, layout: Layout, block: Usable) -> Matrix:
        """Uses this rank's block in place; changes of one are changes of the other. Not collective.

        The block has the shape that the layout gives this rank (a vector is one column), one of the four element types,
        and columns without gaps inside: column-major (Fortran) order, as ``numpy.asfortranarray`` makes it. Idle ranks
        give an empty block. No element is masked or of swapped bytes. It is an array of NumPy, or of another library by
        DLPack, in the memory of the host. On a grid of GPUs it is on this rank's, and has ``__dlpack__``, by which the grid's
        stream waits for the array's, or ``__cuda_array_interface__``. A matrix of a read-only block can be read only; a library
        with DLPack before version 1 cannot say that a block is. Raises UsageError or ShapeError, on this rank alone.
        """
        return cls.in_memory(grid, layout, block_of(grid, block))

    @classmethod
    def in_memory(cls, grid: Grid, layout: Layout, block: Block) -> Matrix:
        """A matrix of such a block, for this package's own files."""
        native = functions_for(block.dtype).view(grid.native, layout, block.address, (*block.shape, block.stride), block.keeper, block.writable)
        return cls.of(grid, block.dtype, native)

    @property
    def layout(self) -> Layout:
        """How the matrix lies on the grid."""
        return self.native.layout

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix."""
        return self.layout.shape

    @property
    def local(self) -> Any:
        """This rank's block, not a copy: rows × columns, column-major. It is 0 × 0 on idle ranks.

        An array of NumPy, or on a grid of GPUs a :class:`DeviceBlock`.
        """
        return np.asarray(self.native) if self.grid.device == "cpu" else DeviceBlock(self)

    def host_copy(self) -> npt.NDArray[Any]:
        """A copy of this rank's block as an array of NumPy, wherever the block lies."""
        array = np.empty(self.native.block[:2], self.dtype, order="F")
        functions_for(self.dtype).download(self.native, array)
        return array

    def take_local(self, array: npt.ArrayLike) -> Matrix:
        """This rank's block becomes a copy of an array of NumPy, wherever the block lies. Not collective.

        Raises UsageError if elements of the array are masked.
        """
        array = np.asanyarray(array)
        refuse_masked(array, "block")
        if self.grid.device == "cpu":
            self.local[...] = array
            return self
        block = np.empty(self.native.block[:2], self.dtype, order="F")
        block[...] = array
        functions_for(self.dtype).upload(block, self.native)
        return self

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        """This rank's block for another library, in column-major order: a capsule of DLPack, which keeps the memory alive. Not collective.

        It is no copy, unless ``copy`` is true, or ``dl_device`` asks for a block of a GPU on the host, (1, 0). On a GPU the caller's
        ``stream`` may use it at once: the call waits for the grid's work, unless the stream is :attr:`Grid.stream`, or -1. None is the
        default stream. With ``max_version`` from (1, 0) on, the capsule says whether the block is read-only. Raises BufferError for
        what cannot be given: a read-only block before version 1, another device.
        """
        return give_tensor(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """By DLPack's numbers (1, 0), the host, or 2, CUDA, and the number of this rank's GPU."""
        return (CUDA, self.grid.gpu) if self.grid.device == "gpu" else (CPU, 0)

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
        """Elements become ``value(i, j)``, with arrays of global row and column numbers that broadcast. Not collective.

        In a space of arrays i numbers the elements of the array in C order, however it is cut.
        """
        i = np.arange(self.rows.start, self.rows.stop) if self.space is None else self.space.local_elements()
        j = np.arange(self.cols.start, self.cols.stop)[np.newaxis, :]
        return self.take_local(value(i[:, np.newaxis], j))

    def zeros_like(self) -> Matrix:
        """A matrix of zeros with the same layout (collective)."""
        return Matrix.of(self.grid, self.dtype, functions_for(self.dtype).allocate(self.grid.native, self.layout), self.space)

    def copy(self) -> Matrix:
        """The same elements in memory of their own (collective)."""
        result = self.zeros_like()
        functions_for(self.dtype).copy(self.native, result.native)
        return result

    def redistribute(self, layout: Layout) -> Matrix:
        """The same matrix in another layout on the same grid (collective; one all-to-all)."""
        result = Matrix(self.grid, layout, self.dtype)
        functions_for(self.dtype).redistribute(1, self.native, 0, result.native)
        return result

    def gather(self, root: int = 0) -> npt.NDArray[Any] | None:
        """The whole matrix on the grid's rank ``root``, and None elsewhere (collective). Raises UsageError in a space of arrays."""
        self._require_rows_in_order("gather_array(X)")
        return self.gather_rows(root)

    def scatter(self, whole: npt.ArrayLike | None, root: int = 0) -> Matrix:
        """Takes the whole matrix that the grid's rank ``root`` has; others pass None. Collective over ``grid.comm``.

        Its elements become those of the matrix's type without loss. A vector is one column. Raises UsageError, in a space of arrays
        too, or ShapeError, on all ranks.
        """
        self._require_rows_in_order("scatter_array(array)")
        rows: npt.NDArray[Any] | None = None

        def check() -> None:
            nonlocal rows
            array = whole_array(whole, self.dtype)
            if array.ndim == 1:
                array = array[:, np.newaxis]
            if array.shape != self.shape:
                raise ShapeError(f"an array of shape {array.shape} does not fit a matrix of {self.shape[0]} x {self.shape[1]}")

            rows = np.asfortranarray(array)

        self.grid.told_by(root, check)
        self.scatter_rows(rows, root)
        return self

    def _require_rows_in_order(self, instead: str) -> None:
        if self.space is not None and len(self.space.sizes) > 1:
            raise UsageError(f"the rows of this matrix are an array of {' x '.join(map(str, self.space.sizes))}, block by block, so that "
                             f"their order depends on the grid: space.{instead} has the array's own")

    def gather_rows(self, root: int) -> npt.NDArray[Any] | None:
        """The rows in the order of the ranks' blocks, for this package's own files; otherwise as :meth:`gather`."""
        whole = np.empty(self.shape, self.dtype, order="F") if self.grid.is_member and self.grid.rank == root else None
        functions_for(self.dtype).gather_into(self.native, root, whole)
        return whole

    def scatter_rows(self, rows: npt.NDArray[Any] | None, root: int) -> None:
        """The reverse of :meth:`gather_rows`. The root's rows fit and are column-major. Collective over the grid."""
        functions_for(self.dtype).scatter_from(rows, root, self.native)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The whole matrix where there is one rank; UsageError on several."""
        if self.grid.comm.size > 1:
            raise UsageError(f"each of {self.grid.comm.size} ranks has a part of this matrix: matrix.local is this rank's block, and "
                             "space.gather_array(matrix) or matrix.gather() the whole on one rank")
        return np.asarray(self.local if self.grid.device == "cpu" and not copy else self.host_copy(), dtype)

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
            "space.scatter_array(array) makes a Matrix of a whole array, gridlops.from_local(space, block) one of a block, and "
            "gridlops.matrix_mult(A) an operator of a Matrix")


def require_one_rank(grid: Grid, instead: str) -> None:
    """UsageError, on all ranks, unless one rank has all, so that an array of NumPy can only be the whole."""
    if grid.comm.size > 1:
        raise UsageError(f"an array of NumPy cannot say which part of the whole it is on {grid.comm.size} ranks: {instead} makes a Matrix "
                         "of the array of rank 0; other ranks pass None")


def require_matrix(name: str, given: Any) -> None:
    """UsageError, on all ranks that give it, unless it is a matrix."""
    if not isinstance(given, Matrix):
        raise UsageError(f"{name}: {_not_ours(given)}")
