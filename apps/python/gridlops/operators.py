# SPDX-License-Identifier: BSD-3-Clause
"""Linear operators, their algebra, and operators written in Python."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt

from .errors import ShapeError, UsageError
from .grids import Grid
from .matrices import Matrix, functions_for, require_matrix, require_one_rank, same_type, whole_array
from .spaces import Space, zeros


class Operator:
    """A linear map A from its domain to its range, applied to many columns at once.

    ``A @ X`` and ``A.H @ Y`` are products; they are collective over the grid. ``A @ B``, ``A + B``, ``A - B``, ``2 * A``
    and ``A / 2`` are operators, for A and B of the same element type; making them communicates nothing. Functions such
    as :func:`matrix_mult` make operators. On one rank, X and Y may also be arrays of NumPy: vectors, matrices of columns,
    or arrays with the sizes of the space. SciPy's ``aslinearoperator(A)`` works on one rank, too.
    """

    __array_ufunc__ = None  # makes NumPy leave products with an operator to the operator

    def __init__(self, grid: Grid, dtype: npt.DTypeLike, native: Any) -> None:
        self.grid = grid
        self.dtype = np.dtype(dtype)
        self.native = native

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns): the dimensions of the range and of the domain."""
        return self.native.range.dimension, self.native.domain.dimension

    @property
    def domain(self) -> Space:
        """The space of models."""
        return Space.of(self.grid, self.native.domain)

    @property
    def range(self) -> Space:
        """The space of data."""
        return Space.of(self.grid, self.native.range)

    @property
    def activity(self) -> dict[str, int]:
        """The number of applications of this operator, and of the columns that it multiplied."""
        return self.native.activity

    def apply(self, X: Matrix, Y: Matrix, alpha: complex = 1, beta: complex = 0) -> Matrix:
        """Y ← α A X + β Y (collective over the grid); returns Y.

        X is in the domain and Y in the range, with the same columns; they must not overlap. With β = 0 the product does
        not read the old Y. Wrong shapes raise ShapeError on all ranks, before any rank sends anything.
        """
        same_type(self, X, Y)
        self.native.apply(alpha, X.native, beta, Y.native)
        return Y

    def apply_adjoint(self, Y: Matrix, X: Matrix, alpha: complex = 1, beta: complex = 0) -> Matrix:
        """X ← α Aᴴ Y + β X; otherwise as :meth:`apply`."""
        same_type(self, Y, X)
        self.native.apply_adjoint(alpha, Y.native, beta, X.native)
        return X

    def matvec(self, X: Matrix | npt.NDArray[Any]) -> Any:
        """A X, in a new matrix, or array for an array (collective over the grid)."""
        return on_arrays(self.domain, self.range, self.dtype, X,
                         lambda given: self.apply(given, zeros(self.range, given.shape[1], self.dtype)))

    def rmatvec(self, Y: Matrix | npt.NDArray[Any]) -> Any:
        """Aᴴ Y, otherwise as :meth:`matvec`."""
        return on_arrays(self.range, self.domain, self.dtype, Y,
                         lambda given: self.apply_adjoint(given, zeros(self.domain, given.shape[1], self.dtype)))

    matmat = matvec
    rmatmat = rmatvec

    @property
    def H(self) -> Operator:
        """Aᴴ."""
        return self._made(functions_for(self.dtype).adjoint(self.native))

    @property
    def T(self) -> Operator:
        """Aᵀ: Aᴴ for a real operator. A complex one conjugates a copy of its input and its output in each product."""
        if self.dtype.kind != "c":
            return self.H

        def conjugated(product: Callable[[Matrix, Matrix], Matrix]) -> Callable[[Matrix, Matrix], None]:
            def apply(given: Matrix, result: Matrix) -> None:
                conjugate = given.zeros_like().take_local(np.conjugate(given.host_copy()))
                product(conjugate, result)
                result.take_local(np.conjugate(result.host_copy()))
            return apply

        return function_operator(self.domain, self.range, conjugated(self.apply_adjoint), conjugated(self.apply), self.dtype)

    def matrix_changed(self) -> None:
        """Says that the matrix of this operator, made by :func:`matrix_mult`, has changed (collective over the grid).

        All ranks call it after every change and before the next product, even if only one rank has changed its block.
        """
        self.native.matrix_changed()

    def dot_test(self, columns: int = 3, tolerance: float = 0, seed: int = 1) -> tuple[bool, float, float]:
        """Whether ⟨Ax, y⟩ = ⟨x, Aᴴy⟩ for random columns: (passed, mismatch, tolerance). Collective over the grid.

        By default, and for 0, the tolerance is what rounding allows. ``columns`` is at least 1.
        """
        return self.native.dot_test(columns, tolerance, seed)

    def estimate_norm(self, steps: int = 20, seed: int = 1) -> float:
        """An estimate of ‖A‖ from below, within 1 % unless large singular values cluster (collective)."""
        return self.native.estimate_norm(steps, seed)

    def probable_sigma_min(self, failure: float = 1e-9, seed: int = 1) -> float:
        """What the smallest singular value of A is probably not below, for :func:`error_bounds` (collective).

        A random sketch of A says so, and is wrong with the probability of ``failure`` at most, for any A that was chosen without
        knowing the seed. A must have four times as many rows as columns. Takes as many columns of adjoint products as the sketch has
        rows, four times those of A, and nine times their square of numbers on rank 0. 0: rounding hides it.
        """
        return self.native.probable_sigma_min(failure, seed)

    def proven_sigma_min(self) -> float:
        """What the smallest singular value of A is not below for certain, for :func:`error_bounds` (collective).

        0: it cannot be proven, since rounding hides it. It is within a tenth of the singular value up to condition numbers of about
        1e16/n for n columns, or 1e15/n² if many singular values are as small. A has at least as many rows as columns, and is a
        matrix that never moves, which is read two or three times.
        """
        return self.native.proven_sigma_min()

    def lanczos_extremes(self, steps: int = 30, seed: int = 1) -> tuple[float, float]:
        """Estimates, from within, of the smallest and largest eigenvalue of a Hermitian operator (collective)."""
        return self.native.lanczos_extremes(steps, seed)

    def power_iteration(self, max_iterations: int = 100, tolerance: float = 1e-5, seed: int = 1) -> tuple[complex, Matrix, int, bool]:
        """(λ, v, iterations, converged): the eigenvalue of largest modulus and its vector (collective).

        It converges when ‖A v − λ v‖ ≤ tolerance · ``|λ|``. It does not converge if different eigenvalues share the largest
        modulus.
        """
        value, iterations, converged, vector = self.native.power_iteration(max_iterations, tolerance, seed)
        return value, Matrix.of(self.grid, self.dtype, vector, self.domain), iterations, converged

    def _made(self, native: Any) -> Operator:
        return Operator(self.grid, self.dtype, native)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            return self._made(functions_for(self.dtype).product(self.native, same_type(self, other).native))
        return self.matvec(other) if isinstance(other, (Matrix, np.ndarray)) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return self.T.matvec(other.T).T
        return NotImplemented

    def __add__(self, other: Any) -> Operator:
        if not isinstance(other, Operator):
            return NotImplemented
        return self._made(functions_for(self.dtype).sum(self.native, same_type(self, other).native))

    def __radd__(self, other: Any) -> Operator:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() begins with 0

    def __sub__(self, other: Any) -> Operator:
        return self + -other if isinstance(other, Operator) else NotImplemented

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, np.ndarray):
            return self.matvec(factor)
        if not isinstance(factor, (int, float, complex, np.number)):
            return NotImplemented
        if np.iscomplexobj(factor) and self.dtype.kind != "c":
            raise UsageError(f"{factor} times an operator of {self.dtype.name} is complex, and an operator has one element type: "
                             f"make it of {np.result_type(self.dtype, np.complex64).name}")
        return self._made(functions_for(self.dtype).scale(factor, self.native))

    def __rmul__(self, factor: Any) -> Any:
        return factor @ self if isinstance(factor, np.ndarray) else self * factor

    def __truediv__(self, divisor: complex) -> Operator:
        return self * (1 / divisor)

    def __neg__(self) -> Operator:
        return -1 * self

    def __repr__(self) -> str:
        return f"<Operator {self.shape[0]} x {self.shape[1]}, {self.dtype.name}>"


