# SPDX-License-Identifier: BSD-3-Clause
"""Solvers. Each column of B has its own step length, stopping test and verdict."""

from __future__ import annotations

import logging
from typing import Any, Callable, Sequence, cast

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import ShapeError, UsageError
from ..matrices import Matrix, PerColumn, functions_for, require_matrix, same_type, whole_array
from ..operators import Operator, identity, on_arrays
from ..spaces import zeros
from .factors import Factor
from .options import SolveOptions, options_with
from .proximal import Proximal
from .reports import SolveReport

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


def _weights_by(misfit: Callable[[npt.NDArray[np.float64]], npt.ArrayLike]) -> Callable[[memoryview], npt.NDArray[np.float64]]:
    """The user's function, for memory that is lent to it while it runs."""

    def weights(lent: memoryview) -> npt.NDArray[np.float64]:
        t = np.array(lent)
        found = np.ascontiguousarray(misfit(t), np.float64)
        if found.shape != t.shape:
            raise ShapeError(f"the function of a misfit must return a weight for each of {t.shape[0]} residuals, but it returned an array of {found.shape}")
        return found

    return weights


def mark_holes(B: Matrix, weights: Matrix) -> int:
    """Sets weights to 0 where B is NaN, and returns how many these are. Collective over the grid.

    Both have one layout. In one process, ``weights=~np.isnan(B)`` does the same with arrays.
    """
    return int(functions_for(B.dtype).mark_holes(B.native, same_type(B, weights).native))


def solve(solver: str, A: Operator, B: Columns, x0: Columns | None = None, *, M: Operator | None = None, S: Operator | None = None,
          penalty: Proximal | None = None, variances: Matrix | None = None, factor: Factor | None = None, lower: Bounds | None = None,
          upper: Bounds | None = None, weights: Columns | None = None, misfit: Misfit = "l2", misfit_scale: PerColumn | None = None,
          misfit_weights: Matrix | None = None, out: Matrix | None = None, options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Solves for every column of B by the solver of this name, one of :func:`solver_names`. Collective over the grid.

    B is in ``A.range``. Returns X, in ``A.domain``, and the report. On one rank, B and ``x0`` may be whole arrays; if B
    is one, X is, too. ``x0`` is an initial guess. With ``out``, the solver writes X there; ``out`` may be x0, and must
    share no memory with B. Keyword arguments are fields of :class:`SolveOptions`. ``M`` is the preconditioner of "pcg" and "pcgls",
    ``S`` the sparsifying operator of "ista" and "fista", and ``penalty`` the penalty of "proximal-gradient".
    ``variances``, with the layout of X, gets the estimates of "lsqr", or what "direct" has exactly. ``factor`` is that of "direct",
    and ``lower`` and ``upper`` are those of :func:`bounded`. ``weights``, a real number ≥ 0 for each of B, on one
    rank also an array like B or one column for all, multiply the residuals of least squares and of solvers with a penalty;
    0 leaves a number out, also NaN. ``misfit`` is "l2", or for "cgls" and "pcgls" one that wild numbers of B do not spoil: "huber", "l1",
    "cauchy", "tukey", or a function that returns the weights φ for an array of residuals over the scale. ``misfit_scale`` is that scale,
    by default that of each column's residuals, and ``misfit_weights``, with the layout of B, gets ``weights`` times √φ. The report then
    has ``misfit_scales``, ``misfit_solves``, ``misfit_rejected`` and ``misfit_distances``. A column that does not converge is a result, not
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

    is_robust = misfit != "l2"
    if is_robust and any(each is not None for each in (S, penalty, variances, factor, lower, upper)):
        raise UsageError("a misfit is for least squares by cgls and pcgls: leave out S, penalty, variances, factor, lower and upper")
    if not is_robust and (misfit_scale is not None or misfit_weights is not None):
        raise UsageError("misfit_scale and misfit_weights need a misfit")

    def call(native: Any, b: Any, x: Any, how: Any) -> dict[str, Any]:
        if is_robust:
            scale = None if misfit_scale is None else np.asarray(misfit_scale, np.float64).tolist()
            return cast("dict[str, Any]", native.robust_solve(solver, A.native, b, x, how, given[0], None if weighted is None else weighted.native,
                                                              None if misfit_weights is None else same_type(A, misfit_weights).native,
                                                              misfit if isinstance(misfit, str) else _weights_by(misfit), scale))
        bounds = [_bounds(A, each, x.layout.shape[1]) for each in (lower, upper)]
        return cast("dict[str, Any]", native.solve(solver, A.native, b, x, how, *given, *(None if each is None else each.native for each in (*bounds, weighted))))

    return solved(A, B, x0, out, options, changes, call)


#: The name of a misfit, or a function from an array of ``|w∘(b − Ax)|/s`` to an array of weights φ ≥ 0.
Misfit = str | Callable[[npt.NDArray[np.float64]], npt.ArrayLike]
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


def cgls(A: Operator, B: Columns, x0: Columns | None = None, *, weights: Columns | None = None, misfit: Misfit = "l2",
         misfit_scale: PerColumn | None = None, misfit_weights: Matrix | None = None, out: Matrix | None = None,
         options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Least squares by CGLS: minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² for every column j. Otherwise like :func:`solve`.

    Column j has converged when ‖Aᴴ(b−Ax) − D²x‖ ≤ tolerance · ‖Aᴴb‖, for any guess.
    """
    return solve("cgls", A, B, x0, weights=weights, misfit=misfit, misfit_scale=misfit_scale, misfit_weights=misfit_weights, out=out, options=options, **changes)


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
