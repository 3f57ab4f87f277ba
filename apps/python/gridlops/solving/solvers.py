# SPDX-License-Identifier: BSD-3-Clause
"""Solvers. Each column of B has its own step length, stopping test and verdict."""

from __future__ import annotations

import difflib
import importlib.util
import logging
import sys
import time
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Mapping, Protocol, Sequence, cast

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import ShapeError, UsageError
from .factors import Factor
from ..grids import with_docstrings
from ..matrices import Matrix, PerColumn, functions_for, require_matrix, same_type, whole_array
from ..operators import Operator, identity, on_arrays
from .proximal import Proximal
from .reports import SolveReport
from ..spaces import zeros

Iteration = with_docstrings(
    _native.Iteration,
    """The argument of a callback, valid only during the call. Lists have one number for each column of B.

    ``copy_to(X)`` copies the present model to a :class:`Matrix` with the solution's layout (not collective).
    """,
    iteration="The number of finished iterations.", at_start="Whether a batch of columns starts.",
    active_columns="The number of columns that have not ended.", residual_norms="‖b − Ax‖.",
    tested_norms="The tested norm, over its reference.", x_norms="‖x‖.",
    residual_tests="Of lsqr and lsmr: ‖r‖/(‖b‖ + ‖A‖‖x‖) of the damped system. Either test ends a column.",
    gradient_tests="Of lsqr and lsmr: ‖Aᴴr‖/(‖A‖‖r‖) of the damped system.")


class Observer(Protocol):
    """Watches a solver, on every rank; see :attr:`SolveOptions.observers`."""

    def start(self, facts: Mapping[str, Any]) -> None:
        """Receives the solver, the sizes, the damping and the limits, before the first iteration."""

    def step(self, iteration: Iteration) -> bool:
        """Is called at the start and after each iteration. If it returns True on any rank, all columns end."""

    def end(self, report: Mapping[str, Any]) -> None:
        """Receives the items of the :class:`SolveReport` at the end."""


