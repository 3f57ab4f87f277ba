# SPDX-License-Identifier: BSD-3-Clause
"""Distributed matrices."""

from __future__ import annotations

from typing import Any, Callable, Protocol

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import ShapeError, UsageError
from .grids import Grid, Layout

_TYPES = ("float32", "float64", "complex64", "complex128")


def type_name(dtype: npt.DTypeLike) -> str:
    """The name of an element type that the library has, in any order of bytes; UsageError for any other."""
    try:
        name = np.dtype(dtype).name
    except TypeError as error:
        raise UsageError(f"{dtype!r} is no element type: {error}; element types are {', '.join(_TYPES)}") from None
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


def _refuse_masked(array: npt.NDArray[Any], what: str) -> None:
    if np.ma.is_masked(array):
        raise UsageError(f"{np.ma.count_masked(array)} of the {array.size} elements of the {what} are masked, and what lies under a mask "
                         "would be read: leave their rows out of the problem, or say what they are: array.filled(0)")


def whole_array(given: npt.ArrayLike | None, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """An array of this machine's order of bytes, of the given element type or of its own. UsageError if digits would be lost."""
    array = np.asanyarray(given)
    _refuse_masked(array, "array")
    name = type_name(array.dtype if dtype is None else dtype)
    if not np.can_cast(array.dtype, name, "safe"):
        raise UsageError(f"an array of {array.dtype} is not one of {name}, and may lose digits: array.astype({name!r})")
    return np.asarray(array, name)


def host_array(block: npt.NDArray[Any] | SupportsDLPack) -> npt.NDArray[Any]:
    """A block as an array of NumPy, in the same memory, in which every element can be read in place."""
    array = _as_numpy(block)
    _refuse_masked(array, "block")
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


class DeviceBlock:
    """A block in the memory of a GPU, not a copy, for libraries that take the CUDA array interface: ``cupy.asarray(X.local)``.

    They order their work after that of the grid's stream, which the interface names. Before the grid uses what they write, they must
    have done it, or do it on :attr:`Grid.stream`.
    """

    def __init__(self, matrix: Matrix) -> None:
        rows, cols, stride = matrix.native.block
        self.shape, self.dtype, self.size = (rows, cols), matrix.dtype, rows * cols
        itemsize = matrix.dtype.itemsize
        self.__cuda_array_interface__ = {
            "version": 3, "shape": self.shape, "typestr": matrix.dtype.str, "strides": (itemsize, stride * itemsize),
            "data": (matrix.native.address if self.size else 0, not matrix.native.writable), "stream": matrix.grid.stream}
        self._kept = matrix.native

    def __repr__(self) -> str:
        return f"<DeviceBlock {self.shape[0]} x {self.shape[1]}, {self.dtype.name}>"


def _device_block(grid: Grid, block: Any) -> tuple[npt.DTypeLike, int, tuple[int, int, int], bool]:
    """Element type, address, (rows, columns, stride) and whether it may be written, of an array in the memory of a GPU."""
    if not hasattr(block, "__cuda_array_interface__"):
        raise UsageError(f"a {type(block).__name__} cannot be a block on a GPU: take an array that has __cuda_array_interface__, of CuPy or PyTorch, "
                         "or let matrix.take_local copy an array of NumPy there")
    facts = block.__cuda_array_interface__
    name, shape = type_name(facts["typestr"]), tuple(facts["shape"])
    if facts.get("mask") is not None or len(shape) not in (1, 2) or not np.dtype(facts["typestr"]).isnative:
        raise UsageError(f"an array of shape {shape} and type {facts['typestr']}{' with a mask' if facts.get('mask') is not None else ''} cannot be a block, "
                         "which has rows and columns, in this machine's order of bytes, and no mask")
    rows, cols = (*shape, 1)[:2]
    size = np.dtype(name).itemsize
    strides = facts.get("strides") or tuple(size * int(np.prod(shape[k + 1:])) for k in range(len(shape)))
    step, stride = (*strides, rows * size)[:2]
    if rows > 1 and step != size or cols > 1 and (stride % size or stride < rows * size):
        raise UsageError(f"a block of {rows} x {cols} with strides of {step} and {stride} bytes is not in column-major (Fortran) order, so that it cannot "
                         "be used in place: cupy.asfortranarray(block)")
    stream = facts.get("stream", "unknown")  # before version 3 of the interface, as in PyTorch, it is not told
    if stream is not None and stream != grid.stream:
        if not hasattr(block, "__dlpack__"):
            raise UsageError(f"work on the {type(block).__name__} may still go on, on stream {stream}, and it has no __dlpack__ to make the grid's "
                             "stream wait: synchronise that stream, and give an array whose stream is None")
        block.__dlpack__(stream=grid.stream)
    address, read_only = facts["data"]
    return name, address, (rows, cols, stride // size if cols > 1 else rows), not read_only


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
    def from_local(cls, grid: Grid, layout: Layout, block: npt.NDArray[Any] | SupportsDLPack) -> Matrix:
        """Uses this rank's block in place; changes of one are changes of the other. Not collective.

        The block has the shape that the layout gives this rank (a vector is one column), one of the four element types,
        and columns without gaps inside: column-major (Fortran) order, as ``numpy.asfortranarray`` makes it. Idle ranks
        give an empty block. No element is masked or of swapped bytes. It is an array of NumPy, or of another library by
        DLPack, in the memory of the host; on a grid of GPUs, one that has ``__cuda_array_interface__``, whose stream the grid's then waits for.
        A matrix of a read-only block can be read only; NumPy before 2.1 makes all memory that comes by DLPack so. Raises
        UsageError or ShapeError, on this rank alone.
        """
        if grid.device == "gpu":
            dtype, *facts, writable = _device_block(grid, block)
            return cls.of(grid, dtype, functions_for(dtype).device_view(grid.native, layout, *facts, block, writable))
        array = host_array(block)
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
        """This rank's block becomes a copy of an array of NumPy, wherever the block lies. Not collective."""
        if self.grid.device == "cpu":
            self.local[...] = array
            return self
        block = np.empty(self.native.block[:2], self.dtype, order="F")
        block[...] = array
        functions_for(self.dtype).upload(block, self.native)
        return self

    def __dlpack__(self, **options: Any) -> Any:
        """This rank's block for another library, not a copy. NumPy before 2.1 refuses if it is read-only."""
        if self.grid.device == "gpu":
            raise BufferError("this block is in the memory of a GPU: cupy.asarray(matrix.local) or torch.as_tensor(matrix.local) is it")
        return self.local.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host, or CUDA's number of it and 0."""
        return (2, 0) if self.grid.device == "gpu" else self.local.__dlpack_device__()

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
