# SPDX-License-Identifier: BSD-3-Clause
"""Options of solvers, what they mean elsewhere, and who may watch a solve."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import time
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Mapping, Protocol, Sequence

from .. import _native
from ..errors import UsageError
from ..grids import with_docstrings
from ..matrices import PerColumn

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