def on_arrays(domain: Space, range: Space, dtype: npt.DTypeLike, given: Any, map: Callable[[Matrix], Matrix]) -> Any:
    """map(given). On one rank, given may be a whole array; the result is then a whole array, too."""
    if not isinstance(given, np.ndarray):
        require_matrix("a product", given)
        return map(given)
    X = domain.whole_on_one_rank(given, dtype)
    return range.gather_array(map(X)).reshape(domain.form_of(given.shape).shape_in(range))  # type: ignore[union-attr]


def matrix_mult(A: Matrix | npt.NDArray[Any], algorithm: str = "stationary-a", *, panel: int = 0, lookahead: int = 2,
                column_stable: bool = False, storage: str = "columns") -> Operator:
    """The operator of a dense matrix, which it uses in place and keeps alive. Not collective.

    If you change the matrix later, call :meth:`Operator.matrix_changed`, because products may use copies of it. On one
    rank, A may be an array of NumPy, which the operator copies.

    The algorithm says which matrices move in Y = A X: ``"stationary-a"`` never moves A and is best for few columns;
    ``"summa"`` never moves Y, ``"stationary-b"`` never X; ``"block"`` keeps copies of A's rows along grid rows. A must
    have the axes of :meth:`Grid.matrix_layout` for the algorithm, with any cuts; otherwise ShapeError.
    ``storage="packed"`` keeps a second, packed copy of A for products with few columns, and ``"planes"`` one whose
    numbers are stored in two halves.
    """
    matrix = matrix_of("matrix_mult", A, algorithm)
    made = functions_for(matrix.dtype).matrix_mult(algorithm, matrix.native, panel, lookahead, column_stable, storage)
    return Operator(matrix.grid, matrix.dtype, made)


