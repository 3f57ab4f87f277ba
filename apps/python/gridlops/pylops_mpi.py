# SPDX-License-Identifier: BSD-3-Clause
"""GridLOps for scripts written for PyLops-MPI: change only the import of these names.

    from gridlops.pylops_mpi import MPIMatrixMult, cg, cgls, fista, ista

They take and return objects of ``pylops_mpi``: :class:`DistributedArray`, :class:`StackedDistributedArray` and any
:class:`MPILinearOperator`, on the host. As in PyLops-MPI, a whole array is one vector, with one step length and one
stopping test. To solve for many right-hand sides, use :mod:`gridlops` itself, where each has its own.

Differences: if rounding breaks an iteration down, the solver ends with the best model so far. If the step of ``ista``
or ``fista`` is too long, they return the last good model, with an infinite last cost. Their ``rtol`` and ``rtol1`` have
no effect, as in PyLops-MPI 0.8.
"""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any, Callable, Literal, Sequence

import numpy as np
import numpy.typing as npt
from mpi4py import MPI
from pylops_mpi import DistributedArray, MPILinearOperator, Partition, StackedDistributedArray

from . import operators
from .solving import solvers
from .blocks import type_name
from .errors import UsageError
from .grids import Cut, Grid, Layout
from .matrices import Matrix
from .spaces import Space, zeros

__all__ = ["MPIMatrixMult", "cg", "cgls", "fista", "ista"]

Vector = DistributedArray | StackedDistributedArray


class _MatrixMult(MPILinearOperator):
    """Y = A X for matrices in PyLops-MPI's layout: Y, X and A in blocks of ⌈n/√P⌉, each block in C order."""

    def __init__(self, A: npt.NDArray[Any], M: int, algorithm: str, base_comm: MPI.Comm, dtype: npt.DTypeLike) -> None:
        p = math.isqrt(base_comm.size)
        if p * p != base_comm.size:
            raise UsageError(f"a matrix product needs a square number of ranks here, and there are {base_comm.size}: take "
                             "the communicator of active_grid_comm(), or gridlops.matrix_mult, which takes any")
        self._grid = Grid(base_comm, (p, p))
        self._by_blocks = algorithm == "block"
        # All sizes follow from the ranks' blocks.
        shapes = base_comm.allgather(A.shape)
        if self._by_blocks:
            row_sizes, col_sizes = [shapes[j][0] for j in range(p)], [A.shape[1]]
        else:
            row_sizes, col_sizes = [shapes[i * p][0] for i in range(p)], [shapes[j][1] for j in range(p)]
        self.N, self.K, self.M = sum(row_sizes), sum(col_sizes), M
        width = math.ceil(M / p)
        columns = [max(0, min(M, (i + 1) * width) - i * width) for i in range(p)]
        if self._by_blocks:
            layout = Layout(Cut("grid_cols", row_sizes), Cut("uncut", col_sizes))
            self._columns = Cut("grid_rows", columns)
            self._model_rows = Cut("uncut", col_sizes)
            self._data_rows = Cut("grid_cols", row_sizes)
        else:
            layout = Layout(Cut("grid_rows", row_sizes), Cut("grid_cols", col_sizes))
            # Grid rows cut the rows of X, like those of Y, into blocks of ⌈K/√P⌉.
            height = math.ceil(self.K / p)
            rows = [max(0, min(self.K, (i + 1) * height) - i * height) for i in range(p)]
            self._columns = Cut("grid_cols", columns)
            self._model_rows, self._data_rows = Cut("grid_rows", rows), Cut("grid_rows", row_sizes)
        block = Matrix.from_local(self._grid, layout, np.array(A, np.dtype(dtype), order="F"))
        self._native = operators.matrix_mult(block, algorithm)
        total = self._total_columns()
        super().__init__(dims=(self.K, total), dimsd=(self.N, total), dtype=np.dtype(dtype), base_comm=base_comm)

    def _apply(self, x: DistributedArray, adjoint: bool) -> DistributedArray:
        if x.partition != Partition.SCATTER:
            raise ValueError(f"x should have partition={Partition.SCATTER} Got {x.partition} instead...")
        result_type = np.result_type(self.dtype, x.dtype)
        rows_in, rows_out = (self._data_rows, self._model_rows) if adjoint else (self._model_rows, self._data_rows)
        given = x.local_array.reshape(self._user_shape(rows_in))
        # A real matrix multiplies real and imaginary parts separately.
        split = np.iscomplexobj(given) and self.dtype.kind != "c"
        parts = (given.real, given.imag) if split else (given,)
        results = [self._multiply(part, rows_in, rows_out, adjoint) for part in parts]
        local = results[0] + 1j * results[1] if split else results[0]
        y = DistributedArray(global_shape=(rows_out.total * self._total_columns(),), mask=x.mask, local_shapes=self.base_comm.allgather(local.size),
                             partition=Partition.SCATTER, engine=x.engine, dtype=result_type, base_comm=x.base_comm)
        y[:] = local.ravel()
        return y

    def _total_columns(self) -> int:
        """The columns of all ranks' blocks together, copies included."""
        return self.M * (self._grid.shape[0] if self._by_blocks else 1)

    def _user_shape(self, rows: Cut) -> tuple[int, int]:
        """The shape of the caller's block. With blocks of columns it has all rows."""
        if self._by_blocks:
            return rows.total, self._columns.sizes[self._grid.row]
        return rows.sizes[self._grid.row], self._columns.sizes[self._grid.col]

    def _multiply(self, given: npt.NDArray[Any], rows_in: Cut, rows_out: Cut, adjoint: bool) -> npt.NDArray[Any]:
        X = Matrix(self._grid, Layout(rows_in, self._columns), self.dtype)
        X.local[...] = given[X.rows] if self._by_blocks else given
        Y = Matrix(self._grid, Layout(rows_out, self._columns), self.dtype)
        (self._native.apply_adjoint if adjoint else self._native.apply)(X, Y)
        if self._by_blocks:
            Y = Y.redistribute(Layout(Cut("uncut", [rows_out.total]), self._columns))
        return np.ascontiguousarray(Y.local)

    def _matvec(self, x: DistributedArray) -> DistributedArray:
        return self._apply(x, adjoint=False)

    def _rmatvec(self, x: DistributedArray) -> DistributedArray:
        return self._apply(x, adjoint=True)


