# SPDX-License-Identifier: BSD-3-Clause
"""Reports of solvers."""

from __future__ import annotations

import html
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt


class IterationRecord(TypedDict):
    """One iteration: ``residual_norms[k]`` and ``tested_norms[k]`` belong to the active column ``columns[k]``."""

    iteration: int
    columns: list[int]
    residual_norms: list[float]
    tested_norms: list[float]


class SolveReport(dict[str, Any]):
    """The result of a solve, the same on all members of the grid. Lists and arrays have one entry for each column of B.

    The items are plain values, which ``json.dumps`` takes. Each item is also an attribute, which is an array of NumPy for
    the numbers of columns. ``print(report)`` prints a table.
    """

    solver: str
    iterations: int  #: the most of any column
    reasons: list[str]  #: "converged", "stagnated", "iteration_limit", … (docs/errors.md)
    column_iterations: npt.NDArray[np.int64]
    residual_norms: npt.NDArray[np.float64]  #: ‖b − Ax‖, from its definition
    normal_residual_norms: npt.NDArray[np.float64]  #: ‖Aᴴ(b − Ax) − D²x‖, from its definition
    relative_normal_residual_norms: npt.NDArray[np.float64]  #: the same divided by ‖b‖, unless b is 0: for :func:`error_bounds`
    operator_norms: npt.NDArray[np.float64]
    conditions: npt.NDArray[np.float64]
    reference_norms: npt.NDArray[np.float64]  #: the tolerance is relative to it: ‖Aᴴb‖; for cg ‖b‖, for ista ‖x‖, …
    tested_norms: npt.NDArray[np.float64]  #: the tested norm, from its definition, over its reference
    quadratures: npt.NDArray[np.float64]  #: for :func:`error_bounds`: 1, or what Gauss-Radau quadrature leaves of it
    sigma_min: float  #: the option
    weighted: bool  #: whether numbers of B had weights
    misfit_scales: npt.NDArray[np.float64]  #: with a misfit: s, with which the verdicts were made
    misfit_solves: npt.NDArray[np.int64]
    misfit_rejected: npt.NDArray[np.int64]  #: numbers of B with less than half of their weight
    misfit_distances: npt.NDArray[np.float64]  #: the most that ‖x − x*‖ can be, but for rounding; infinite where that is not known
    step: float  #: the first step of ista and fista; else 0
    lambdas: list[float]  #: of ista and fista; else empty
    history: list[IterationRecord]
    alarms: list[dict[str, Any]]
    guard_products: int
    refinement: dict[str, Any]  #: of :func:`solve_refined` alone

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"a report has no {name!r}: it has {', '.join(self)}")
        return np.asarray(self[name]) if "NDArray" in str(self.__annotations__.get(name)) else self[name]

    def __repr__(self) -> str:
        counts = ", ".join(f"{self['reasons'].count(reason)} {reason}" for reason in dict.fromkeys(self["reasons"]))
        return f"<SolveReport {self['solver']}: {self['iterations']} iterations, columns: {counts or 'none'}>"

    def _table(self) -> list[tuple[str, ...]]:
        numbers = zip(self["reasons"], self["column_iterations"], self["residual_norms"], self["tested_norms"], strict=True)
        rows = [(str(j), reason, str(iterations), f"{residual:.6g}", f"{tested:.3g}")
                for j, (reason, iterations, residual, tested) in enumerate(numbers)]
        most = 20
        if len(rows) > most:
            rows[most // 2 : -most // 2] = [("…",) * 5]
        return [("column", "verdict", "iterations", "‖b − Ax‖", "tested norm"), *rows]

    def __str__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join([repr(self)[1:-1], *("  ".join(map(str.rjust, row, widths)) for row in table)])

    def _repr_html_(self) -> str:
        head, *rows = ["".join(f"<td>{cell}</td>" for cell in row) for row in self._table()]
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table><tr>{head.replace('td>', 'th>')}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
