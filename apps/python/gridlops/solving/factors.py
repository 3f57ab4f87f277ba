# SPDX-License-Identifier: BSD-3-Clause
"""Factors of least-squares problems, for many right-hand sides."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np
import numpy.typing as npt

from ..grids import Grid
from ..matrices import functions_for
from ..operators import Operator


class Factor(Operator):
    """(RᴴR)⁻¹ as an operator: that of AᴴA + D²I, or of AAᴴ + D²I if A has fewer rows than columns. :func:`factor` makes one.

    ``damp`` is D. ``by_qr``: by QR of [A; D·I] or [Aᴴ; D·I], else by Cholesky. ``condition`` is an estimate of cond([A; D·I]), and
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


class SpectralFactor(Factor):
    """Singular values and vectors of A: (AᴴA + D²I)⁻¹, or (AAᴴ + D²I)⁻¹, for every D from ``damp`` on, which is its own as an operator.
    :func:`spectral_factor` makes one.
    """

    def __init__(self, grid: Grid, dtype: npt.DTypeLike, native: Any, facts: Mapping[str, Any], values: list[float], free: Callable[[float], float]) -> None:
        super().__init__(grid, dtype, native, facts)
        #: min(m, n) of them, in descending order. None on idle ranks.
        self.singular_values: npt.NDArray[np.float64] = np.asarray(values)
        self._free = free

    def free_dimensions(self, damp: float) -> float:
        """trace(I − A(AᴴA + D²I)⁻¹Aᴴ), by which generalised cross-validation divides. Not collective; 0 on idle ranks."""
        return self._free(damp)


def factor(A: Operator, damp: float = 0.0) -> Factor:
    """The factor of A for :func:`direct`, to be used for any number of right-hand sides. Collective.

    Every rank holds all of it: min(m, n)² elements. A must be in host memory.
    """
    return Factor(A.grid, A.dtype, *functions_for(A.dtype).factor(A.native, damp))


def spectral_factor(A: Operator, least_damp: float = 0.0) -> SpectralFactor:
    """A factor of A for :func:`direct` and :func:`damping_curves`, with any dampings that are not smaller than this one. Collective.

    Every rank holds all of it, min(m, n)² elements, and one rank computes it, by LAPACK. A must be in host memory.
    """
    return SpectralFactor(A.grid, A.dtype, *functions_for(A.dtype).spectral_factor(A.native, least_damp))
