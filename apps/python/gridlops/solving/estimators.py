# SPDX-License-Identifier: BSD-3-Clause
"""Ridges with the names of scikit-learn, which need not be there."""

from __future__ import annotations

import inspect
import numbers as kinds
import warnings
from typing import Any, Iterable, Protocol

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from ..errors import UsageError
from ..grids import Grid
from ..matrices import Matrix
from ..operators import Operator, matrix_mult
from .ridges import Numbers, RidgeReport, ridge

class Splitter(Protocol):
    """A splitter of scikit-learn, such as GroupKFold, whose test sets have no row in common."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[tuple[Any, Any]]:
        """Pairs of training rows and test rows."""


def _not_fitted(estimator: Any) -> Exception:
    text = f"this {type(estimator).__name__} is not fitted yet: call fit() first"
    try:
        from sklearn.exceptions import NotFittedError  # pylint: disable=import-outside-toplevel
    except ImportError:
        return UsageError(text)
    return NotFittedError(text)  # type: ignore[no-any-return]


def _require_finite(name: str, array: npt.NDArray[Any]) -> None:
    """In scikit-learn's words, with the first place."""
    finite = np.isfinite(array)
    if finite.all():
        return
    what = "NaN" if np.isnan(array).any() else f"infinity or a value too large for {array.dtype!r}"
    first = np.argwhere(np.isnan(array) if what == "NaN" else ~finite)[0]
    place = f"row {first[0]}" + (f", column {first[1]}" if array.ndim == 2 else "")
    columns = f"; {np.count_nonzero(~finite.all(axis=0))} of {array.shape[1]} columns have some: {name}[:, np.isfinite({name}).all(axis=0)] leaves them out" if array.ndim == 2 else ""
    raise ValueError(f"Input {name} contains {what}. The first is at {place} (from 0){columns}.")


def _feature_names(X: Any) -> npt.NDArray[Any] | None:
    """The names of a data frame's columns, if they are all text."""
    columns = getattr(X, "columns", None)
    names = None if columns is None else np.asarray(columns, dtype=object)
    return names if names is not None and names.ndim == 1 and len(names) and all(isinstance(name, str) for name in names) else None


def _require_same_features(estimator: Any, X: Any) -> None:
    """Names of features are those of fit, in its order, in scikit-learn's words if they are not."""
    names, known = _feature_names(X), getattr(estimator, "feature_names_in_", None)
    kind = type(estimator).__name__
    if names is None or known is None:
        if names is not None:
            warnings.warn(f"X has feature names, but {kind} was fitted without feature names", stacklevel=3)
        elif known is not None:
            warnings.warn(f"X does not have valid feature names, but {kind} was fitted with feature names", stacklevel=3)
        return
    if len(names) == len(known) and (names == known).all():
        return
    text = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    for what, some in (("unseen at fit time", unseen), ("seen at fit time, yet now missing", missing)):
        if some:
            text += f"Feature names {what}:\n" + "".join(f"- {name}\n" for name in some[:5]) + ("- ...\n" if len(some) > 5 else "")
    if not unseen and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(text)


