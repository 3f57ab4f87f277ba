# SPDX-License-Identifier: BSD-3-Clause
"""Where models and data live, and whole arrays."""
# Reasons: docs/decisions/0047-python-arrays.md.

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .blocks import Usable, block_of, type_name
from .errors import ShapeError
from .grids import Cut, Grid, Layout
from .matrices import Matrix, functions_for, require_one_rank, whole_array


class ArrayForm(NamedTuple):
    """How a whole array holds right-hand sides: with the sizes of its space, or each as a vector; and how many."""

    has_sizes: bool
    nrhs: int | None  #: None: one, without a dimension of its own

    def shape_in(self, space: Space) -> tuple[int, ...]:
        """The shape of such an array of another space."""
        sizes = space.sizes if self.has_sizes and space.sizes else (space.dimension,)
        return sizes if self.nrhs is None else (*sizes, self.nrhs)


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

        The rows of a matrix in this space are the elements of the array, block by block. :meth:`scatter_array` and
        :meth:`gather_array` take and return whole arrays.
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
        """This rank's part, as an index of a whole array; empty on idle ranks."""
        return self.native.local_box

    def local_elements(self) -> npt.NDArray[np.int64]:
        """The numbers of this rank's rows, as elements of the whole array in C order."""
        numbers = np.zeros(1, np.int64)
        for size, part in zip(self._sizes(), self.local_box, strict=True):
            numbers = (numbers[:, np.newaxis] * size + np.arange(part.start, part.stop)).ravel()
        return numbers

    def form_of(self, shape: tuple[int, ...]) -> ArrayForm:
        """How a whole array of this shape holds right-hand sides, which are its last dimension. Raises ShapeError."""
        forms = [ArrayForm(False, None), ArrayForm(False, shape[-1] if shape else None)]
        if self.sizes:
            forms = [form._replace(has_sizes=True) for form in forms] + forms
        for form in forms:
            if form.shape_in(self) == shape:
                return form
        wanted = " or ".join(dict.fromkeys(str(ArrayForm(sizes, None).shape_in(self)) for sizes in (True, False)))
        raise ShapeError(f"an array of shape {shape} does not fit a space of shape {wanted}, to which several right-hand sides "
                         "add a last dimension")

    def scatter_array(self, whole: npt.ArrayLike | None, root: int = 0, dtype: npt.DTypeLike | None = None) -> Matrix:
        """The matrix of a whole array that the grid's rank ``root`` has; other ranks pass None. Collective over ``grid.comm``.

        The array has the sizes of the space, whatever its cuts, or is a vector. Right-hand sides are a last dimension. Its type
        is that of the matrix, in any order of bytes, or becomes ``dtype`` without loss. Raises UsageError or ShapeError on all ranks.
        """
        rows: npt.NDArray[Any] | None = None

        def put_in_order() -> tuple[str, int]:
            nonlocal rows
            array = whole_array(whole, dtype)
            form = self.form_of(array.shape)
            nrhs = 1 if form.nrhs is None else form.nrhs
            rows = np.empty((self.dimension, nrhs), array.dtype, order="F")
            array = array.reshape(*self._sizes(), nrhs)
            for box, part in self._parts():
                rows[part] = array[box].reshape(part.stop - part.start, nrhs)
            return type_name(array.dtype), nrhs

        name, nrhs = self.grid.told_by(root, put_in_order)
        X = zeros(self, nrhs, name)
        X.scatter_rows(rows, root)
        return X

    def whole_on_one_rank(self, array: npt.NDArray[Any], dtype: npt.DTypeLike) -> Matrix:
        """The matrix of an array of NumPy, where there is one rank; UsageError on several."""
        require_one_rank(self.grid, "space.scatter_array(array), with the operator's domain or range as space,")
        return self.scatter_array(array, 0, dtype)

    def gather_array(self, X: Matrix, root: int = 0) -> npt.NDArray[Any] | None:
        """The whole array of a matrix in this space, on the grid's rank ``root``; None elsewhere. Collective over the grid.

        It has the sizes of the space, or is a vector. Right-hand sides, unless there is one, are a last dimension. Raises ShapeError.
        """
        if X.layout.rows != self.rows or X.space is not None and (X.space != self or X.space.sizes != self.sizes):
            made_in = X.layout if X.space is None else X.space
            raise ShapeError(f"a matrix of {made_in!r} is not in {self!r}: ask the space that it was made in, its attribute space")
        rows = X.gather_rows(root)
        if rows is None:
            return None
        whole = np.empty((*self._sizes(), X.shape[1]), X.dtype)
        for box, part in self._parts():
            whole[box] = rows[part].reshape(whole[box].shape)
        return whole[..., 0] if X.shape[1] == 1 else whole

    def _sizes(self) -> tuple[int, ...]:
        return self.sizes if self.sizes else (self.dimension,)

    def _parts(self) -> list[tuple[tuple[slice, ...], slice]]:
        """Each part of the rows, as an index of the whole array and as rows."""
        ends = np.cumsum(self.rows.sizes).tolist()
        return [(box, slice(end - size, end)) for box, size, end in zip(self.native.boxes, self.rows.sizes, ends, strict=True)]

    def layout(self, nrhs: int) -> Layout:
        """The layout of a matrix with this many columns."""
        return self.native.layout(nrhs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.native == other.native

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Space {self.native!r}>"


def zeros(space: Space, nrhs: int = 1, dtype: npt.DTypeLike = np.float64) -> Matrix:
    """A matrix of zeros in a space, with nrhs columns (collective over the grid)."""
    return Matrix.of(space.grid, dtype, functions_for(dtype).allocate(space.grid.native, space.layout(nrhs)), space)


def from_local(space: Space, block: Usable, nrhs: int | None = None) -> Matrix:
    """This rank's block as a matrix in a space, without a copy; see :meth:`Matrix.from_local`. Not collective.

    ``nrhs`` is the number of all columns; needed only where columns are cut over ranks.
    """
    given = block_of(space.grid, block)
    matrix = Matrix.in_memory(space.grid, space.layout(given.shape[1] if nrhs is None else nrhs), given)
    matrix.space = space
    return matrix
