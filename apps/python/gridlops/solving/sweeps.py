# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps of the damping: curves, choices, and one space for all right-hand sides and dampings."""

from __future__ import annotations

import os
from typing import Any, Sequence, TypedDict

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import UsageError
from .factors import SpectralFactor
from ..matrices import Matrix, PerColumn, functions_for, require_matrix, same_type
from ..operators import Operator
from .options import SolveOptions, options_with
from .reports import SolveReport
from .solvers import Columns, solved


class DampingCurve(TypedDict):
    """The result of a sweep of the damping. Arrays have one entry for each damping; on idle ranks they are empty."""

    rule: str
    damps: npt.NDArray[np.float64]
    residual_norms: npt.NDArray[np.float64]  #: ‖b − Ax‖
    x_norms: npt.NDArray[np.float64]
    merits: npt.NDArray[np.float64]  #: the rule compares them: the curvature, or the GCV function; NaN: unknown
    error_bounds: npt.NDArray[np.float64]  #: the most that ‖x − x*‖ can be; NaN: not asked for
    reasons: list[str]
    chosen: int | None  #: the chosen column; None if the rule can choose none
    remark: str  #: why the rule chose nothing, or how far to trust the choice


def damping_curve(damps: Sequence[float] | npt.NDArray[np.float64], X: Matrix, report: SolveReport, rule: str = "lcurve",
                  noise: float = 0) -> DampingCurve:
    """The curve of a sweep over one right-hand side b, and the damping that a rule chooses. Collective over the grid.

    X and the report come from a solver with ``damp=damps`` and copies of b as the columns of B. The rule is "lcurve"
    (the corner of the L-curve), "discrepancy" (the largest damping with ‖b − Ax‖ ≤ ``noise``), "gcv" or "none". "gcv"
    needs as many further columns behind those of b, each filled with :func:`gcv_probe`: the solver takes ``damps``
    twice, this function once.
    """
    return _with_arrays(functions_for(X.dtype).damping_curve(list(damps), report["residual_norms"], report["reasons"], X.native, rule, noise))


def damping_curves(A: Operator, B: Columns, factor: SpectralFactor, damps: Sequence[float] | npt.NDArray[np.float64], rule: str = "gcv",
                   noise: PerColumn = 0, *, options: SolveOptions | None = None, **changes: Any) -> list[DampingCurve]:
    """The curve of each column of B over all dampings, with what the rule chooses, as :func:`damping_curve` gives it. Collective.

    :func:`direct` solves for the smallest damping. The norms at the others follow by the singular values without products with A, and "gcv"
    has the exact trace. On idle ranks the list is empty.
    """
    if not isinstance(factor, SpectralFactor):
        raise UsageError(f"a factor for curves is one of gridlops.spectral_factor(), and not of type {type(factor).__name__}")
    data = A.range.whole_on_one_rank(B, A.dtype) if isinstance(B, np.ndarray) else B
    return [_with_arrays(curve) for curve in functions_for(A.dtype).damping_curves(
        A.native, same_type(A, data).native, same_type(A, factor).native, list(damps), rule, noise, options_with(options, changes).native(False))]


def _with_arrays(curve: Any) -> DampingCurve:
    for name in ("damps", "residual_norms", "x_norms", "merits", "error_bounds"):
        curve[name] = np.asarray(curve[name])
    return curve  # type: ignore[no-any-return]


