# SPDX-License-Identifier: BSD-3-Clause
"""Solvers. Every column of B has its own step length, its own stopping test and its own verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Callable, Mapping, Protocol, Sequence, TypedDict

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import UsageError
from .matrices import Matrix, functions_for, same_type, zeros
from .operators import Operator

#: What a callback gets, and may ask while it runs: ``iteration``, ``at_start``, ``active_columns``, ``residual_norms``,
#: ``tested_norms``, ``x_norms`` (lists, one number for each column) and ``copy_to(X.native)``.
Iteration = _native.Iteration


class Observer(Protocol):
    """Watches a solver, on every rank; see :attr:`SolveOptions.observers`."""

    def start(self, facts: Mapping[str, Any]) -> None: ...

    def step(self, iteration: Iteration) -> bool: ...

    def end(self, report: SolveReport) -> None: ...


class IterationRecord(TypedDict):
    """``residual_norms[k]`` and ``tested_norms[k]`` belong to ``columns[k]``, those that were active."""

    iteration: int
    columns: npt.NDArray[np.int64]
    residual_norms: npt.NDArray[np.float64]
    tested_norms: npt.NDArray[np.float64]


class SolveReport(TypedDict):
    """What a solver found, the same on all members of the grid. Arrays have one entry for each column of B."""

    solver: str
    iterations: int  #: the most of any column
    reasons: list[str]  #: "converged", "stagnated", "iteration_limit", … (docs/solvers.md)
    column_iterations: npt.NDArray[np.int64]
    residual_norms: npt.NDArray[np.float64]  #: ‖b − Ax‖, from its definition
    normal_residual_norms: npt.NDArray[np.float64]  #: ‖Aᴴ(b − Ax) − D²x‖, from its definition
    operator_norms: npt.NDArray[np.float64]
    conditions: npt.NDArray[np.float64]
    history: list[IterationRecord]
    alarms: list[dict[str, Any]]
    guard_products: int


@dataclass
class SolveOptions:
    """Options that all solvers have. Solvers take them as keyword arguments, too: ``cgls(A, B, damp=0.1)``."""

    max_iterations: int = 100
    #: Relative. None: 1e-8 in double, 1e-4 in single precision. 0 never converges.
    tolerance: float | None = None
    #: D ≥ 0: least squares minimise ‖AX − B‖² + D²‖X‖².
    damp: float = 0
    #: For lsqr and lsmr. atol is relative to ‖A‖‖r‖ and btol to ‖b‖; None: the tolerance.
    atol: float | None = None
    btol: float | None = None
    #: For lsqr and lsmr: a column ends when the condition number is estimated above it. 0: never.
    condition_limit: float = 0
    #: About so many columns are solved at a time, to bound the workspace. 0: all.
    batch: int = 0
    #: Sums over ranks are in rank order.
    column_stable: bool = False
    record_history: bool = True
    #: For cgls: an iteration reads a packed matrix once.
    one_pass: bool = False
    #: A column ends with "user_stop" once ‖b − Ax‖ is at most this part of that at the start. 0: never.
    residual_ratio: float = 0
    #: After every so many iterations the recurrence is checked against flipped bits. 0: never.
    guard: int = 0
    #: Prints PyLops' table on the grid's rank 0.
    show: bool = False
    #: Is called on every rank with an :data:`Iteration` at the start and after each iteration. If it returns true on any
    #: rank, all columns end with "user_stop". It may communicate, if it does so alike on all ranks.
    callback: Callable[[Iteration], Any] | None = None
    #: Objects with the methods of :class:`Observer`, or what :func:`stop_at_cost_ratio` and others return.
    observers: Sequence[Any] = field(default_factory=list)
    #: A directory to save the solver's state in, so that a job can go on with ``restart`` of that directory.
    checkpoint: str = ""
    checkpoint_iterations: int = 0
    checkpoint_seconds: float = 0
    #: Asked on every rank in each iteration; if true on any, the state is saved and all raise Suspended.
    checkpoint_requested: Callable[[], bool] | None = None
    restart: str = ""

    def native(self, initial_guess: bool) -> Any:
        options = _native.SolveOptions()
        for name in ("max_iterations", "tolerance", "damp", "atol", "btol", "condition_limit", "batch", "column_stable",
                     "record_history", "one_pass", "residual_ratio", "guard"):
            setattr(options, name, getattr(self, name))
        options.initial_guess = initial_guess
        if self.checkpoint or self.restart:
            saving = _native.CheckpointOptions()
            saving.directory = self.checkpoint
            saving.every_iterations = self.checkpoint_iterations
            saving.every_seconds = self.checkpoint_seconds
            saving.restart = self.restart
            if self.checkpoint_requested is not None:
                saving.set_requested(self.checkpoint_requested)
            options.checkpoint = saving
        if self.show:
            options.add_observer(_native.print_table(10, 10, 10))
        for observer in self.observers:
            if isinstance(observer, _native.SolveObserver):
                options.add_observer(observer)
            else:
                options.add_python_observer(observer)
        if self.callback is not None:
            options.add_python_observer(_CallbackObserver(self.callback))
        return options


class _CallbackObserver:
    def __init__(self, callback: Callable[[Iteration], Any]) -> None:
        self.step = callback

    def start(self, facts: Mapping[str, Any]) -> None:
        pass

    def end(self, report: SolveReport) -> None:
        pass


def stop_at_cost_ratio(ratio: float) -> Any:
    """An observer that ends all columns once ‖B − AX‖, of all together, has fallen to this part of that at the start."""
    return _native.stop_at_cost_ratio(ratio)


def stop_on_non_finite() -> Any:
    """An observer that ends all columns as soon as one of them is not finite."""
    return _native.stop_on_non_finite()


def _report(native: dict[str, Any]) -> SolveReport:
    for name in ("column_iterations", "residual_norms", "normal_residual_norms", "operator_norms", "conditions"):
        native[name] = np.asarray(native[name])
    for record in native["history"]:
        for name in ("columns", "residual_norms", "tested_norms"):
            record[name] = np.asarray(record[name])
    return native  # type: ignore[return-value]


def _options(given: SolveOptions | None, changes: dict[str, Any]) -> SolveOptions:
    values = {each.name: getattr(given, each.name) for each in fields(SolveOptions)} if given is not None else {}
    return SolveOptions(**{**values, **changes})


def _solution(A: Operator, B: Matrix, x0: Matrix | None, out: Matrix | None) -> Matrix:
    """The matrix that the solver takes for its guess and its result."""
    same_type(A, B)
    if x0 is not None and x0.shape != (A.shape[1], B.shape[1]):
        raise UsageError(f"an initial guess of {x0.shape[0]} x {x0.shape[1]} does not fit a model of "
                         f"{A.shape[1]} x {B.shape[1]}")
    X = zeros(A.domain, B.shape[1], A.dtype) if out is None else out
    if x0 is not None and x0 is not X:
        same_type(A, x0)
        functions_for(A.dtype).copy(x0.native, X.native)
    return same_type(A, X)


def _solve(name: str, A: Operator, B: Matrix, x0: Matrix | None, out: Matrix | None, options: SolveOptions | None,
           changes: dict[str, Any], *operators: Operator) -> tuple[Matrix, SolveReport]:
    X = _solution(A, B, x0, out)
    native = _options(options, changes).native(x0 is not None)
    same_type(A, *operators)
    solver = getattr(functions_for(A.dtype), name)
    report = solver(A.native, *(each.native for each in operators), B.native, X.native, native)
    return X, _report(report)


def cgls(A: Operator, B: Matrix, x0: Matrix | None = None, *, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Matrix, SolveReport]:
    """Least squares by CGLS: minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² for every column j. Collective over the grid.

    B is in ``A.range``. Returns X, in ``A.domain``, and the report. ``x0`` is an initial guess. The result is written to
    ``out`` if it is given, which may be x0. Keyword arguments are fields of :class:`SolveOptions`. Column j has
    converged when ‖Aᴴ(b−Ax) − D²x‖ ≤ tolerance · max(‖Aᴴb‖, ‖Aᴴ(b−Ax₀)‖). A column that does not converge is a result, not an
    error: see ``report["reasons"]``. Raises ShapeError or UsageError, on all ranks, before anything is sent.
    """
    return _solve("cgls", A, B, x0, out, options, changes)


def lsqr(A: Operator, B: Matrix, x0: Matrix | None = None, *, out: Matrix | None = None, variances: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Matrix, SolveReport]:
    """Least squares as :func:`cgls`, by LSQR: better on ill-conditioned problems.

    ``variances``, which lies as X, gets estimates of the diagonal of (AᴴA + D²I)⁻¹ from below.
    """
    if variances is None:
        return _solve("lsqr", A, B, x0, out, options, changes)
    X = _solution(A, B, x0, out)
    native = _options(options, changes).native(x0 is not None)
    report = functions_for(A.dtype).lsqr_variances(A.native, B.native, X.native, same_type(A, variances).native, native)
    return X, _report(report)


def lsmr(A: Operator, B: Matrix, x0: Matrix | None = None, *, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Matrix, SolveReport]:
    """Least squares as :func:`lsqr`, by LSMR, whose ‖Aᴴr‖ falls monotonically."""
    return _solve("lsmr", A, B, x0, out, options, changes)


def block_cgls(A: Operator, B: Matrix, x0: Matrix | None = None, *, out: Matrix | None = None,
               options: SolveOptions | None = None, **changes: Any) -> tuple[Matrix, SolveReport]:
    """Least squares as :func:`cgls`, but all right-hand sides share one Krylov space. Columns must be uncut."""
    return _solve("block_cgls", A, B, x0, out, options, changes)


def cg(A: Operator, B: Matrix, x0: Matrix | None = None, *, M: Operator | None = None, out: Matrix | None = None,
       options: SolveOptions | None = None, **changes: Any) -> tuple[Matrix, SolveReport]:
    """(A + D²I) xⱼ = bⱼ for a Hermitian positive definite A, by conjugate gradients; otherwise as :func:`cgls`.

    A column has converged when ‖b−Ax−D²x‖ ≤ tolerance · max(‖b‖, ‖b−Ax₀‖). ``M`` ≈ (A + D²I)⁻¹ is a preconditioner.
    """
    if M is None:
        return _solve("cg", A, B, x0, out, options, changes)
    return _solve("pcg", A, B, x0, out, options, changes, M)