@dataclass
class SolveOptions:
    """Options of solvers. Solvers take them as keyword arguments, too: ``cgls(A, B, damp=0.1)``.

    docs/solvers.md says which solver takes which option; a solver refuses all others.
    """

    max_iterations: int = 100
    #: Relative. None: 1e-8 in double, 1e-4 in single precision. 0 never converges.
    tolerance: PerColumn | None = None
    #: D ≥ 0: least squares minimise ‖AX − B‖² + D²‖X‖². For a sweep of D over one b, the columns of B are copies of b;
    #: they share every product with A.
    damp: PerColumn = 0
    #: atol is relative to ‖A‖‖r‖ and btol to ‖b‖; None: the tolerance.
    atol: float | None = None
    btol: float | None = None
    #: A column ends when its estimate of the condition number exceeds this. 0: never.
    condition_limit: float = 0
    #: A column ends with "user_stop" once ‖b − Ax‖ is at most this times its initial value. 0: never.
    residual_ratio: float = 0
    #: A column converges when ‖x − x*‖ is certainly at most this times ‖x‖ (see :func:`error_bounds`), given ``damp`` or
    #: ``sigma_min``; the tolerance is then 0 unless it is given. 0: errors are not tested.
    error: float = 0
    #: For ``error``: no singular value of A is smaller.
    sigma_min: float = 0
    #: For ``error``: ‖A‖_F or more, of a matrix :func:`frobenius_norm`.
    frobenius_norm: float | None = None
    #: Solves about this many columns at a time, to limit memory. 0: all.
    batch: int = 0
    #: Sums over ranks add in rank order.
    column_stable: bool = False
    record_history: bool = True
    #: Each iteration reads a packed matrix only once.
    one_pass: bool = False
    #: Every ``guard`` iterations, checks the recurrence for flipped bits. 0: never.
    guard: int = 0
    #: x ≥ 0. Other bounds are arguments of :func:`bounded`.
    nonnegative: bool = False
    #: The weight of the penalty; half of PyLops' eps.
    lambda_: PerColumn = 0
    #: "soft", "hard" or "half".
    threshold: str = "soft"
    #: "none", "fista" or "vandenberghe".
    acceleration: str = "fista"
    #: Iteration k thresholds with decay[k]·λ; iterations after the last entry use the last entry. Empty: λ.
    decay: Sequence[float] = field(default_factory=list)
    #: α > 0; None: 1/(1.02‖A‖)² with an estimate of ‖A‖.
    step: float | None = None
    #: Reduces α when it proves too large.
    backtracking: bool = False
    #: Makes the objective fall monotonically.
    monotone: bool = False
    absolute_tolerance: float = 0
    #: Prints PyLops' table on the grid's rank 0.
    show: bool = False
    #: Rank 0 of the grid shows a bar of tqdm; if there is no tqdm, a line at the start, each second, and at the end.
    progress: bool = False
    #: Every rank calls it with an :data:`Iteration` at the start and after each iteration. If it returns true on any
    #: rank, all columns end with "user_stop". It may communicate if all ranks make the same calls.
    callback: Callable[[Iteration], Any] | None = None
    #: Objects with the methods of :class:`Observer`, or the results of :func:`stop_at_cost_ratio` and others.
    observers: Sequence[Any] = field(default_factory=list)
    #: A directory for the solver's state. A later job resumes with ``restart`` set to the same directory.
    checkpoint: str = ""
    checkpoint_iterations: int = 0
    checkpoint_seconds: float = 0
    #: Every rank calls it in each iteration. If it returns true on any rank, the solver saves its state, and all ranks
    #: raise Suspended.
    checkpoint_requested: Callable[[], bool] | None = None
    restart: str = ""

    def native(self, initial_guess: bool) -> Any:
        """The library's options, for this package's own files."""
        options = _native.SolveOptions()
        options.initial_guess = initial_guess
        options.record_history = self.record_history
        for each in fields(self):
            if each.name.rstrip("_") in _native.SOLVE_OPTIONS:
                self._set(options, each.name, str(each.type))
        if self.checkpoint or self.restart:
            saving: Any = _native.CheckpointOptions()
            saving.directory = self.checkpoint
            saving.every_iterations = self.checkpoint_iterations
            saving.every_seconds = self.checkpoint_seconds
            saving.restart = self.restart
            if self.checkpoint_requested is not None:
                saving.set_requested(self.checkpoint_requested)
            options.checkpoint = saving
        options.add_observer(_native.watch_for_signals())
        if self.show:
            options.add_observer(_native.print_table(10, 10, 10))
        if self.progress:
            options.add_python_observer(_Progress())
        for observer in self.observers:
            if isinstance(observer, _native.SolveObserver):
                options.add_observer(observer)
            else:
                options.add_python_observer(observer)
        if self.callback is not None:
            options.add_python_observer(_CallbackObserver(self.callback))
        return options

    def _set(self, options: Any, name: str, kind: str) -> None:
        """Sets the option of this name. Raises UsageError if the value's type is not the field's."""
        value = getattr(self, name)
        try:
            setattr(options, name.rstrip("_"), value)
        except TypeError:
            raise UsageError(f"{name} is {value!r}; it must be {_KINDS[kind]}") from None


#: The types of options in words.
_KINDS = {"int": "a whole number", "float": "a number", "float | None": "a number or None", "bool": "True or False", "str": "a name",
          "Sequence[float]": "a list of numbers", "PerColumn": "a number, or one for each column",
          "PerColumn | None": "a number, one for each column, or None"}


class _CallbackObserver:
    def __init__(self, callback: Callable[[Iteration], Any]) -> None:
        self.step = callback

    def start(self, facts: Mapping[str, Any]) -> None:
        pass

    def end(self, report: Mapping[str, Any]) -> None:
        pass