def matrix_of(caller: str, A: Matrix | npt.NDArray[Any], algorithm: str = "stationary-a") -> Matrix:
    """A itself, or on one rank a copy of an array of NumPy; for this package's own files."""
    if not isinstance(A, np.ndarray):
        require_matrix(caller, A)
        return A
    grid = Grid()
    require_one_rank(grid, "gridlops.Matrix(grid, grid.matrix_layout(*array.shape)).scatter(array)")
    if A.ndim != 2:
        raise ShapeError(f"an array of shape {A.shape} is no matrix, which has rows and columns")
    whole = whole_array(A)
    return Matrix(grid, grid.matrix_layout(*A.shape, algorithm), whole.dtype).scatter(whole)


def high_plane(A: Operator) -> Operator:
    """The operator Ã of the high plane of a matrix, for A by :func:`matrix_mult` with ``storage="planes"``. Not collective.

    Every real number is rounded to 21 binary digits. Ã shares A's memory, and its products read half of it:
    :func:`solve_refined` takes it as an approximation of A. Raises UsageError for any other operator.
    """
    return Operator(A.grid, A.dtype, functions_for(A.dtype).high_plane(A.native))


def identity(range: Space, domain: Space | None = None, dtype: npt.DTypeLike = np.float64) -> Operator:
    """I between two spaces of the same dimension. Between different spaces it redistributes."""
    return _between(range, domain, dtype, "identity")


def zero(range: Space, domain: Space | None = None, dtype: npt.DTypeLike = np.float64) -> Operator:
    """The zero operator."""
    return _between(range, domain, dtype, "zero")


def _between(range: Space, domain: Space | None, dtype: npt.DTypeLike, maker: str, *args: Any) -> Operator:
    made = getattr(functions_for(dtype), maker)(range.native, (range if domain is None else domain).native, *args)
    return Operator(range.grid, dtype, made)


def diagonal(space: Space, d: Matrix | npt.NDArray[Any]) -> Operator:
    """diag(d) in this space. d is one column, cut like the space's rows; the operator uses it in place.

    On one rank, d may be an array of NumPy, a vector or one with the sizes of the space, which the operator copies.
    """
    if isinstance(d, np.ndarray):
        d = space.whole_on_one_rank(d, d.dtype)
    require_matrix("diagonal", d)
    return Operator(space.grid, d.dtype, functions_for(d.dtype).diagonal(space.native, d.native))


def vertical_stack(operators: Sequence[Operator]) -> Operator:
    """[A₁; A₂; …], of operators with the same domain. A rank's data are its parts of all members, one below another."""
    return _of_several(operators, "vertical_stack")


