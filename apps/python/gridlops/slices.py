# SPDX-License-Identifier: BSD-3-Clause
"""Block diagonals of many matrices on groups of ranks."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .grids import Cut, Grid
from .matrices import Matrix, functions_for
from .operators import Operator
from .spaces import Space

#: A group: the shape (P, Q) of its grid, and the number of slices that its ranks share.
Group = tuple[tuple[int, int], int]


def divide_ranks(shapes: Sequence[tuple[int, int]], ranks: int, nrhs: int = 1, dtype: npt.DTypeLike = np.float64) -> list[Group]:
    """Divides ranks into groups, and slices of these shapes among them, such that the slowest group is as fast as possible.

    The time is that of the cost model, for nrhs right-hand sides. No other division into consecutive ranks and consecutive
    slices has a smaller one. Not collective.
    """
    return functions_for(dtype).divide_ranks(list(shapes), ranks, nrhs)


def grouped_slices(grid: Grid, shapes: Sequence[tuple[int, int]], block: Callable[[int, slice, slice], Any], *,
                   groups: Sequence[Group] | None = None, nrhs: int = 1, dtype: npt.DTypeLike = np.float64,
                   storage: str = "columns") -> Operator:
    """d_f = G_f m_f for every slice f, where G_f has ``shapes[f]``, on groups of ranks (collective over ``grid.comm``).

    ``block(f, rows, cols)`` returns a part of G_f, as in ``lambda f, rows, cols: G[f, rows, cols]``, where G may be an array that
    ``numpy.load(name, mmap_mode="r")`` leaves in its file. Each rank asks for its own part of its group's slices, one after the
    other. Without ``groups``, :func:`divide_ranks` finds them for nrhs right-hand sides. Ranks that are left over have no slices.

    Models and data have whole slices, one after the other. They are arrays (slices, ny) and (slices, nx) if all G_f are
    nx × ny, and otherwise vectors. A product moves them to the ranks that need them. Raises on all ranks what ``block``
    raises on one.
    """
    functions = functions_for(dtype)
    if groups is None:
        groups = divide_ranks(shapes, grid.shape[0] * grid.shape[1], nrhs, dtype)
    native = _native.SliceGroups(grid.native, list(shapes), list(groups))
    matrices = functions.allocate_slices(native)

    def fill() -> None:
        for f, matrix in zip(range(*native.own_slices), matrices, strict=True):
            own = Matrix.of(grid, dtype, matrix)
            own.take_local(block(f, own.rows, own.cols))

    _native.attempt(grid.all_ranks, fill)
    made = functions.grouped_slices(native, matrices, storage)

    def moved(of_data: bool) -> Operator:
        sizes = [shape[0 if of_data else 1] for shape in shapes]
        same = bool(shapes) and len(set(shapes)) == 1
        space = Space.array(grid, (len(sizes), sizes[0])) if same else Space(grid, Cut.balanced("all", sum(sizes), grid.native))
        return Operator(grid, dtype, functions.into_groups(native, of_data, space.native))

    return moved(True).H @ Operator(grid, dtype, made) @ moved(False)
