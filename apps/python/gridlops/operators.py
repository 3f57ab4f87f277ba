# SPDX-License-Identifier: BSD-3-Clause
"""Linear operators, their algebra, and operators that are written in Python."""

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

    ``A @ X`` and ``A.H @ Y`` are products, which are collective over the grid. With operators of the same element type
    ``A @ B``, ``A + B``, ``A - B``, ``2 * A`` and ``A / 2`` are operators; making one communicates nothing. Operators are made by
    functions such as :func:`matrix_mult`. Where there is one rank, arrays of NumPy are multiplied, too: vectors, matrices of
    columns, and arrays with the sizes of the space. SciPy's ``aslinearoperator(A)`` works there.
    """

    __array_ufunc__ = None  # NumPy's arrays and scalars leave products with an operator to it

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
        """Where models live."""
        return Space.of(self.grid, self.native.domain)

    @property
    def range(self) -> Space:
        """Where data live."""
        return Space.of(self.grid, self.native.range)

    @property
    def activity(self) -> dict[str, int]:
        """How often this operator was applied, and to how many columns."""
        return self.native.activity

    def apply(self, X: Matrix, Y: Matrix, alpha: complex = 1, beta: complex = 0) -> Matrix:
        """Y ← α A X + β Y (collective over the grid); returns Y.

        X is in the domain and Y in the range, with the same columns; they must not overlap. With β = 0 the old Y is not
        read. Raises ShapeError, on all ranks, before anything is sent.
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
        """Aᵀ, which is Aᴴ of a real operator. Of a complex one it conjugates copies of what it is applied to."""
        if self.dtype.kind != "c":
            return self.H

        def conjugated(product: Callable[[Matrix, Matrix], Matrix]) -> Callable[[Matrix, Matrix], None]:
            def apply(given: Matrix, result: Matrix) -> None:
                conjugate = given.copy()
                np.conjugate(given.local, out=conjugate.local)
                product(conjugate, result)
                np.conjugate(result.local, out=result.local)
            return apply

        return function_operator(self.domain, self.range, conjugated(self.apply_adjoint), conjugated(self.apply), self.dtype)

    def matrix_changed(self) -> None:
        """Says that the matrix given to :func:`matrix_mult`, which made this operator, has changed (collective over the grid).

        Call it after every change and before the next product, also where only other ranks have changed their blocks.
        """
        self.native.matrix_changed()

    def dot_test(self, columns: int = 3, tolerance: float = 0, seed: int = 1) -> tuple[bool, float, float]:
        """Whether ⟨Ax, y⟩ = ⟨x, Aᴴy⟩ for random columns: (passed, mismatch, tolerance). Collective over the grid.

        The tolerance is what rounding allows, unless a positive one is given. There must be one column at least.
        """
        return self.native.dot_test(columns, tolerance, seed)

    def estimate_norm(self, steps: int = 20, seed: int = 1) -> float:
        """‖A‖ from below, within a per cent unless large singular values cluster (collective)."""
        return self.native.estimate_norm(steps, seed)

    def lanczos_extremes(self, steps: int = 30, seed: int = 1) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of a Hermitian operator, both from within (collective)."""
        return self.native.lanczos_extremes(steps, seed)

    def power_iteration(self, max_iterations: int = 100, tolerance: float = 1e-5, seed: int = 1) -> tuple[complex, Matrix, int, bool]:
        """The eigenvalue λ of largest modulus and its vector v, the iterations, and whether they converged (collective).

        They have where ‖A v − λ v‖ ≤ tolerance · |λ|. Where different eigenvalues share the largest modulus they do not.
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
    """map(given); where one rank has all, given may also be a whole array, as which the result is returned then."""
    if not isinstance(given, np.ndarray):
        require_matrix("a product", given)
        return map(given)
    X = domain.whole_on_one_rank(given, dtype)
    return range.gather_array(map(X)).reshape(domain.form_of(given.shape).shape_in(range))  # type: ignore[union-attr]