def _features(estimator: Any, X: Any) -> npt.NDArray[Any]:
    """X as an array of single or double precision, in scikit-learn's words if it is none."""
    if hasattr(X, "toarray"):
        raise TypeError("a sparse matrix was passed, but dense data is required: X.toarray() is dense")
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: gridlops.ridge() fits complex matrices")
    array = np.asarray(array, array.dtype if array.dtype in (np.float32, np.float64) else np.float64)
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array of shape {array.shape} instead. Reshape your data: X has a row for each "
                         "observation, and a column for each feature.")
    for count, what in zip(array.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required by {type(estimator).__name__}.")
    _require_finite("X", array)
    return array


def _row_weights(sample_weight: Any, X: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The weights of rows in double precision, in scikit-learn's words if they are none; a number is the weight of each."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(len(X), weights)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != len(X):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(len(X),)}!")
    _require_finite("sample_weight", weights)
    return weights


def _targets(estimator: Any, y: Any, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: gridlops.ridge() fits complex matrices")
    array = np.asarray(array, X.dtype)
    if array.ndim not in (1, 2):
        raise ValueError(f"y has a row for each observation, but is of shape {array.shape}")
    if len(array) != len(X):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(X)}, {len(array)}]")
    _require_finite("y", array)
    return array


class _Arrays:
    """What an estimator fits: the arrays of rank 0, and what all ranks know of them."""

    def __init__(self, grid: Grid, features: npt.NDArray[Any], targets: npt.NDArray[Any], names: npt.NDArray[Any] | None,
                 shape_of_X: tuple[int, int], shape: tuple[int, ...], dtype: np.dtype[Any], facts: Any) -> None:
        self.names = names
        self.grid, self.features, self.targets, self.shape, self.dtype, self.facts = grid, features, targets, shape, dtype, facts
        self.rows, self.cols = shape_of_X
        self.nrhs = 1 if len(shape) == 1 else shape[1]

    def matrix(self, scale: npt.NDArray[Any] | None = None) -> Operator:
        """The features, each times its scale. Collective."""
        is_root = self.grid.comm.rank == 0
        features = self.features if scale is None or not is_root else self.features * scale.astype(self.dtype)
        return matrix_mult(Matrix(self.grid, self.grid.matrix_layout(self.rows, self.cols), self.dtype).scatter(features if is_root else None))

    def data(self, columns: npt.NDArray[np.int64] | None = None) -> Matrix:
        """The targets, or those of these numbers. Collective."""
        count = self.nrhs if columns is None else len(columns)
        targets = self.targets if columns is None or self.grid.comm.rank != 0 else self.targets[:, columns]
        return Matrix(self.grid, self.grid.column_blocks(self.rows, count), self.dtype).scatter(targets if self.grid.comm.rank == 0 else None)


class _Estimator:
    """What the estimators share: parameters, predictions and scores. It has all that scikit-learn asks for."""

    _estimator_type = "regressor"
    fit_intercept: bool
    standardize: bool = False

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # pylint: disable=unused-argument
        """The arguments of the constructor, with their values."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Changes arguments of the constructor; returns the estimator."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {self._names()!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {"multioutput": True, "requires_y": True}

    def __sklearn_tags__(self) -> Any:  # from 1.6 on
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # type: ignore[attr-defined]  # pylint: disable=import-outside-toplevel
        return Tags(estimator_type="regressor", target_tags=TargetTags(required=True, multi_output=True), transformer_tags=None,
                    classifier_tags=None, regressor_tags=RegressorTags(), input_tags=InputTags())

    def _received(self, X: Any, y: Any, facts: Any) -> _Arrays:
        """The arrays of rank 0, with what facts(X, y) returns there. All errors are raised on all ranks."""
        grid = Grid(shape=(MPI.COMM_WORLD.size, 1))
        features = targets = np.empty((0, 0))
        failure: Exception | None = None
        found: tuple[Any, ...] = ()
        if grid.comm.rank == 0:
            try:
                features = _features(self, X)
                targets = _targets(self, y, features)
                found = (_feature_names(X), features.shape, targets.shape, features.dtype, facts(features, targets))
            except Exception as error:  # pylint: disable=broad-exception-caught  # the other ranks wait for it
                failure = error
        failure, found = grid.comm.bcast((failure, found))
        if failure is not None:
            raise failure
        return _Arrays(grid, features, targets if targets.ndim == 2 else targets[:, np.newaxis], *found)

    def _keep(self, arrays: _Arrays, coefficients: npt.NDArray[Any], intercepts: npt.NDArray[Any]) -> None:
        """Sets what all ranks have of a fit."""
        #: A row for each target, or a vector if y was one.
        self.coef_ = np.ascontiguousarray(coefficients.T)
        self.intercept_: Any = intercepts if self.fit_intercept else 0.0
        if len(arrays.shape) == 1:
            self.coef_ = self.coef_[0]
            self.intercept_ = float(intercepts[0]) if self.fit_intercept else 0.0
        self.n_features_in_ = arrays.cols
        if arrays.names is not None:
            self.feature_names_in_ = arrays.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit(self, X: Any, y: Any, sample_weight: Any, alphas: Numbers | float, folds: Any, score: str, together: bool, one_standard_error: bool,
             groups: Any = None) -> RidgeReport:
        """Fits the arrays of rank 0. folds(X, y, groups) says how; all errors are raised on all ranks."""
        arrays = self._received(X, y, lambda features, targets: (folds(features, targets, groups), _row_weights(sample_weight, features)))
        labels, weights = arrays.facts
        found, report = ridge(arrays.matrix(), arrays.data(), alphas, folds=labels, weights=weights, score=score, groups=np.zeros(arrays.nrhs, int) if together else None,
                              one_standard_error=one_standard_error, intercept=self.fit_intercept, standardize=self.standardize)
        self._keep(arrays, arrays.grid.comm.bcast(found.gather()), report["intercepts"])
        return report

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """What the model expects for these observations, on the rank that asks. Not collective."""
        if not hasattr(self, "coef_"):
            raise _not_fitted(self)
        _require_same_features(self, X)
        features = _features(self, X)
        if features.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {features.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return np.asarray(features @ self.coef_.T + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, the mean of all targets. Not collective."""
        predicted = self.predict(X)
        data = np.asarray(y).reshape(predicted.shape)
        weights = np.ones(len(data)) if sample_weight is None else np.asarray(sample_weight)
        weights = weights if data.ndim == 1 else weights[:, np.newaxis]
        errors = (weights * np.asarray(data - predicted, np.float64) ** 2).sum(axis=0)
        spread = (weights * np.asarray(data - np.average(data, axis=0, weights=np.ravel(weights)), np.float64) ** 2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(np.where(spread > 0, 1 - errors / spread, np.where(errors > 0, 0.0, 1.0))))


def _score_of(scoring: str | None, cv: Any) -> str:
    """What :func:`ridge` calls a scoring."""
    scores = {None: "negative-mse" if cv is None or isinstance(cv, str) else "r2", "r2": "r2", "correlation": "correlation",
              "neg_mean_squared_error": "negative-mse"}
    if scoring not in scores:
        raise UsageError(f"there is no scoring {scoring!r}: take one of {', '.join(filter(None, scores))}")
    return scores[scoring]


def _folds_of(cv: Any) -> Any:
    return lambda X, y, groups: _folds_in(cv, X, y, groups)


def _folds_in(cv: Any, X: npt.NDArray[Any], y: npt.NDArray[Any], groups: Any) -> Any:
    """What :func:`ridge` calls folds."""
    rows = len(X)
    if rows < 2:
        raise ValueError(f"a damping is chosen by predicting rows from others, but n_samples={rows}")
    if cv is None or isinstance(cv, str) and cv in ("loo", "leave-one-out"):
        return "leave-one-out"
    if isinstance(cv, str) and cv == "gcv":
        return cv
    if isinstance(cv, kinds.Integral):
        if not 2 <= int(cv) <= rows:
            raise ValueError(f"cv={cv} folds: there must be at least 2, and of {rows} rows at most {rows}")
        return int(cv)
    if not hasattr(cv, "__iter__") and not hasattr(cv, "split") or isinstance(cv, str):
        raise UsageError(f"cv={cv!r}: take None (each row from all others), 'gcv', a number of folds, a splitter, or PredefinedSplit(labels)")
    if isinstance(cv, np.ndarray) and cv.ndim == 1 and cv.dtype != object:
        raise UsageError("cv is an array of labels: take PredefinedSplit(labels) of scikit-learn, or gridlops.ridge(folds=labels)")
    labels = np.full(rows, -1)
    for number, (training, test) in enumerate(cv.split(X, y, groups) if hasattr(cv, "split") else cv):
        in_test = np.zeros(rows, bool)
        in_test[test] = True
        if (labels[in_test] >= 0).any():
            raise UsageError("a row is in two test sets of cv: take a splitter whose test sets have no row in common, such as KFold")
        if np.count_nonzero(in_test) + len(np.arange(rows)[training]) != rows:
            raise UsageError(f"test set {number} of cv is predicted from some of the other rows only: take a splitter that trains with all of them")
        labels[in_test] = number
    return labels


class Ridge(_Estimator):
    """scikit-learn's Ridge for many targets: ``alpha`` is one damping D², or one for each target.

    ``fit`` is collective over all ranks, and takes the arrays of rank 0; others may pass None. It has ``coef_``, ``intercept_`` and
    ``n_features_in_`` then, on all ranks. ``standardize`` divides features by their standard deviation. It keeps single precision.
    """

    def __init__(self, alpha: Any = 1.0, *, fit_intercept: bool = True, standardize: bool = False) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """X has a row for each observation; y is a vector, or has a column for each target; ``sample_weight`` is a number for each row.
        Collective."""
        self._fit(X, y, sample_weight, self.alpha, lambda *_: None, "r2", False, False)
        return self


class RidgeCV(_Estimator):
    """scikit-learn's RidgeCV, which with ``alpha_per_target`` also chooses by folds for each target.

    ``cv``: None, each row is predicted from all others, exactly, but that ``standardize`` divides by deviations of all rows, as
    make_pipeline(StandardScaler(), RidgeCV(alphas)) does; a number of contiguous folds; a splitter of scikit-learn, or pairs
    of training and test rows, where no row is in two test sets; or "gcv". ``scoring``: "r2", "correlation" or
    "neg_mean_squared_error"; None is R² with folds, and else the last. ``fit`` is collective over all ranks, and takes the arrays of
    rank 0; others may pass None. All ranks have then ``coef_``, ``intercept_``, ``alpha_``, ``best_score_`` (with ``alpha_per_target``
    arrays), ``scores_`` (a row for each damping, a column for each target) and ``report_``. ::

        model = gl.RidgeCV(np.geomspace(1, 1e5, 20), cv=5, alpha_per_target=True).fit(features, voxels)
    """

    def __init__(self, alphas: Any = (0.1, 1.0, 10.0), *, fit_intercept: bool = True, scoring: str | None = None, cv: Any = None,
                 alpha_per_target: bool = False, standardize: bool = False, one_standard_error: bool = False) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.alpha_per_target = alpha_per_target
        self.standardize = standardize
        self.one_standard_error = one_standard_error

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> RidgeCV:
        """X has a row for each observation; y is a vector, or has a column for each target;
        ``sample_weight`` is a number for each row, which counts in scores, too; ``groups`` are for the splitter. Collective."""
        score = _score_of(self.scoring, self.cv)
        #: The dampings that were tried.
        self.alphas_ = np.atleast_1d(np.asarray(self.alphas, np.float64))
        report = self._fit(X, y, sample_weight, self.alphas_, _folds_of(self.cv), score, not self.alpha_per_target, self.one_standard_error, groups)
        self.report_ = report
        self.scores_ = report["scores"]
        one = not self.alpha_per_target or np.ndim(self.intercept_) == 0 and self.coef_.ndim == 1
        chosen = report["chosen"][0] if len(report["chosen"]) else 0
        self.alpha_: Any = float(self.alphas_[chosen]) if one else report["alphas"]
        self.best_score_: Any = float(np.mean(report["best_scores"])) if one else report["best_scores"]
        return self


class BandedRidgeCV(_Estimator):
    """A ridge whose features are in bands, each with a damping of its own for each target, by random search as in himalaya.

    ``bands`` has the number of the band of each feature. A candidate is a vector of weights γ, one for each band in the order of their
    numbers, which add up to 1: band g has the damping α/γ of its features, and weight 0 leaves it out. ``candidates`` are the rows of
    an array, which are divided by their sums, or how many are drawn: equal weights first, then from Dirichlet distributions of the ``concentration``, in turn, by
    ``random_state``, a number or a generator of NumPy. Without ``bands`` there is one candidate. Each target gets the candidate and α with the best mean score over the folds of ``cv``, as in :class:`RidgeCV`.
    Each candidate costs an eigendecomposition for each fold, and the products of a RidgeCV with all alphas.

    ``fit`` is collective over all ranks, and takes the arrays of rank 0; others may pass None. All ranks have then ``coef_``,
    ``intercept_``, ``weights_`` and ``dampings_`` (a row for each band, a column for each target; α/γ, infinite where γ is 0),
    ``alpha_``, ``best_score_``, ``bands_`` and ``candidates_``. ::

        model = gl.BandedRidgeCV(bands=[0] * 300 + [1] * 700, alphas=np.geomspace(1, 1e5, 20), candidates=30, cv=5).fit(features, voxels)
    """

    def __init__(self, bands: Any = None, alphas: Any = (0.1, 1.0, 10.0), *, candidates: Any = 20, concentration: Any = (0.1, 1.0), fit_intercept: bool = True,
                 scoring: str | None = None, cv: Any = 5, random_state: Any = None) -> None:
        self.bands = bands
        self.alphas = alphas
        self.candidates = candidates
        self.concentration = concentration
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> BandedRidgeCV:
        """X has a row for each observation; y is a vector, or has a column for each target;
        ``sample_weight`` is a number for each row, which counts in scores, too; ``groups`` are for the splitter. Collective."""
        score = _score_of(self.scoring, self.cv)
        arrays = self._received(X, y, lambda features, targets: (_folds_in(self.cv, features, targets, groups), _row_weights(sample_weight, features),
                                                                         *self._drawn(features.shape[1])))
        labels, of_rows, names, places, candidates = arrays.facts
        alphas = np.atleast_1d(np.asarray(self.alphas, np.float64))
        data = arrays.data()
        best, chosen, alpha = np.full(arrays.nrhs, -np.inf), np.zeros(arrays.nrhs, int), np.full(arrays.nrhs, alphas.max())
        for number, weights in enumerate(candidates):
            _, report = ridge(arrays.matrix(np.sqrt(weights)[places]), data, alphas, folds=labels, weights=of_rows, score=score, intercept=self.fit_intercept,
                              coefficients=False)
            better = report["best_scores"] > best
            best[better], chosen[better], alpha[better] = report["best_scores"][better], number, report["alphas"][better]
        del data
        coefficients, intercepts = np.zeros((arrays.cols, arrays.nrhs), arrays.dtype), np.zeros(arrays.nrhs, arrays.dtype)
        for number in np.unique(chosen):
            columns, scale = np.flatnonzero(chosen == number), np.sqrt(candidates[number])[places]
            found, report = ridge(arrays.matrix(scale), arrays.data(columns), alpha[columns], folds=None, weights=of_rows, intercept=self.fit_intercept)
            coefficients[:, columns] = scale[:, np.newaxis] * arrays.grid.comm.bcast(found.gather())
            intercepts[columns] = report["intercepts"]
        self._keep(arrays, coefficients, intercepts)
        #: The numbers of the bands, in ascending order.
        self.bands_ = names
        self.candidates_ = candidates
        one = len(arrays.shape) == 1
        self.weights_ = candidates[chosen[0]] if one else candidates[chosen].T
        self.alpha_: Any = float(alpha[0]) if one else alpha
        self.best_score_: Any = float(best[0]) if one else best
        with np.errstate(divide="ignore", invalid="ignore"):
            self.dampings_ = np.where(self.weights_ > 0, self.alpha_ / self.weights_, np.inf)
        return self

    def _drawn(self, features: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """The numbers of the bands, the place of each feature's among them, and the candidates."""
        bands = np.zeros(features, int) if self.bands is None else np.asarray(self.bands)
        if bands.shape != (features,):
            raise UsageError(f"bands has the number of the band of each of the {features} features, as np.repeat([0, 1], [n0, n1]) has it, but is of "
                             f"shape {bands.shape}")
        names, places = np.unique(bands, return_inverse=True)
        if np.ndim(self.candidates) > 0:
            drawn = np.asarray(self.candidates, np.float64)
            if drawn.ndim != 2 or drawn.shape[1] != len(names) or not len(drawn) or not np.isfinite(drawn).all() or (drawn < 0).any():
                raise UsageError(f"candidates have a weight, not negative, for each of {len(names)} bands in each row, but the array is of shape {drawn.shape}")
            sums = drawn.sum(axis=1, keepdims=True)
            if not (sums > 0).all():
                raise UsageError(f"candidate {np.flatnonzero(sums <= 0)[0]} (from 0) has no weight above 0, so that it leaves all bands out")
            return names, places, drawn / sums
        if int(self.candidates) < 1:
            raise UsageError(f"{self.candidates} candidates are none: give at least 1")
        random = self.random_state if isinstance(self.random_state, np.random.RandomState) else np.random.default_rng(self.random_state)
        concentrations = np.atleast_1d(np.asarray(self.concentration, np.float64))
        others = [random.dirichlet(np.full(len(names), concentrations[k % len(concentrations)])) for k in range(int(self.candidates) - 1 if len(names) > 1 else 0)]
        return names, places, np.array([np.full(len(names), 1 / len(names)), *others])
