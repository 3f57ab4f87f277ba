# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of matrices in memory that other libraries know: NumPy's arrays, DLPack, and the CUDA array interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import UsageError

if TYPE_CHECKING:
    from .grids import Grid
    from .matrices import Matrix

_TYPES = ("float32", "float64", "complex64", "complex128")

#: Kinds of devices, by DLPack's numbers.
CPU, CUDA = 1, 2
_NAMES = {CPU: "the memory of the host", CUDA: "the memory of GPU {}", 8: "the memory of an Apple GPU", 10: "the memory of AMD's GPU {}"}
#: Their memory is the host's, too: page-locked by CUDA or ROCm, or moved between host and GPU.
_ALSO_HOST = (3, 11, 13)
#: Its memory is a GPU's, too.
_ALSO_CUDA = (13,)
#: NumPy's names of element types, by DLPack's numbers. The bits follow.
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


def type_name(dtype: npt.DTypeLike) -> str:
    """The name of an element type that the library has, in any order of bytes; UsageError for any other."""
    try:
        name = np.dtype(dtype).name
    except TypeError as error:
        raise UsageError(f"{dtype!r} is no element type: {error}; element types are {', '.join(_TYPES)}") from None
    if name not in _TYPES:
        raise UsageError(f"there are no matrices of {name}: element types are {', '.join(_TYPES)}; try array.astype(...)")
    return name


class SupportsDLPack(Protocol):
    """An array of any library that exchanges memory by DLPack: PyTorch, JAX, CuPy and others."""

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule with the address, the sizes and the strides of the memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of the device that has the memory, and its number."""


class SupportsCudaArrayInterface(Protocol):
    """An array in the memory of a GPU, of CuPy, PyTorch or Numba."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Its address, shape, strides and element type, and the stream on which it is made."""


#: What :meth:`Matrix.from_local` uses in place.
Usable = npt.NDArray[Any] | SupportsDLPack | SupportsCudaArrayInterface


class Block(NamedTuple):
    """Memory in which every element of a block can be read in place."""

    dtype: str
    shape: tuple[int, int]
    address: int
    stride: int  #: in elements, between columns
    writable: bool
    keeper: Any  #: keeps the memory alive


def block_of(grid: Grid, given: Usable) -> Block:
    """The block that an array is, which lies where the grid's matrices do. The grid's stream waits for the array's.

    Raises UsageError, on this rank alone.
    """
    if isinstance(given, np.ndarray) and grid.device == "cpu":
        return _of_numpy(given)
    if hasattr(given, "__dlpack__"):
        return _of_dlpack(grid, given)
    if grid.device == "gpu" and hasattr(given, "__cuda_array_interface__"):
        return _of_cuda_array_interface(grid, given)
    usable = ("of NumPy, or one that has __dlpack__" if grid.device == "cpu" else "of CuPy, PyTorch or JAX, which has __dlpack__ or "
              "__cuda_array_interface__, or let matrix.take_local copy an array of NumPy")
    raise UsageError(f"a {type(given).__name__} cannot be a block: take an array {usable}")


def refuse_masked(array: npt.NDArray[Any], what: str) -> None:
    """UsageError if elements of the array are masked."""
    if np.ma.is_masked(array):
        raise UsageError(f"{np.ma.count_masked(array)} of the {array.size} elements of the {what} are masked, and what lies under a mask "
                         "would be read: leave their rows out of the problem, or say what they are: array.filled(0)")


def _of_numpy(array: npt.NDArray[Any]) -> Block:
    refuse_masked(array, "block")
    return _block(array.dtype, array.shape, array.strides, array.ctypes.data, array.flags.writeable, array,
                  "numpy.asfortranarray(block), or allocate it with order='F'")


def _of_dlpack(grid: Grid, array: Any) -> Block:
    """As :func:`block_of` for an array that has ``__dlpack__``. Before DLPack's version 1 an array cannot say that it is read-only."""
    kind, number = (int(part) for part in array.__dlpack_device__())
    own = (CPU, 0) if grid.device == "cpu" else (CUDA, grid.gpu)
    if kind not in (own[0], *(_ALSO_HOST if grid.device == "cpu" else _ALSO_CUDA)) or kind == CUDA and number != grid.gpu:
        where = _NAMES.get(kind, "memory of another kind").format(number)
        remedy = "copy it there" if grid.device == "cpu" else "copy it there, or let matrix.take_local copy an array of NumPy"
        raise UsageError(f"a {type(array).__name__} on device {(kind, number)} of DLPack, {where}, cannot be used in place: blocks of this grid "
                         f"are in {_NAMES[own[0]].format(grid.gpu)}, {own}; {remedy}")
    stream = {} if grid.device == "cpu" else {"stream": grid.stream}
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # of a library that has no version 1
            capsule = array.__dlpack__(**stream)
    except (BufferError, RuntimeError) as error:
        raise UsageError(f"a {type(array).__name__} on device {(kind, number)} of DLPack does not give its memory: {error}") from error
    address, shape, strides, (code, bits, lanes), _, read_only, keeper = _native.take_tensor(capsule)
    name = f"{_CODES.get(code, f'type {code} of ')}{bits}"
    if lanes != 1:
        raise UsageError(f"each element of the {type(array).__name__} has {lanes} lanes of {name}, and an element of a matrix is one number: "
                         "make the lanes a dimension of the array")
    if strides is None:
        strides = [int(np.prod(shape[k + 1:])) for k in range(len(shape))]
    size = np.dtype(type_name(name)).itemsize
    return _block(name, shape, [stride * size for stride in strides], address, not read_only, keeper,
                  "tensor.t().contiguous().t() of PyTorch, or "
                  f"{'numpy.asfortranarray(block)' if grid.device == 'cpu' else 'cupy.asfortranarray(cupy.from_dlpack(block))'}")