def matrix_mult(A: Matrix | npt.NDArray[Any], algorithm: str = "stationary-a", *, panel: int = 0, lookahead: int = 2,
                column_stable: bool = False, storage: str = "columns") -> Operator:
    """A dense matrix as an operator, which uses the matrix in place and keeps it alive. Not collective.

    Where there is one rank, A may be an array of NumPy, which is copied. Who changes the matrix later says so by :meth:`Operator.matrix_changed`: products may use copies of it.

    The algorithm says which of the matrices moves in Y = A X: ``"stationary-a"`` never moves A and is best for few
    columns; ``"summa"`` never moves Y, ``"stationary-b"`` never X; ``"block"`` keeps copies of A's rows along grid rows.
    A must lie as :meth:`Grid.matrix_layout` says for it, at balanced or other places; otherwise ShapeError.
    ``storage="packed"`` keeps a second, packed copy of A for products with few columns.
    """
    if isinstance(A, np.ndarray):
        grid = Grid()
        require_one_rank(grid, "gridlops.Matrix(grid, grid.matrix_layout(*array.shape)).scatter(array)")
        if A.ndim != 2:
            raise ShapeError(f"an array of shape {A.shape} is no matrix, which has rows and columns")
        whole = whole_array(A)
        A = Matrix(grid, grid.matrix_layout(*A.shape, algorithm), whole.dtype).scatter(whole)
    require_matrix("matrix_mult", A)
    made = functions_for(A.dtype).matrix_mult(algorithm, A.native, panel, lookahead, column_stable, storage)
    return Operator(A.grid, A.dtype, made)


def identity(range: Space, domain: Space | None = None, dtype: npt.DTypeLike = np.float64) -> Operator:
    """I between two spaces of one dimension; between different ones it redistributes."""
    return _between(range, domain, dtype, "identity")


def zero(range: Space, domain: Space | None = None, dtype: npt.DTypeLike = np.float64) -> Operator:
    """The operator that is zero."""
    return _between(range, domain, dtype, "zero")


def _between(range: Space, domain: Space | None, dtype: npt.DTypeLike, maker: str, *args: Any) -> Operator:
    made = getattr(functions_for(dtype), maker)(range.native, (range if domain is None else domain).native, *args)
    return Operator(range.grid, dtype, made)


def diagonal(space: Space, d: Matrix) -> Operator:
    """diag(d) in this space. d is one column, cut as its rows, and is used in place."""
    return Operator(space.grid, d.dtype, functions_for(d.dtype).diagonal(space.native, d.native))


def vertical_stack(operators: Sequence[Operator]) -> Operator:
    """[A₁; A₂; …], of operators with the same domain. A rank's data are its parts of each, one below the other."""
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

    ``forward(X, Y)`` writes A X to ``Y.local``, and ``adjoint(Y, X)`` writes Aᴴ Y to ``X.local``. The output holds
    anything before. Both are called on every member of the grid and may communicate there, for example by mpi4py. The
    matrices must not be kept after the call. What a function raises on one rank, solvers and :meth:`Operator.dot_test`
    raise on all, as long as it took its part in the communication.
    """
    def between(given: Space, result: Space, function: Callable[[Matrix, Matrix], None]) -> Callable[[Any, Any], None]:
        return lambda x, y: function(Matrix.of(given.grid, dtype, x, given), Matrix.of(result.grid, dtype, y, result))

    return _between(range, domain, dtype, "function_operator", between(domain, range, forward), between(range, domain, adjoint))


Block = npt.NDArray[Any]


def local_operator(range: Space, domain: Space, forward: Callable[[Block, Block], None],
                   adjoint: Callable[[Block, Block], None], dtype: npt.DTypeLike = np.float64) -> Operator:
    """The operator that is made of one matrix for each rank, given by its products. Not collective.

    ``forward(x, y)`` writes B x to y, and ``adjoint(y, x)`` writes Bᴴ y to x; both are blocks of (rows, columns), the
    output holds anything before, and neither must be kept. Which operator it is depends on how the spaces are cut:

    ==================  ==================  =========================================================
    range               domain              operator
    ==================  ==================  =========================================================
    cut                 cut the same way    block-diagonal; nothing moves
    cut                 uncut               [B₀; B₁; …]; the adjoint sums models over the parts
    uncut               cut                 [B₀ B₁ …]; the forward product sums data
    ``grid_rows``       ``grid_cols``       a matrix of blocks; both sum over a row or column of the grid
    ==================  ==================  =========================================================
    """
    def of_arrays(function: Callable[[Block, Block], None]) -> Callable[[Any, Any], None]:
        return lambda given, result: function(np.asarray(given), np.asarray(result))

    return _between(range, domain, dtype, "local_operator", of_arrays(forward), of_arrays(adjoint))


def local_matrix(range: Space, domain: Space, B: Any) -> Operator:
    """:func:`local_operator` of this rank's B: a NumPy array, a SciPy sparse matrix or LinearOperator, a PyLops operator.

    B has this rank's rows of the range and of the domain, and knows ``B @ x`` for a block of columns, and ``B.conj().T``
    or ``B.H``.
    """
    Bh = B.H if hasattr(B, "H") and not hasattr(B, "toarray") else B.conj().T

    def forward(x: Block, y: Block) -> None:
        y[...] = B @ x

    def backward(y: Block, x: Block) -> None:
        x[...] = Bh @ y

    return local_operator(range, domain, forward, backward, B.dtype)
