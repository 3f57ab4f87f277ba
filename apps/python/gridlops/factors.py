# SPDX-License-Identifier: BSD-3-Clause
"""Factors of least-squares problems, for many right-hand sides."""

from __future__ import annotations

from typing import Any, Mapping

import numpy.typing as npt

from .grids import Grid
from .matrices import functions_for
from .operators import Operator


class Factor(Operator):
    """(RᴴR)⁻¹ as an operator: that of AᴴA + D²I, or of AAᴴ + D²I if A has fewer rows than columns. :func:`factor` makes one.

    ``damp`` is D. ``by_qr``: by QR of [A; D·I], else by Cholesky. ``condition`` is an estimate of cond([A; D·I]), and
    ``rank`` its rank but for rounding, where QR was necessary. ``shift`` is what had to be added to D².
    """

    def __init__(self, grid: Grid, dtype: npt.DTypeLike, native: Any, facts: Mapping[str, Any]) -> None:
        super().__init__(grid, dtype, native)
        self.of_data: bool = facts["of_data"]
        self.by_qr: bool = facts["by_qr"]
        self.damp: float = facts["damp"]
        self.shift: float = facts["shift"]
        self.condition: float = facts["condition"]
        self.rank: int = facts["rank"]


def factor(A: Operator, damp: float = 0.0) -> Factor:
    """The factor of A for :func:`direct`, to be used for any number of right-hand sides. Collective.

    Every rank holds all of it: min(m, n)² elements. A must be in host memory.
    """
    return Factor(A.grid, A.dtype, *functions_for(A.dtype).factor(A.native, damp))