class _Progress:
    """Shows the iterations of a solver on the grid's rank 0."""

    def __init__(self) -> None:
        self.most = 0
        self.bar: Any = None
        self.shown = 0.0
        self.is_first = False

    def start(self, facts: Mapping[str, Any]) -> None:
        self.most, self.is_first = facts["max_iterations"], facts["rank"] == 0
        if self.is_first and importlib.util.find_spec("tqdm") is not None:
            self.bar = importlib.import_module("tqdm.auto").tqdm(total=self.most, desc=facts["solver"], unit="it")

    def step(self, iteration: Iteration) -> bool:
        if self.bar is not None:
            self.bar.n = iteration.iteration
            self.bar.set_postfix_str(f"{iteration.active_columns} columns, at most {self.largest(iteration):.2g}")
        elif self.is_first and (iteration.at_start or time.monotonic() - self.shown >= 1):
            self.shown = time.monotonic()
            print(f"iteration {iteration.iteration} of at most {self.most}: {iteration.active_columns} columns, tested norms at most "
                  f"{self.largest(iteration):.2g}", file=sys.stderr, flush=True)
        return False

    @staticmethod
    def largest(iteration: Iteration) -> float:
        """The largest norm that is compared with a tolerance; of two tests of a column the smaller one counts."""
        tests = [min(pair) for pair in zip(iteration.residual_tests, iteration.gradient_tests, strict=True)]
        return max(tests or iteration.tested_norms, default=0)

    def end(self, report: Mapping[str, Any]) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.is_first:
            reasons = list(report["reasons"])
            ends = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
            print(f"iteration {report['iterations']}, the last: {ends or 'no columns'}", file=sys.stderr, flush=True)


def stop_at_cost_ratio(ratio: float) -> Any:
    """An observer that ends all columns once ‖B − AX‖ over all columns has fallen to this part of its first value.

    A solver with several batches raises UsageError.
    """
    return _native.stop_at_cost_ratio(ratio)


def stop_on_non_finite() -> Any:
    """An observer that ends all columns once one of them is not finite."""
    return _native.stop_on_non_finite()


#: What other libraries, textbooks and the program call an option.
_ELSEWHERE = {**dict.fromkeys(("niter", "n_iter", "maxiter", "max_iter", "maxit", "iter_lim", "itnlim", "iiter", "iterations"), "max_iterations"),
              **dict.fromkeys(("tol", "rtol", "reltol"), "tolerance"), "eps": "lambda_ (half of PyLops' eps)",
              "alpha": "damp (its square is Ridge's alpha) or step (PyLops' alpha of ista)",
              **dict.fromkeys(("lam", "lambd", "lamb", "lmbda", "mu"), "lambda_ (of a penalty) or damp (of least squares; its square weighs ‖x‖²)"),
              **dict.fromkeys(("damps", "damping", "ridge", "tikhonov"), "damp"),
              **dict.fromkeys(("x", "X0", "x_0", "guess", "initial", "initial_guess", "init"), "x0"), "conlim": "condition_limit",
              "threshkind": "threshold", **dict.fromkeys(("verbose", "disp", "iprint"), "show or progress"),
              **dict.fromkeys(("preconditioner", "precond", "prec"), "M (of pcg and pcgls)")}


def options_with(given: SolveOptions | None, changes: dict[str, Any]) -> SolveOptions:
    names = [each.name for each in fields(SolveOptions)]
    for name in changes:
        if name not in names:
            meant = _ELSEWHERE.get(name) or ", ".join(difflib.get_close_matches(name, names))
            raise UsageError(f"there is no option {name}: " + (f"did you mean {meant}?" if meant else f"options are {', '.join(names)}"))
    values = {name: getattr(given, name) for name in names} if given is not None else {}
    return SolveOptions(**{**values, **changes})


def _solution(A: Operator, B: Matrix, x0: Matrix | None, out: Matrix | None) -> Matrix:
    """The matrix for the solver's guess and result (collective if the guess is in other memory)."""
    for name, each in (("the right-hand sides", B), ("the initial guess", x0), ("out", out)):
        if each is not None or name == "the right-hand sides":
            require_matrix(name, each)
    same_type(A, B)
    if x0 is not None and x0.shape != (A.shape[1], B.shape[1]):
        raise UsageError(f"an initial guess of {x0.shape[0]} x {x0.shape[1]} does not fit a model of "
                         f"{A.shape[1]} x {B.shape[1]}")
    X = same_type(A, zeros(A.domain, B.shape[1], A.dtype) if out is None else out)
    if x0 is not None and x0 is not X:
        functions_for(A.dtype).copy_guess(same_type(A, x0).native, B.native, X.native)
    return X


#: A matrix; or, where there is one rank, a whole array: a vector, columns, or with the sizes of the space.
Columns = Matrix | npt.NDArray[Any]