def horizontal_stack(operators: Sequence[Operator]) -> Operator:
    """[A₁ A₂ …], of operators with the same range."""
    return _of_several(operators, "horizontal_stack")


def block_diagonal(operators: Sequence[Operator]) -> Operator:
    """The block-diagonal operator with these blocks."""
    return _of_several(operators, "block_diagonal")


def _of_several(operators: Sequence[Operator], maker: str) -> Operator:
    if not operators:
        raise UsageError("a stack of no operators has no shape: give one at least")
    same_type(*operators)
    first = operators[0]
    made = getattr(functions_for(first.dtype), maker)([each.native for each in operators])
    return Operator(first.grid, first.dtype, made)


def damped(A: Operator, damp: float) -> Operator:
    """[A; damp · I], the operator of Tikhonov regularisation."""
    return Operator(A.grid, A.dtype, functions_for(A.dtype).damped(A.native, damp))


def function_operator(range: Space, domain: Space, forward: Callable[[Matrix, Matrix], None],
                      adjoint: Callable[[Matrix, Matrix], None], dtype: npt.DTypeLike = np.float64) -> Operator:
    """An operator whose products are Python functions of distributed matrices. Not collective.

    ``forward(X, Y)`` writes A X to ``Y.local``, and ``adjoint(Y, X)`` writes Aᴴ Y to ``X.local``. Before the call, the
    output is undefined. Every member of the grid calls both functions, and they may communicate, for example by mpi4py.
    Do not keep the matrices after the call. If a function raises on one rank but takes its part in the communication,
    solvers and :meth:`Operator.dot_test` raise the error on all ranks.
    """
    def between(given: Space, result: Space, function: Callable[[Matrix, Matrix], None]) -> Callable[[Any, Any], None]:
        return lambda x, y: function(Matrix.of(given.grid, dtype, x, given), Matrix.of(result.grid, dtype, y, result))

    return _between(range, domain, dtype, "function_operator", between(domain, range, forward), between(range, domain, adjoint))


Block = npt.NDArray[Any]


def local_operator(range: Space, domain: Space, forward: Callable[[Block, Block], None],
                   adjoint: Callable[[Block, Block], None], dtype: npt.DTypeLike = np.float64) -> Operator:
    """An operator of one matrix B per rank, given by its products. Not collective.

    ``forward(x, y)`` writes B x to y, and ``adjoint(y, x)`` writes Bᴴ y to x; both are blocks of (rows, columns).
    Before the call, the output is undefined. Do not keep the blocks after the call. The cuts of the spaces determine
    the operator:

    ==================  ==================  =========================================================
    range               domain              operator
    ==================  ==================  =========================================================
    cut                 cut the same way    block-diagonal; nothing moves
    cut                 uncut               [B₀; B₁; …]; the adjoint sums models over the parts
    uncut               cut                 [B₀ B₁ …]; the forward product sums data
    ``grid_rows``       ``grid_cols``       a matrix of blocks; both sum over a row or column of the grid
    ==================  ==================  =========================================================
    """
    if range.grid.device == "gpu":
        raise UsageError("blocks of a grid on GPUs are not arrays of NumPy: gridlops.function_operator gives its functions matrices, and "
                         "cupy.asarray(X.local) is their block")

    def of_arrays(function: Callable[[Block, Block], None]) -> Callable[[Any, Any], None]:
        return lambda given, result: function(np.asarray(given), np.asarray(result))

    return _between(range, domain, dtype, "local_operator", of_arrays(forward), of_arrays(adjoint))


def local_matrix(range: Space, domain: Space, B: Any) -> Operator:
    """:func:`local_operator` of this rank's B: a NumPy array, a SciPy sparse matrix or LinearOperator, a PyLops operator.

    B maps this rank's rows of the domain to its rows of the range. It needs ``B @ x`` for a block of columns, and
    ``B.conj().T`` or ``B.H``.
    """
    Bh = B.H if hasattr(B, "H") and not hasattr(B, "toarray") else B.conj().T

    def forward(x: Block, y: Block) -> None:
        y[...] = B @ x

    def backward(y: Block, x: Block) -> None:
        x[...] = Bh @ y

    return local_operator(range, domain, forward, backward, B.dtype)
