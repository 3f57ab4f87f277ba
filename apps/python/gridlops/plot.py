# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of reports, drawn by Matplotlib. Each returns its axes; one rank draws."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .solving.reports import SolveReport
from .solving.sweeps import DampingCurve


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def history(report: SolveReport, columns: Sequence[int] | None = None, axes: Any = None) -> Any:
    """The tested norm of each column, or of these, over the iterations. The report has a history unless it was switched off."""
    axes = _axes(axes)
    for column in range(len(report["reasons"])) if columns is None else columns:
        seen = [(record["iteration"], record["tested_norms"][record["columns"].index(column)])
                for record in report["history"] if column in record["columns"]]
        axes.semilogy(*zip(*seen), label=f"column {column}, {report['reasons'][column]}")
    axes.set(xlabel="iteration", ylabel="tested norm over its reference", title=report["solver"])
    if len(axes.lines) <= 10:
        axes.legend()
    return axes


def picks(curve: DampingCurve, axes: Any = None) -> Any:
    """The curve of a sweep over the damping, ‖x‖ over ‖b − Ax‖, and the damping that the rule chose."""
    axes = _axes(axes)
    axes.loglog(curve["residual_norms"], curve["x_norms"], ".-")
    chosen = curve["chosen"]
    if chosen is not None:
        axes.loglog(curve["residual_norms"][chosen], curve["x_norms"][chosen], "o", label=f"D = {curve['damps'][chosen]:.3g}, by {curve['rule']}")
        axes.legend()
    for k in np.unique(np.linspace(0, len(curve["damps"]) - 1, 5).astype(int)) if len(curve["damps"]) else []:
        axes.annotate(f"{curve['damps'][k]:.2g}", (curve["residual_norms"][k], curve["x_norms"][k]))
    axes.set(xlabel="‖b − Ax‖", ylabel="‖x‖", title=curve["remark"] or "sweep of the damping")
    return axes