def solved(A: Operator, B: Columns, x0: Columns | None, out: Matrix | None, options: SolveOptions | None, changes: dict[str, Any],
            solve_by: Callable[[Any, Any, Any, Any], dict[str, Any]]) -> tuple[Any, SolveReport]:
    """X, as an array if B is one, and the report that solve_by(functions, B, X, options) returns."""
    if not isinstance(A, Operator):
        raise UsageError(f"a value of type {type(A).__name__} stands where an Operator is needed: gridlops.matrix_mult(matrix) makes one of a Matrix")
    if isinstance(x0, np.ndarray):
        x0 = A.domain.whole_on_one_rank(x0, A.dtype)

    def solution(B: Matrix) -> Matrix:
        nonlocal report
        X = _solution(A, B, x0, out)
        report = SolveReport(solve_by(functions_for(A.dtype), B.native, X.native, options_with(options, changes).native(x0 is not None)))
        return X

    report = SolveReport()
    X = on_arrays(A.range, A.domain, A.dtype, B, solution)
    if A.grid.is_member and A.grid.rank == 0:
        logging.getLogger("gridlops").info("%s", repr(report)[1:-1])
    return X, report


def solver_names() -> list[str]:
    """The names of all solvers that :func:`solve` calls."""
    return list(_native.solver_names())


def _weights(A: Operator, B: Columns, weights: Columns | None) -> Matrix | None:
    """Weights as a matrix like B; an array may have one column for all."""
    if not isinstance(weights, np.ndarray):
        return weights
    if isinstance(B, np.ndarray):
        like = weights[..., None] if weights.ndim == B.ndim - 1 else weights
        if like.ndim != B.ndim or any(size not in (1, of_B) for size, of_B in zip(like.shape, B.shape)):
            raise ShapeError(f"weights of {weights.shape} do not fit an array of {B.shape}: there must be one for each number, or one column for all")
        weights = np.ascontiguousarray(np.broadcast_to(like, B.shape))
    return A.range.whole_on_one_rank(weights, A.dtype)


def mark_holes(B: Matrix, weights: Matrix) -> int:
    """Sets weights to 0 where B is NaN, and returns how many these are. Collective over the grid.

    Both have one layout. In one process, ``weights=~np.isnan(B)`` does the same with arrays.
    """
    return int(functions_for(B.dtype).mark_holes(B.native, same_type(B, weights).native))


