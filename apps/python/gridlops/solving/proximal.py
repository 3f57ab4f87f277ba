# SPDX-License-Identifier: BSD-3-Clause
"""Proximal operators: functions that solvers minimise beside a misfit, or in its place, and what is composed of them."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..matrices import Matrix, PerColumn, functions_for, same_type
from ..operators import Operator
from ..spaces import Space


class Proximal:
    """A function f with a proximal map, for :func:`proximal_gradient`, :func:`admm` and :func:`primal_dual`.

    It acts on each column of a matrix. Methods are collective over the grid; τ is one number, or one for each column.
    """

    def __init__(self, dtype: npt.DTypeLike, native: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.native = native

    def value(self, X: Matrix) -> npt.NDArray[np.float64]:
        """f of each column, infinite where it is, on every rank."""
        return np.array(self.native.value(same_type(self, X).native))

    def prox(self, X: Matrix, tau: PerColumn = 1) -> Matrix:
        """xⱼ ← prox_τf(xⱼ), which minimises f(x) + ‖x − xⱼ‖²/(2τ); returns X."""
        self.native.prox(_for_columns(tau, same_type(self, X)), X.native)
        return X

    def prox_of_conjugate(self, X: Matrix, tau: PerColumn = 1) -> Matrix:
        """The same for the conjugate f*(y) = sup Re xᴴy − f(x), with τ > 0."""
        self.native.prox_of_conjugate(_for_columns(tau, same_type(self, X)), X.native, X.zeros_like().native)
        return X


def _for_columns(tau: PerColumn, X: Matrix) -> list[float]:
    return np.broadcast_to(np.asarray(tau, np.float64), X.shape[1]).tolist()


def threshold_penalty(kind: str = "soft", sigma: float = 1, dtype: npt.DTypeLike = np.float64) -> Proximal:
    """σ‖x‖₁ for "soft", σ times the number of non-zero elements for "hard", and so on."""
    return Proximal(dtype, functions_for(dtype).threshold_penalty(kind, sigma))


def box(lower: float, upper: float, dtype: npt.DTypeLike = np.float64) -> Proximal:
    """0 if all elements are within [lower, upper], otherwise infinity."""
    return Proximal(dtype, functions_for(dtype).box(lower, upper))


def l21_norm(stack: Sequence[Space], sigma: float = 1, dtype: npt.DTypeLike = np.float64) -> Proximal:
    """σ times the sum of Euclidean norms, of a stack of vectors in these spaces, which are all the same.

    One norm is that of the elements at one place of all vectors: with ``gradient(space)`` of a two-dimensional array,
    ``l21_norm([space] * 2)`` is isotropic total variation.
    """
    return Proximal(dtype, functions_for(dtype).l21_norm([space.native for space in stack], sigma))


def l21_norm_along(space: Space, dim: int, sigma: float = 1, dtype: npt.DTypeLike = np.float64) -> Proximal:
    """The same of an array, where one norm is that of a line along dimension ``dim``. It may be cut."""
    return Proximal(dtype, functions_for(dtype).l21_norm_along(space.native, dim, sigma))


def _column(of: Any, vector: Matrix | None) -> Any:
    return None if vector is None else same_type(of, vector).native


def quadratic(rho: float = 1, a: Matrix | None = None, dtype: npt.DTypeLike = np.float64) -> Proximal:
    """ρ/2 ‖x‖² + Re aᴴx. a is one uncut column, with rows cut like those of x; the function uses it in place."""
    none = Proximal(dtype, None)
    return Proximal(dtype, functions_for(dtype).quadratic(rho, _column(none, a)))


def postcompose(f: Proximal, sigma: float = 1, rho: float = 0, a: Matrix | None = None) -> Proximal:
    """σ f(x) + ρ/2 ‖x‖² + Re aᴴx, with a as in :func:`quadratic`."""
    return Proximal(f.dtype, functions_for(f.dtype).postcompose(f.native, sigma, rho, _column(f, a)))


def precompose(f: Proximal, s: float | Operator, t: Matrix | None = None, *, c: float = 1) -> Proximal:
    """f(s x + t), with t like the a of :func:`quadratic`; or f(S x) for an operator S with S Sᴴ = c I, which nothing checks."""
    native = functions_for(f.dtype)
    if isinstance(s, Operator):
        if t is not None:
            raise UsageError("an operator and a shift together: compose twice, precompose(precompose(f, 1, t), S)")
        return Proximal(f.dtype, native.precompose_orthogonal(f.native, same_type(f, s).native, c))
    return Proximal(f.dtype, native.precompose(f.native, s, _column(f, t)))


def separable_sum(spaces: Sequence[Space], parts: Sequence[Proximal]) -> Proximal:
    """f₁(x₁) + f₂(x₂) + …, where x is a stack of vectors in these spaces, as :func:`vertical_stack` makes."""
    same_type(*parts)
    native = functions_for(parts[0].dtype)
    return Proximal(parts[0].dtype, native.separable_sum([space.native for space in spaces], [f.native for f in parts]))
