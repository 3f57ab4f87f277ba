# SPDX-License-Identifier: BSD-3-Clause
"""Ridges of many targets, each with its own damping by cross-validation, for matrices on many ranks."""

from __future__ import annotations

from typing import Any, Sequence, TypedDict

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import UsageError
from ..grids import Cut, Layout
from ..matrices import Matrix, functions_for, same_type
from ..operators import Operator
from .solvers import Columns

Numbers = Sequence[float] | npt.NDArray[Any]


class RidgeReport(TypedDict):
    """What :func:`ridge` says of its targets. Arrays have an entry for each; on idle ranks they are empty."""

    alphas: npt.NDArray[np.float64]  #: the chosen D²
    chosen: npt.NDArray[np.int64]  #: its number among the dampings
    best_scores: npt.NDArray[np.float64]  #: its score; NaN without validation
    scores: npt.NDArray[np.float64]  #: of every damping, a row for each; empty without validation
    intercepts: npt.NDArray[Any]  #: empty without coefficients, as are the next three
    reasons: list[str]  #: the verdicts on the coefficients, from norms recomputed from A and B
    residual_norms: npt.NDArray[np.float64]
    normal_residual_norms: npt.NDArray[np.float64]
    at_smallest: int  #: how many targets chose the smallest damping, so that a wider range may be better
    at_largest: int
    deciding_row: int  #: with leave-one-out the first row that decides its own prediction, so that some dampings have no score; or -1


def ridge(A: Operator, B: Columns, alphas: Numbers | float, *, folds: int | str | Numbers | None = 5, score: str = "r2",
          groups: Numbers | None = None, weights: Numbers | None = None, one_standard_error: bool = False, intercept: bool = True, standardize: bool = False,
          coefficients: bool = True, batch: int = 0) -> tuple[Any, RidgeReport]:
    """Coefficients X that minimise ‖b − β − Ax‖² + α‖x‖² for each column b of B, and the report. Collective.

    A has a row for each observation, and never moves: :func:`matrix_mult` by "stationary-a" or "block", :func:`stream_matrix`,
    or :func:`compress`. B is in its range, or on one rank an array. ``alphas`` are D², of which each target gets the best.
    ``folds`` says how predictions are made that are scored: a number of contiguous folds, the label of the fold of each row
    (negative: always in training), "leave-one-out" or "loo" (standardised by deviations of all rows), "gcv", or None, with one damping, or one for each target. ``score`` is "r2",
    "correlation" or "negative-mse"; means over the folds count. Targets with the same number in ``groups`` share a damping.
    ``weights`` has a weight, not negative, for each row: of its squares, and in means and scores.
    ``one_standard_error`` takes the largest damping that is at most that much worse than the best. ``standardize`` divides
    features by their standard deviation in each training set. Without ``coefficients`` X is None. ``batch``: the most targets
    that all ranks work on at a time. ::

        X, report = gl.ridge(gl.matrix_mult(A), B, np.geomspace(1, 1e5, 20), folds=5)
    """
    if not isinstance(A, Operator):
        raise UsageError(f"a value of type {type(A).__name__} stands where an Operator is needed: gridlops.matrix_mult(matrix) makes one of a Matrix, "
                         "and gridlops.RidgeCV takes arrays")
    data = A.range.whole_on_one_rank(B, A.dtype) if isinstance(B, np.ndarray) else B
    same_type(A, data)
    rows, validation, labels, numbers = A.shape[0], "folds", [], []
    chosen: list[float] = []
    of_rows: list[float] = []

    def read() -> bool:
        nonlocal validation, labels, numbers, chosen, of_rows
        if folds is None or isinstance(folds, str):
            validation = {None: "none", "loo": "leave-one-out"}.get(folds, folds or "none")
        elif np.ndim(folds) == 0:
            labels = _native.contiguous_folds(rows, int(folds))  # type: ignore[arg-type]
        else:
            labels = _whole("folds", folds)
        numbers = [] if groups is None else _whole("groups", groups)
        of_rows = [] if weights is None else [float(weight) for weight in np.asarray(weights)]
        dampings = np.atleast_1d(np.asarray(alphas))
        if dampings.ndim != 1:
            raise UsageError(f"alphas are a number or a vector, and not of shape {dampings.shape}")
        chosen = [float(alpha) for alpha in dampings]
        return coefficients

    _native.agree_on_ridge(A.grid.native, read)
    columns = data.layout.cols
    cut = A.domain.rows if columns.axis == "uncut" else Cut("uncut", [A.shape[1]])
    X = Matrix(A.grid, Layout(cut, columns), A.dtype) if coefficients else None
    found = functions_for(A.dtype).ridge(A.native, data.native, None if X is None else X.native, chosen, validation, labels, of_rows, score,
                                         numbers, one_standard_error, intercept, standardize, batch)
    found["scores"] = np.asarray(found["scores"]).reshape(-1, len(chosen)).T
    for name in ("alphas", "best_scores", "residual_norms", "normal_residual_norms"):
        found[name] = np.asarray(found[name], np.float64)
    found["chosen"] = np.asarray(found["chosen"], np.int64)
    found["intercepts"] = _in_type(np.asarray(found["intercepts"]), A.dtype)
    return X if X is None or not isinstance(B, np.ndarray) else np.asarray(X), found


def _whole(name: str, numbers: Any) -> list[int]:
    array = np.asarray(numbers)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{name} are whole numbers, and not {array.dtype}: np.unique(labels, return_inverse=True)[1] numbers labels")
    if array.ndim != 1 or (array.size and not np.all(array == np.floor(array))):
        raise UsageError(f"{name} are whole numbers, one for each, and not an array of {array.dtype} of shape {array.shape}")
    return [int(number) for number in array]


def _in_type(numbers: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.asarray(numbers if dtype.kind == "c" else numbers.real, dtype)