def solve(solver: str, A: Operator, B: Columns, x0: Columns | None = None, *, M: Operator | None = None, S: Operator | None = None,
          penalty: Proximal | None = None, variances: Matrix | None = None, factor: Factor | None = None, lower: Bounds | None = None,
          upper: Bounds | None = None, weights: Columns | None = None, out: Matrix | None = None, options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Solves for every column of B by the solver of this name, one of :func:`solver_names`. Collective over the grid.

    B is in ``A.range``. Returns X, in ``A.domain``, and the report. On one rank, B and ``x0`` may be whole arrays; if B
    is one, X is, too. ``x0`` is an initial guess. With ``out``, the solver writes X there; ``out`` may be x0, and must
    share no memory with B. Keyword arguments are fields of :class:`SolveOptions`. ``M`` is the preconditioner of "pcg" and "pcgls",
    ``S`` the sparsifying operator of "ista" and "fista", and ``penalty`` the penalty of "proximal-gradient".
    ``variances``, with the layout of X, gets the estimates of "lsqr", or what "direct" has exactly. ``factor`` is that of "direct",
    and ``lower`` and ``upper`` are those of :func:`bounded`. ``weights``, a real number ≥ 0 for each of B, on one
    rank also an array like B or one column for all, multiply the residuals of least squares and of solvers with a penalty;
    0 leaves a number out, also NaN. A column that does not converge is a result, not
    an error: see ``report["reasons"]``. Wrong arguments raise ShapeError or UsageError on all ranks, before any rank
    sends anything.
    """
    if isinstance(B, np.ndarray) and solver in _native.hermitian_solvers and A.shape[0] == A.shape[1]:
        A = identity(A.domain, A.range, A.dtype) @ A  # on one rank nothing moves
    if factor is not None and not isinstance(factor, Factor):
        raise UsageError(f"a factor must be what gridlops.factor(A, damp) returned, not a value of type {type(factor).__name__}")
    given = [None if each is None else same_type(A, each).native for each in (M, S, penalty, variances, factor)]

    weighted = _weights(A, B, weights)
    if weighted is not None:
        same_type(A, weighted)

    def call(native: Any, b: Any, x: Any, how: Any) -> dict[str, Any]:
        bounds = [_bounds(A, each, x.layout.shape[1]) for each in (lower, upper)]
        return cast("dict[str, Any]", native.solve(solver, A.native, b, x, how, *given, *(None if each is None else each.native for each in (*bounds, weighted))))

    return solved(A, B, x0, out, options, changes, call)


#: A number for all elements; or on every rank an array for all columns, or with a column for each of B; or a matrix.
Bounds = float | npt.NDArray[Any] | Matrix


def _bounds(A: Operator, bounds: Bounds | None, columns: int) -> Matrix | None:
    """The bounds in a matrix with the layout of X."""
    if bounds is None or isinstance(bounds, Matrix):
        return None if bounds is None else same_type(A, bounds)
    rows = A.shape[1]
    whole = np.empty(0)

    def read() -> None:
        nonlocal whole
        array = whole_array(bounds, np.float64)
        if array.ndim == 1:
            array = array[:, np.newaxis]
        if array.ndim and array.shape not in ((rows, 1), (rows, columns)):
            raise ShapeError(f"bounds of {array.shape} do not fit models of {rows} x {columns}: they must be a number, a vector of {rows}, or have X's shape")
        whole = np.broadcast_to(array, (rows, columns))

    _native.attempt(A.grid.all_ranks, read)
    return zeros(A.domain, columns, A.dtype).fill(lambda i, j: whole[i, j])


def bounded(A: Operator, B: Columns, x0: Columns | None = None, *, lower: Bounds | None = None, upper: Bounds | None = None,
            out: Matrix | None = None, options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares with lower ≤ x ≤ upper, or ``nonnegative``: minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖². Otherwise like :func:`cgls`.

    Bounds are a number, a vector for all columns, an array with a column for each of B, the same on every rank, or a
    matrix with the layout of X. They may be infinite, and equal. Column j has converged when the part of its gradient that
    may move x is at most tolerance · ‖Aᴴb‖. A and B are real.
    """
    return solve("bounded", A, B, x0, lower=lower, upper=upper, out=out, options=options, **changes)


def cgls(A: Operator, B: Columns, x0: Columns | None = None, *, weights: Columns | None = None, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by CGLS: minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² for every column j. Otherwise like :func:`solve`.

    Column j has converged when ‖Aᴴ(b−Ax) − D²x‖ ≤ tolerance · ‖Aᴴb‖, for any guess.
    """
    return solve("cgls", A, B, x0, weights=weights, out=out, options=options, **changes)


def lsqr(A: Operator, B: Columns, x0: Columns | None = None, *, weights: Columns | None = None, out: Matrix | None = None, variances: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by LSQR, which is better on ill-conditioned problems. Otherwise like :func:`cgls`.

    ``variances``, with the layout of X, gets estimates from below of the diagonal of (AᴴA + D²I)⁻¹.
    """
    return solve("lsqr", A, B, x0, weights=weights, variances=variances, out=out, options=options, **changes)


def lsmr(A: Operator, B: Columns, x0: Columns | None = None, *, weights: Columns | None = None, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by LSMR, whose ‖Aᴴr‖ falls monotonically. Otherwise like :func:`lsqr`."""
    return solve("lsmr", A, B, x0, weights=weights, out=out, options=options, **changes)


def block_cgls(A: Operator, B: Columns, x0: Columns | None = None, *, out: Matrix | None = None,
               options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by block CGLS: all right-hand sides share one Krylov space.

    Columns must be uncut. Otherwise like :func:`cgls`.
    """
    return solve("block-cgls", A, B, x0, out=out, options=options, **changes)


def direct(A: Operator, B: Columns, x0: Columns | None = None, *, factor: Factor | None = None, out: Matrix | None = None,
           options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by a factor of AᴴA + D²I, which pays off where right-hand sides are many. Otherwise like :func:`cgls`.

    ``factor`` is one that :func:`factor` made of A with this damping, or :func:`spectral_factor`, which serves dampings of the columns' own;
    without it, the solver computes one. Iterations correct what rounding left: one is the rule.
    """
    return solve("direct", A, B, x0, factor=factor, out=out, options=options, **changes)


def cg(A: Operator, B: Columns, x0: Columns | None = None, *, M: Operator | None = None, out: Matrix | None = None,
       options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """(A + D²I) xⱼ = bⱼ for a Hermitian positive definite A, by conjugate gradients. Otherwise like :func:`cgls`.

    The range of A must be its domain. Data of ``op = gl.matrix_mult(matrix)`` lie on other ranks than its models, so
    take ``A = gl.identity(op.domain, op.range) @ op``. A column has converged when ‖b−Ax−D²x‖ ≤ tolerance · ‖b‖, for
    any guess. ``M`` ≈ (A + D²I)⁻¹ is a preconditioner.
    """
    return solve("cg" if M is None else "pcg", A, B, x0, M=M, out=out, options=options, **changes)


def minres(A: Operator, B: Columns, x0: Columns | None = None, *, out: Matrix | None = None,
           options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """(A + D²I) xⱼ = bⱼ for a Hermitian A, which may be indefinite or singular, by MINRES. Otherwise like :func:`cg`."""
    return solve("minres", A, B, x0, out=out, options=options, **changes)


def frobenius_norm(A: Matrix) -> float:
    """‖A‖_F of a matrix, for :func:`error_bounds`. Collective over the grid."""
    return float(functions_for(A.dtype).frobenius_norm(A.native))


def error_bounds(report: SolveReport, B: Matrix, X: Matrix, frobenius_norm: float, *, damp: PerColumn = 0,
                 sigma_min: float = 0, definite: bool = False, difference_norm: float = 0, weights: Matrix | None = None) -> npt.NDArray[np.float64]:
    """The most that ‖x − x*‖ can be for each column of a least-squares solution. Collective over the grid.

    X and the report come from a solver that was given B and ``damp``. ``frobenius_norm`` is ‖A‖_F or more, and no
    singular value of A is below ``sigma_min``. For a report of :func:`cg` set ``definite``: A is positive
    semidefinite, and no eigenvalue is below ``sigma_min``. One of ``damp`` and ``sigma_min`` must not be 0: else nothing bounds
    the error, and the bounds are infinite. Rounding is part of the bounds, by the model in docs/solvers.md.

    If the solver was given an approximation of A, such as a compressed matrix, ``difference_norm`` is the 2-norm of the
    difference or more: the bounds are then those of the distance from the solution with A. ``weights`` are those of the solve, and
    must be given if it had any.
    """
    same_type(B, X)
    damps = [float(value) for value in np.atleast_1d(np.asarray(damp, np.float64))]
    return np.asarray(functions_for(X.dtype).error_bounds(
        report["solver"], report["residual_norms"], report["relative_normal_residual_norms"], report["tested_norms"], report["quadratures"],
        report["sigma_min"], report["weighted"], B.native, X.native, damps, sigma_min, frobenius_norm, definite, difference_norm,
        None if weights is None else same_type(X, weights).native))


def ista(A: Operator, B: Columns, x0: Columns | None = None, *, S: Operator | None = None, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Sparse models: minimises ½‖A xⱼ − bⱼ‖² + λ P(xⱼ) for every column by iterative shrinkage. Collective.

    P is ‖x‖₁ for ``threshold="soft"``; "hard" counts non-zero elements, "half" is half the sum of √|x|. With ``S`` the
    model is sparse as x = S z. Column j has converged when a step moves it by at most max(tolerance·‖x‖,
    absolute_tolerance). It ends with "breakdown" if the step is too large.
    """
    return solve("ista", A, B, x0, S=S, out=out, options=options, **changes)


def fista(A: Operator, B: Columns, x0: Columns | None = None, *, S: Operator | None = None, out: Matrix | None = None,
          options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Like :func:`ista`, with momentum (FISTA)."""
    return solve("fista", A, B, x0, S=S, out=out, options=options, **changes)


def proximal_gradient(A: Operator, g: Proximal, B: Columns, x0: Columns | None = None, *, lambda_: PerColumn = 1,
                      out: Matrix | None = None, options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises ½‖A xⱼ − bⱼ‖² + λ g(xⱼ). Collective."""
    return solve("proximal-gradient", A, B, x0, penalty=g, out=out, options=options, lambda_=lambda_, **changes)


def admm(A: Operator, L: Operator, g: Proximal, B: Columns, x0: Columns | None = None, *, tau: float = 1,
         inner_iterations: int = 20, inner_tolerance: float = 0, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises ½‖A xⱼ − bⱼ‖² + g(L xⱼ) by ADMM, with CGLS for x. With :func:`gradient` for L: total variation."""
    same_type(A, L, g)
    return solved(A, B, x0, out, options, changes, lambda native, b, x, how: native.admm(
        A.native, L.native, g.native, b, x, how, tau, inner_iterations, inner_tolerance))


def primal_dual(K: Operator, f: Proximal, g: Proximal, B: Columns, x0: Columns | None = None, *, y0: Columns | None = None,
                tau: float | None = None, sigma: float | None = None, theta: float = 1, dual: Matrix | None = None,
                out: Matrix | None = None, options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises f(K xⱼ − bⱼ) + g(xⱼ) by the primal-dual method of Chambolle and Pock. Collective.

    The steps need τσ‖K‖² ≤ 1; a step that is not given is chosen. θ, from 0 to 1, is that of x̄ = x₊ + θ(x₊ − x); below 1/2
    the method may not converge. ``dual`` receives the dual solutions, in the range of K. ``y0``, which may be ``dual``,
    has those to start from.
    """
    same_type(K, f, g, *(() if dual is None else (dual,)))
    guess = K.range.whole_on_one_rank(y0, K.dtype) if isinstance(y0, np.ndarray) else y0

    def solve_by(native: Any, b: Any, x: Any, how: Any) -> Any:
        Y = dual if guess is None else _solution(K.H, Matrix.of(K.grid, K.dtype, b, K.range), guess, dual)
        return native.primal_dual(K.native, f.native, g.native, b, x, how, tau, sigma, theta, guess is not None,
                                  None if Y is None else Y.native)

    return solved(K, B, x0, out, options, changes, solve_by)


#: ε²‖R x − d‖²: (R, ε) or (R, ε, d).
Regularizer = tuple[Operator, float] | tuple[Operator, float, Matrix]


def _terms(A: Operator, weight: Operator | None, regularizers: Sequence[Regularizer]) -> tuple[Any, list[Any]]:
    for term in regularizers:
        same_type(A, term[0], *term[2:])
        if np.ndim(term[1]) != 0:
            raise UsageError(f"the ε of a regulariser is {term[1]!r}, but all columns share one: they share the operator in which it stands. "
                             "damp=[…] has a number for each column; for an ε of its own, solve a column by itself")
    terms = [(term[0].native, float(term[1]), term[2].native if len(term) > 2 else None) for term in regularizers]
    return (None if weight is None else same_type(A, weight).native), terms


def normal_equations_inversion(A: Operator, B: Columns, x0: Columns | None = None, *, weight: Operator | None = None,
                               regularizers: Sequence[Regularizer] = (), out: Matrix | None = None,
                               options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Solves (AᴴWA + Σ ε²RᴴR + D²I) xⱼ = AᴴW bⱼ + Σ ε²Rᴴdⱼ by CG. Collective."""
    W, terms = _terms(A, weight, regularizers)
    return solved(A, B, x0, out, options, changes, lambda native, b, x, how: native.normal_equations_inversion(
        A.native, b, x, W, terms, how))


def regularized_inversion(A: Operator, B: Columns, x0: Columns | None = None, *, weight: Operator | None = None,
                          regularizers: Sequence[Regularizer] = (), solver: str = "lsqr", out: Matrix | None = None,
                          options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises ‖W^½(A xⱼ − bⱼ)‖² + Σ ε²‖R xⱼ − dⱼ‖² + D²‖xⱼ‖²; ``weight`` is W^½ itself. Collective."""
    W, terms = _terms(A, weight, regularizers)
    return solved(A, B, x0, out, options, changes, lambda native, b, x, how: native.regularized_inversion(
        A.native, b, x, W, terms, solver, how))


def preconditioned_inversion(A: Operator, P: Operator, B: Columns, x0: Columns | None = None, *, solver: str = "lsqr",
                             damps_x: bool = False, out: Matrix | None = None, options: SolveOptions | None = None,
                             **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises ‖A xⱼ − bⱼ‖² + D²‖zⱼ‖² over xⱼ = P zⱼ; with ``damps_x`` D damps x. Collective."""
    same_type(A, P)
    return solved(A, B, x0, out, options, changes, lambda native, b, x, how: native.preconditioned_inversion(
        A.native, b, x, P.native, solver, damps_x, how))