def gcv_probe(rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """These rows of a vector of ±1 for :func:`damping_curve` by "gcv". The vector is the same on all ranks."""
    return np.vectorize(_native.gcv_probe, otypes=[np.float64])(rows)


class SolutionSpace:
    """One space with the solutions of all right-hand sides for all dampings; making it is collective over the grid.

    For d dampings and r columns of B, a step multiplies one block of r columns with A and Aᴴ, where a sweep of copies
    has d·r columns. It ends when ‖Aᴴ(b−Ax) − D²x‖ ≤ tolerance/2 · ‖Aᴴb‖ for every b and D (tolerance None: that of
    :func:`cgls`), or with ``max_dimension`` vectors (0: no limit). It keeps them, and a block of r more. ``gcv=True`` also solves for
    :func:`gcv_probe`. The columns of A's spaces must be uncut ("stationary-a"). On one rank B may be a whole array.

    With ``limits_cost`` it ends before it has taken more multiplications than :func:`cgls` would for all pairs of
    right-hand side and damping, and :meth:`solve_rest` solves those that it left. ``product_cost``: the multiplications of a product
    with one column, unless A is dense.

    ``checkpoint`` names a directory where the space is saved while it grows, by steps or seconds, and at its end; with
    ``restart``, it goes on from one that was saved for the same A and B, to other dampings, too. ::

        space = gl.SolutionSpace(op, B, np.geomspace(1e-3, 10, 30))
        damps = [0.1 if curve["chosen"] is None else curve["damps"][curve["chosen"]] for curve in space.curves("lcurve")]
        X, report = space.solve(B, damps)
    """

    def __init__(self, A: Operator, B: Columns, damps: Sequence[float] | npt.NDArray[np.float64], *, tolerance: float | None = None,
                 max_dimension: int = 0, gcv: bool = False, limits_cost: bool = False, product_cost: float = 0, checkpoint: str | os.PathLike[str] = "", checkpoint_steps: int = 0,
                 checkpoint_seconds: float = 0, restart: str | os.PathLike[str] = "") -> None:
        data = A.range.whole_on_one_rank(B, A.dtype) if isinstance(B, np.ndarray) else B
        require_matrix("the right-hand sides", data)
        self._operator = A
        saving = SolveOptions(checkpoint=os.fspath(checkpoint), checkpoint_iterations=checkpoint_steps,
                              checkpoint_seconds=checkpoint_seconds, restart=os.fspath(restart))
        self._native = functions_for(A.dtype).SolutionSpace(A.native, same_type(A, data).native, [float(damp) for damp in damps],
                                                            tolerance, max_dimension, gcv, limits_cost, product_cost,
                                                            saving.native(False).checkpoint)

    @classmethod
    def load(cls, A: Operator, directory: str | os.PathLike[str]) -> SolutionSpace:
        """The space that :meth:`save` wrote there, on any grid; collective over A's.

        It gives the same curves and solves the same problems. InputError: the files are damaged, or for another operator.
        """
        space = cls.__new__(cls)
        space._operator = A
        space._native = functions_for(A.dtype).SolutionSpace(A.native, os.fspath(directory))
        return space

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes its vectors as .npy files, the small problems and the curves to a directory for :meth:`load`. Collective.

        Neither A nor B are written. The directory is made if it is missing, and must hold nothing that was saved before.
        """
        self._native.save(os.fspath(directory))

    @property
    def dimension(self) -> int:
        """The number of vectors that solutions are combinations of."""
        return int(self._native.dimension)

    @property
    def products(self) -> int:
        """The number of columns that were multiplied with A or Aᴴ."""
        return int(self._native.products)

    @property
    def end(self) -> str:
        """Why it has this dimension: "converged", "complete" (A leads no further), "dimension_limit", "cost_limit" or "non_finite"."""
        return str(self._native.end)

    def curves(self, rule: str = "lcurve", noise: PerColumn = 0, *, sigma_min: float = 0, frobenius_norm: float = 0) -> list[DampingCurve]:
        """The curve of each right-hand side, with what the rule chooses, as :func:`damping_curve` gives it. Not collective.

        Norms are those of the space's small problems; no product with A confirms them. "gcv" needs ``gcv=True``. Given ‖A‖_F,
        the errors of all points are bounded from these norms, as :func:`error_bounds` does.
        """
        return [_with_arrays(curve) for curve in self._native.curves(rule, noise, sigma_min, frobenius_norm)]

    def solve_rest(self, B: Columns, *, options: SolveOptions | None = None, **changes: Any) -> SolveReport:
        """Solves the pairs of right-hand side and damping that the space has not, and reports on them. Collective.

        This is :func:`cgls` from the x in the space. :meth:`curves` and :meth:`save` then have its norms and verdicts.
        """
        data = self._operator.range.whole_on_one_rank(B, self._operator.dtype) if isinstance(B, np.ndarray) else B
        return SolveReport(self._native.solve_rest(same_type(self._operator, data).native, options_with(options, changes).native(False)))

    def solve(self, B: Columns, damp: PerColumn, *, out: Matrix | None = None, options: SolveOptions | None = None,
              **changes: Any) -> tuple[Any, SolveReport]:
        """X and the report for the same B with one damping, or one for each column. Collective.

        This is :func:`cgls` from the solution in the space: norms and verdicts are recomputed from their definitions,
        and columns iterate where the space is not enough.
        """
        return solved(self._operator, B, None, out, options, {**changes, "damp": damp},
                      lambda native, b, x, how: self._native.solve(b, x, how))

    def solve_others(self, B: Columns, damp: PerColumn, *, out: Matrix | None = None, options: SolveOptions | None = None,
                     **changes: Any) -> tuple[Any, SolveReport]:
        """The same for other data, of any number of columns, from the best x in the space. Collective.

        That takes one product with Aᴴ for each. If the data are like B, little is left to do.
        """
        return solved(self._operator, B, None, out, options, {**changes, "damp": damp},
                      lambda native, b, x, how: self._native.solve_others(b, x, how))