def MPIMatrixMult(A: npt.NDArray[Any], M: int, saveAt: bool = False, base_comm: MPI.Comm = MPI.COMM_WORLD,
                  kind: Literal["summa", "block"] = "summa", dtype: npt.DTypeLike = "float64",
                  base_comm_nccl: Any = None) -> MPILinearOperator:
    """The product of an N × K matrix A with matrices of M columns. ``A`` is this rank's block.

    As in PyLops-MPI, the ranks form a square grid. For ``"summa"``, A, X and Y lie in blocks of the grid. For
    ``"block"``, a rank has rows of A, and all rows of its columns of X and Y. ``saveAt`` has no effect, because no
    product forms Aᴴ.
    """
    if kind not in ("summa", "block"):
        raise NotImplementedError("kind must be summa or block")
    if base_comm_nccl is not None:
        raise UsageError("arrays of this module are on the host: leave base_comm_nccl out")
    return _MatrixMult(A, M, kind, base_comm, dtype)


class _Form:
    """The layout of vectors like a given one: cut like their local arrays, or the same on all ranks.

    For a stack, a rank has its parts of all members, one after another. Members that are the same on all ranks are cut.
    """

    def __init__(self, like: Vector) -> None:
        self.like = like
        self.members: list[DistributedArray] = list(_members(like))
        comm = self.members[0].sub_comm if isinstance(like, DistributedArray) else like.base_comm
        if not isinstance(like, DistributedArray) and any(member.mask is not None for member in self.members):
            raise UsageError("members of a stack with masks cannot be solved for together: take arrays without masks")
        self.comm: MPI.Comm = comm
        self.is_copy = isinstance(like, DistributedArray) and like.partition is not Partition.SCATTER
        self.local_shapes = [member.local_shape for member in self.members]
        if self.is_copy:
            self.cut = Cut("uncut", [self._size(0)])
        else:
            self.parts = [self._part(k) for k in range(len(self.members))]
            self.cut = Cut("all", comm.allgather(sum(part.stop - part.start for part in self.parts)))

    def _size(self, k: int) -> int:
        return math.prod(self.local_shapes[k])

    def _part(self, k: int) -> slice:
        """This rank's part of a member: its whole local array, or its share of a copy."""
        size = self._size(k)
        if self.members[k].partition is Partition.SCATTER:
            return slice(0, size)
        return slice(size * self.comm.rank // self.comm.size, size * (self.comm.rank + 1) // self.comm.size)

    def take(self, vector: Vector, column: npt.NDArray[Any]) -> None:
        """column ← the elements of a vector."""
        begin = 0
        for k, member in enumerate(_members(vector)):
            flat = member.local_array.ravel()
            part = flat if self.is_copy else flat[self.parts[k]]
            column[begin : begin + part.size] = part
            begin += part.size

    def give(self, column: npt.NDArray[Any], dtype: npt.DTypeLike) -> Vector:
        """A new vector with these elements."""
        begin, arrays = 0, []
        for k, member in enumerate(self.members):
            if self.is_copy:
                flat = column
            else:
                part = self.parts[k]
                flat = column[begin : begin + part.stop - part.start]
                begin += flat.size
                if member.partition is not Partition.SCATTER:
                    flat = np.concatenate(self.comm.allgather(flat))
            arrays.append(_with_elements(member, flat.astype(dtype), self.local_shapes[k]))
        return _like(self.like, iter(arrays))


def _members(vector: Vector) -> Any:
    if isinstance(vector, DistributedArray):
        yield vector
    else:
        for each in vector.distarrays:
            yield from _members(each)


def _like(vector: Vector, arrays: Any) -> Vector:
    if isinstance(vector, DistributedArray):
        return next(arrays)
    return StackedDistributedArray([_like(each, arrays) for each in vector.distarrays], base_comm=vector.base_comm)


def _with_elements(member: DistributedArray, flat: npt.NDArray[Any], shape: tuple[int, ...]) -> DistributedArray:
    """An array with this layout. Its constructor would send shapes and masks; this function sends nothing."""
    result = copy.copy(member)
    result._local_array = flat.reshape(shape)
    result.dtype = flat.dtype
    return result


class _Problem:
    """An operator of PyLops-MPI and its vectors, as an operator and one-column matrices of GridLOps."""

    def __init__(self, Op: Any, y: Vector, x0: Vector) -> None:
        for member in [*_members(y), *_members(x0)]:
            if member.engine != "numpy":
                raise UsageError(f"arrays of this module are on the host, not of {member.engine}: convert them first")
        self.model, self.data = _Form(x0), _Form(y)
        types = [member.dtype for member in [*_members(y), *_members(x0)]]
        self.dtype = np.result_type(Op.dtype if Op.dtype is not None else np.float64, *types)
        if self.dtype.name not in ("float32", "float64", "complex64", "complex128"):
            self.dtype = np.result_type(self.dtype, np.float64)
        type_name(self.dtype)
        self.grid = Grid(self.model.comm, (1, self.model.comm.size))
        self.domain, self.range = Space(self.grid, self.model.cut), Space(self.grid, self.data.cut)
        self.op = self.operator(Op, self.range, self.domain, self.data, self.model)
        self.B, self.X = zeros(self.range, 1, self.dtype), zeros(self.domain, 1, self.dtype)
        self.data.take(y, self.B.local[:, 0])
        self.model.take(x0, self.X.local[:, 0])

    def operator(self, Op: Any, range: Space, domain: Space, data: _Form, model: _Form) -> operators.Operator:
        def product(function: Callable[[Vector], Vector], source: _Form, target: _Form) -> Callable[[Matrix, Matrix], None]:
            def apply(X: Matrix, Y: Matrix) -> None:
                for column in np.arange(X.local.shape[1]):
                    target.take(function(source.give(X.local[:, column], self.dtype)), Y.local[:, column])

            return apply

        return operators.function_operator(range, domain, product(Op.matvec, model, data), product(Op.rmatvec, data, model), self.dtype)

    def solution(self) -> Vector:
        return self.model.give(self.X.local[:, 0], self.dtype)


class _Watch:
    """Keeps norms, stops where PyLops-MPI stops, and calls the callback."""

    def __init__(self, problem: _Problem, callback: Callable[[Vector], Any] | None) -> None:
        self.problem = problem
        self.callback = callback
        self.residuals: list[float] = []
        self.tested: list[float] = []
        self.x_norms: list[float] = []
        self.iterate = zeros(problem.domain, 1, problem.dtype)
        self.tells = callback is not None

    def start(self, facts: Any) -> None:
        pass

    def end(self, report: Any) -> None:
        pass

    def step(self, iteration: Any) -> bool:
        self.residuals.append(iteration.residual_norms[0])
        self.tested.append(iteration.tested_norms[0])
        self.x_norms.append(iteration.x_norms[0])
        if iteration.iteration > 0 and self.tells:
            iteration.copy_to(self.iterate)
            self.told(self.problem.model.give(self.iterate.local[:, 0], self.problem.dtype))
        return self.is_done()

    def told(self, x: Vector) -> None:
        if self.callback is not None:
            self.callback(x)

    def is_done(self) -> bool:
        return False


class _StopAt(_Watch):
    """Ends once the squared tested norm is at most `tol`. Tested norms are relative to `reference`."""

    def __init__(self, problem: _Problem, callback: Callable[[Vector], Any] | None, tol: float, reference: float) -> None:
        super().__init__(problem, callback)
        self.tol, self.reference = tol, reference

    def is_done(self) -> bool:
        return not (self.tested[-1] * self.reference) ** 2 > self.tol  # NaN ends it, too


def _norm(X: Matrix) -> float:
    return float(X.column_norms()[0])


def cg(Op: Any, y: Vector, x0: Vector, niter: int = 10, tol: float = 1e-4, show: bool = False,
       itershow: tuple[int, int, int] = (10, 10, 10), callback: Callable[[Vector], Any] | None = None) -> tuple[Vector, int, npt.NDArray[np.float64]]:
    """Conjugate gradients for a Hermitian positive definite operator: (x, iterations, residual norms).

    Ends after ``niter`` iterations, or once ‖r‖² ≤ ``tol``. Collective over the communicator of the arrays.
    """
    problem = _Problem(Op, y, x0)
    start = problem.op.apply(problem.X, problem.B.copy(), -1, 1)
    watch = _StopAt(problem, callback, tol, max(_norm(problem.B), _norm(start)))
    _, report = solvers.cg(problem.op, problem.B, problem.X, out=problem.X, max_iterations=niter, tolerance=0,
                           observers=[watch], show=show)
    return problem.solution(), report["iterations"], np.array(watch.residuals)


def cgls(Op: Any, y: Vector, x0: Vector, niter: int = 10, damp: float = 0.0, tol: float = 1e-4, show: bool = False,
         itershow: tuple[int, int, int] = (10, 10, 10), callback: Callable[[Vector], Any] | None = None) -> tuple[Vector, int, int, float, float, npt.NDArray[np.float64]]:
    """Least squares by CGLS: (x, istop, iterations, r1norm, r2norm, residual norms).

    Minimises ‖Op x − y‖² + damp²‖x‖², also from a guess. Ends after ``niter`` iterations, or once the squared norm of
    the gradient, ‖Opᴴr − damp² x‖², is at most ``tol``. r1norm is its value at the end; istop is 1 if r1norm is below
    ``tol``, else 2.
    """
    problem = _Problem(Op, y, x0)
    start = problem.op.apply(problem.X, problem.B.copy(), -1, 1)
    gradients = [problem.op.H @ problem.B, problem.op.H @ start]
    watch = _StopAt(problem, callback, tol, max(_norm(each) for each in gradients))
    _, report = solvers.cgls(problem.op, problem.B, problem.X, out=problem.X, damp=damp, max_iterations=niter, tolerance=0,
                             observers=[watch], show=show)
    r1norm = (watch.tested[-1] * watch.reference) ** 2
    r2norm = math.hypot(watch.residuals[-1], damp * watch.x_norms[-1])
    return problem.solution(), 1 if r1norm < tol else 2, report["iterations"], r1norm, r2norm, np.array(watch.residuals)


class _SparseWatch(_Watch):
    """Computes PyLops-MPI's costs after each step, and ends where its loop ends.

    A cost is ½‖y − A x‖² + eps‖x‖₁ at the new x; for ista, the misfit is that of x before the step. With ``monitorres``
    it ends with an error if a step starts from a larger residual than the step before: that of x, for fista of the
    extrapolated z.
    """

    def __init__(self, problem: _Problem, callback: Callable[[Vector], Any] | None, name: str, niter: int, eps: float, tol: float,
                 monitorres: bool) -> None:
        super().__init__(problem, callback)
        self.before = zeros(problem.domain, 1, problem.dtype)
        self.has_momentum, self.niter, self.eps, self.tol = name == "fista", niter, eps, tol
        self.monitorres = monitorres
        self.costs: list[float] = []
        self.momentum = 1.0
        self.watched: list[float] = []
        self.residual: Matrix | None = None
        self.has_risen = False

    def step(self, iteration: Any) -> bool:
        self.residuals.append(iteration.residual_norms[0])
        self.before, self.iterate = self.iterate, self.before
        iteration.copy_to(self.iterate)
        if self.monitorres:
            self.watched.append(self._residual_of_next_step())
        return False if iteration.iteration == 0 else self.note_step()

    def note_step(self) -> bool:
        """Records a step from ``before`` to ``iterate``. Returns whether PyLops-MPI ends here."""
        residual = self.residuals[-1] if self.has_momentum or len(self.residuals) == 1 else self.residuals[-2]
        self.costs.append(0.5 * residual**2 + self.eps * float(self.iterate.column_norms(1)[0]))
        self.before.local[...] -= self.iterate.local
        if self.tells:
            self.told(self.problem.model.give(self.iterate.local[:, 0], self.problem.dtype))
        if _norm(self.before) <= self.tol or len(self.costs) == self.niter:
            return True
        self.has_risen = len(self.watched) > 1 and self.watched[-1] > self.watched[-2]
        return self.has_risen

    def _residual_of_next_step(self) -> float:
        if not self.has_momentum:
            return self.residuals[-1]
        residual = self.problem.op.apply(self.iterate, self.problem.B.copy(), -1, 1)
        extrapolated = residual.copy()
        if self.residual is not None:
            momentum = (1 + math.sqrt(1 + 4 * self.momentum**2)) / 2
            extrapolated.local[...] += (self.momentum - 1) / momentum * (residual.local - self.residual.local)
            self.momentum = momentum
        self.residual = residual
        return _norm(extrapolated)


def _shrink(name: str, Op: Any, y: Vector, x0: Vector, niter: int, SOp: Any, eps: float, alpha: float | None,
            eigsdict: dict[str, Any] | None, tol: float, rtol: float, rtol1: float, threshkind: str, decay: Sequence[float] | None,
            monitorres: bool, show: bool, callback: Callable[[Vector], Any] | None) -> tuple[Vector, int, npt.NDArray[np.float64]]:
    if threshkind not in ("hard", "soft", "half"):
        raise ValueError(f"threshkind must be hard, soft, half, got {threshkind}")
    if rtol > 0 or rtol1 > 0:
        warnings.warn(f"{name}: rtol and rtol1 end no iteration, as in PyLops-MPI 0.8, whose loop does not ask them; tol and niter do", stacklevel=3)
    problem = _Problem(Op, y, x0)
    if alpha is None:
        from pylops_mpi.optimization.eigs import power_iteration

        normal = Op.H @ Op
        alpha = float(1.0 / np.abs(power_iteration(normal, b_k=x0.empty_like(), dtype=normal.dtype, **(eigsdict or {}))[0]))
        # If rounding made it exceed 1/‖A‖², the cost could rise, and the solver would call the step too long.
        alpha *= 1 - 2e-15
    S = None
    if SOp is not None:
        S = problem.operator(SOp, problem.domain, problem.domain, problem.model, problem.model)
    watch = _SparseWatch(problem, callback, name, niter, eps, tol, monitorres)
    _, report = getattr(solvers, name)(problem.op, problem.B, problem.X, out=problem.X, lambda_=eps / 2, threshold=threshkind, S=S,
                                       step=alpha, max_iterations=niter, tolerance=0,
                                       decay=[] if decay is None else list(decay), observers=[watch], show=show)
    if niter > 0 and not watch.costs:  # the solver made no step, because the first would not move x
        watch.before.local[...] = watch.iterate.local
        watch.note_step()
    diverged = report["reasons"] != [] and report["reasons"][0] in ("breakdown", "non_finite")
    if monitorres and (watch.has_risen or diverged):
        raise ValueError(f"{name.upper()} stopped at iteration {len(watch.costs)} due to residual increasing, consider modifying eps and/or alpha...")
    return problem.solution(), len(watch.costs), np.array(watch.costs[:-1] + [math.inf] if diverged else watch.costs)


def ista(Op: Any, y: Vector, x0: Vector, niter: int = 10, SOp: Any = None, eps: float = 0.1, alpha: float | None = None,
         eigsdict: dict[str, Any] | None = None, tol: float = 1e-10, rtol: float = 0.0, rtol1: float = 0.0, threshkind: str = "soft",
         decay: Sequence[float] | None = None, monitorres: bool = False, show: bool = False,
         itershow: tuple[int, int, int] = (10, 10, 10), callback: Callable[[Vector], Any] | None = None) -> tuple[Vector, int, npt.NDArray[np.float64]]:
    """Sparse models by iterative shrinkage, with the threshold alpha·eps/2: (x, iterations, costs).

    Ends after ``niter`` iterations, or when a step moves x by at most ``tol``. The costs are ½‖y − Op x‖² + eps‖x‖₁
    after each iteration. As in PyLops-MPI, the first term takes the x before the iteration. Raises ValueError if
    ``monitorres`` is set and the residual rises.
    """
    return _shrink("ista", Op, y, x0, niter, SOp, eps, alpha, eigsdict, tol, rtol, rtol1, threshkind, decay, monitorres, show, callback)


def fista(Op: Any, y: Vector, x0: Vector, niter: int = 10, SOp: Any = None, eps: float = 0.1, alpha: float | None = None,
          eigsdict: dict[str, Any] | None = None, tol: float = 1e-10, rtol: float = 0.0, rtol1: float = 0.0, threshkind: str = "soft",
          decay: Sequence[float] | None = None, monitorres: bool = False, show: bool = False,
          itershow: tuple[int, int, int] = (10, 10, 10), callback: Callable[[Vector], Any] | None = None) -> tuple[Vector, int, npt.NDArray[np.float64]]:
    """Like :func:`ista`, with momentum. Both terms of a cost take the x after the iteration."""
    return _shrink("fista", Op, y, x0, niter, SOp, eps, alpha, eigsdict, tol, rtol, rtol1, threshkind, decay, monitorres, show, callback)