def _of_cuda_array_interface(grid: Grid, array: Any) -> Block:
    facts = array.__cuda_array_interface__
    shape, size = tuple(facts["shape"]), np.dtype(type_name(facts["typestr"])).itemsize
    if facts.get("mask") is not None:
        raise UsageError(f"a {type(array).__name__} with a mask cannot be a block, which has none: say what the masked elements are")
    stream = facts.get("stream", "unknown")  # before version 3 of the interface it is not told
    if stream is not None and stream != grid.stream:
        raise UsageError(f"work on the {type(array).__name__} may still go on, on stream {stream}, and it has no __dlpack__ to make the grid's "
                         "stream wait: synchronise that stream, and give an array whose stream is None")
    strides = facts.get("strides") or [size * int(np.prod(shape[k + 1:])) for k in range(len(shape))]
    address, read_only = facts["data"]
    return _block(facts["typestr"], shape, strides, address, not read_only, array, "cupy.asfortranarray(block)")


def _block(dtype: npt.DTypeLike, shape: Sequence[int], strides: Sequence[int], address: int, writable: bool, keeper: Any, remedy: str) -> Block:
    """The block of an array, whose strides are in bytes; a vector is one column. UsageError if it cannot be used in place."""
    name, size = type_name(dtype), np.dtype(dtype).itemsize
    if len(shape) not in (1, 2):
        raise UsageError(f"a block of {len(shape)} dimensions, {tuple(shape)}, cannot be that of a matrix, which has rows and columns: "
                         "array.reshape(rows, columns)")
    if not np.dtype(dtype).isnative:
        raise UsageError(f"the bytes of the block's elements, {np.dtype(dtype).str!r}, are in the order of another machine: "
                         "array.astype(array.dtype.newbyteorder('='))")
    rows, cols = (*shape, 1)[:2]
    if rows == 0 or cols == 0:
        return Block(name, (rows, cols), 0, rows, writable, keeper)
    if address % np.dtype(name).alignment != 0:
        raise UsageError(f"the elements of the block, {name} from address {address:#x} on, do not lie at multiples of their size: array.copy()")
    step, stride = (*strides, rows * size)[:2]
    if rows > 1 and step != size or cols > 1 and (stride % size != 0 or stride < rows * size):
        raise UsageError(f"a block of {rows} x {cols} with strides of {step} and {stride} bytes is not in column-major (Fortran) order, so that it cannot "
                         f"be used in place: make it by {remedy}")
    return Block(name, (rows, cols), address, stride // size if cols > 1 else rows, writable, keeper)


class DeviceBlock:
    """A block in the memory of a GPU, not a copy, for libraries that take DLPack or the CUDA array interface: ``cupy.from_dlpack(X.local)``.

    By DLPack their streams wait for the grid's. The CUDA array interface names the grid's stream, after whose work they order theirs. Before
    the grid uses what they write, they must have done it, or do it on :attr:`Grid.stream`.
    """

    def __init__(self, matrix: Matrix) -> None:
        rows, cols, stride = matrix.native.block
        self.shape, self.dtype, self.size = (rows, cols), matrix.dtype, rows * cols
        itemsize = matrix.dtype.itemsize
        self.__cuda_array_interface__ = {
            "version": 3, "shape": self.shape, "typestr": matrix.dtype.str, "strides": (itemsize, stride * itemsize),
            "data": (matrix.native.address if self.size else 0, not matrix.native.writable), "stream": matrix.grid.stream}
        self._matrix = matrix

    def __dlpack__(self, **options: Any) -> Any:
        """See :meth:`Matrix.__dlpack__`."""
        return self._matrix.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """See :meth:`Matrix.__dlpack_device__`."""
        return self._matrix.__dlpack_device__()

    def __repr__(self) -> str:
        return f"<DeviceBlock {self.shape[0]} x {self.shape[1]}, {self.dtype.name}>"


def give_tensor(matrix: Matrix, stream: int | None, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None,
                copy: bool | None) -> Any:
    """See :meth:`Matrix.__dlpack__`."""
    on_gpu, device = matrix.grid.device == "gpu", matrix.__dlpack_device__()
    if not on_gpu and stream is not None:
        raise BufferError(f"stream {stream} was given for a block in the memory of the host, which has no streams: leave stream out")
    if on_gpu and stream == 0:
        raise BufferError("stream 0 may mean two streams of CUDA: give 1 for the default stream, 2 for that of the thread, or an address")
    if dl_device is not None and tuple(dl_device) != device:
        if dl_device[0] != CPU or copy is False:
            raise BufferError(f"this block is on device {device} of DLPack, and cannot be given on {tuple(dl_device)}"
                              f"{' without a copy' if copy is False else ''}: take it where it is, or matrix.host_copy()")
        return matrix.host_copy().__dlpack__()
    versioned = max_version is not None and max_version[0] >= 1
    if not versioned and not copy and not matrix.native.writable:
        raise BufferError("this block is read-only, which DLPack before version 1 cannot say: take matrix.copy(), or a library that asks for "
                          "max_version=(1, 0), as NumPy from 2.1 on")
    capsule = getattr(_native, matrix.dtype.name).give_tensor(matrix.native, device, versioned, bool(copy))
    if on_gpu and stream not in (-1, matrix.grid.stream):
        matrix.grid.native.synchronize()
    return capsule
