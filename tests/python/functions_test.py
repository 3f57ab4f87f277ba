# SPDX-License-Identifier: BSD-3-Clause
"""Operators and callbacks that are written in Python, and the solvers, against NumPy."""
import contextlib
import io
import threading
import time

import numpy as np
from ranks import COMM, TYPES, block_of, expect_error, grids, integers, whole

import gridlops as gl


def circulant(space, dtype):
    """y = x + 2 · (x shifted by one rank's part), by messages between ranks."""
    def forward(X, Y):
        received = np.empty_like(np.ascontiguousarray(X.local))
        COMM.Sendrecv(np.ascontiguousarray(X.local), (COMM.rank + 1) % COMM.size, recvbuf=received, source=(COMM.rank - 1) % COMM.size)
        Y.local[...] = X.local + 2 * received

    def adjoint(Y, X):
        received = np.empty_like(np.ascontiguousarray(Y.local))
        COMM.Sendrecv(np.ascontiguousarray(Y.local), (COMM.rank - 1) % COMM.size, recvbuf=received, source=(COMM.rank + 1) % COMM.size)
        X.local[...] = Y.local + 2 * received

    return gl.function_operator(space, space, forward, adjoint, dtype)


def test_operators_written_in_python():
    grid = gl.Grid(COMM, (COMM.size, 1))
    space = gl.Space(grid, gl.Cut("all", [3] * COMM.size))
    n = 3 * COMM.size
    dense = np.eye(n) + 2 * np.roll(np.eye(n), 3, axis=0)
    for dtype in TYPES:
        C = circulant(space, dtype)
        assert C.dot_test()[0] and C.shape == (n, n)
        X, x = gl.zeros(space, 2, dtype).fill(integers(dtype, 1)), whole(dtype, 1, n, 2)
        for op, expected in ((C, dense @ x), (C.H, dense.T @ x), (3 * C, 3 * dense @ x), (C @ C, dense @ dense @ x),
                             (C + C.H, (dense + dense.T) @ x), (C - gl.identity(space, dtype=dtype), (dense - np.eye(n)) @ x)):
            assert ((op @ X).local == block_of(X, expected)).all()
        Y = X.copy()
        C.apply(X, Y, alpha=2, beta=-1)
        assert (Y.local == block_of(X, 2 * dense @ x - x)).all()
        found, report = gl.cgls(C, C @ X, max_iterations=200)
        assert report["reasons"] == ["converged"] * 2 or COMM.size % 2 == 0
        assert COMM.size % 2 == 0 or abs(found.local - X.local).max() < 1e-2
    assert C.activity["forward_applications"] > 0


def test_operators_of_one_rank_each():
    grid = gl.Grid(COMM, (COMM.size, 1))
    rng = np.random.default_rng(COMM.rank)
    B = rng.integers(-3, 4, (COMM.rank + 1, 4)) + 1j * rng.integers(-3, 4, (COMM.rank + 1, 4))
    cut, model = gl.Space(grid, gl.Cut("all", range(1, COMM.size + 1))), gl.Space(grid, gl.Cut("uncut", [4]))
    all_of = np.vstack(COMM.allgather(B))
    for op in (gl.local_matrix(cut, model, B),
               gl.local_operator(cut, model, lambda x, y: np.matmul(B, x, out=y), lambda y, x: np.matmul(B.conj().T, y, out=x), complex)):
        X, Y = gl.zeros(model, 3, complex).fill(integers(complex, 1)), gl.zeros(cut, 3, complex).fill(integers(complex, 2))
        assert ((op @ X).local == B @ whole(complex, 1, 4, 3)).all()
        assert ((op.H @ Y).local == all_of.conj().T @ whole(complex, 2, len(all_of), 3)).all()
        assert op.dot_test()[0]
        assert abs(op.estimate_norm() / np.linalg.norm(all_of, 2) - 1) < 0.02


def test_what_python_raises():
    grid = gl.Grid(COMM, (COMM.size, 1))
    space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))

    def failing(X, Y):
        Y.local[...] = X.local
        if COMM.rank == COMM.size - 1:
            raise KeyError("spoilt plate")

    op = gl.function_operator(space, space, failing, failing)
    B = gl.zeros(space, 1).fill(integers("float64", 1))
    # Where all ranks fail, each raises its own; else all raise an error with the text of the first.
    expect_error((gl.Error, KeyError), lambda: op @ B, "spoilt plate")
    expect_error((gl.Error, KeyError), lambda: gl.cgls(op, B), "spoilt plate")
    expect_error((gl.Error, KeyError), op.dot_test, "spoilt plate")

    def bad_callback(iteration):
        if COMM.rank == 0:
            raise ZeroDivisionError("not today")

    good = gl.identity(space)
    expect_error((gl.Error, ZeroDivisionError), lambda: gl.cgls(good, B, callback=bad_callback), "not today")
    X, _ = gl.cgls(good, B)  # ranks still understand each other
    assert np.allclose(X.local, B.local)

    def writes_its_input(X, Y):
        X.local[...] = 0

    expect_error((gl.Error, ValueError), gl.function_operator(space, space, writes_its_input, writes_its_input).dot_test, "read-only")


def test_diagonals_of_arrays():
    """On one rank a diagonal is an array: a vector, or one with the sizes of the space, of any element type."""
    if COMM.size > 1:  # tests/python/refusals_test.py has these
        return
    grid = gl.Grid()
    A = gl.matrix_mult(np.arange(15.0).reshape(5, 3))
    d = np.array([1.0, -2.0, 0.5])
    assert (gl.diagonal(A.domain, d) @ np.array([[1.0, 2.0]] * 3) == d[:, None] * [1.0, 2.0]).all()
    space = gl.Space.array(grid, (2, 3), cut=1)
    weights = np.arange(6.0, dtype="complex64").reshape(2, 3) * 1j
    assert (gl.diagonal(space, weights).H @ np.ones((2, 3), "complex64") == weights.conj()).all()
    expect_error(gl.ShapeError, lambda: gl.diagonal(A.domain, np.ones(4)), "(4,)")
    expect_error(gl.UsageError, lambda: gl.diagonal(A.domain, np.ones(3, int)), "astype")


def test_dampings_of_columns():
    """Inversions take a damping for each column, and agree with NumPy's solutions."""
    grid, damps = gl.Grid(COMM), [0.0, 0.5, 3.0]
    whole = np.cos(np.arange(12)[:, None] * np.arange(5.0)) + 2 * np.eye(12, 5)
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(12, 5)).scatter(whole))
    B = gl.zeros(A.range, 3).fill(lambda i, j: np.sin(i + 2.0 * j))
    b = COMM.bcast(B.gather(0))
    R, how = gl.identity(A.domain), {"damp": damps, "tolerance": 1e-12, "max_iterations": 200}
    ways = {"regularized": (lambda: gl.regularized_inversion(A, B, regularizers=[(R, 0.7)], **how), 0.49),
            "preconditioned": (lambda: gl.preconditioned_inversion(A, R, B, **how), 0.0)}
    for name, (solve, more) in ways.items():
        X, _ = solve()
        x = COMM.bcast(X.gather(0))
        for j, damp in enumerate(damps):
            wanted = np.linalg.solve(whole.T @ whole + (damp**2 + more) * np.eye(5), whole.T @ b[:, j])
            assert np.allclose(x[:, j], wanted, atol=1e-9), (name, damp)


def test_callbacks():
    grid = gl.Grid(COMM, (COMM.size, 1))
    space = gl.Space(grid, gl.Cut("all", [5] * COMM.size))
    D = gl.diagonal(space, gl.zeros(space, 1).fill(lambda i, j: 1.0 + i))
    B = gl.zeros(space, 3).fill(lambda i, j: np.cos(i + j))
    seen, kept = [], []
    iterate = gl.zeros(space, 3)

    def callback(iteration):
        iteration.copy_to(iterate)
        kept.append(iteration)
        residual = B.local - (1.0 + np.arange(iterate.rows.start, iterate.rows.stop))[:, None] * iterate.local
        norms = np.sqrt(COMM.allreduce((residual**2).sum(axis=0)))  # callbacks may communicate
        assert np.allclose(norms, iteration.residual_norms, rtol=1e-9)
        seen.append(iteration.iteration)
        return COMM.rank == COMM.size - 1 and iteration.iteration == 3  # one rank is enough

    X, report = gl.cgls(D, B, tolerance=0, callback=callback)
    assert seen == [0, 1, 2, 3] and report["reasons"] == ["user_stop"] * 3, (seen, report["reasons"])
    assert (X.local == iterate.local).all()
    expect_error(gl.UsageError, lambda: kept[0].iteration, "while the callback")

    class Watcher:
        told = []

        def start(self, facts):
            self.told.append((facts["solver"], facts["nrhs"]))

        def step(self, iteration):
            self.told.append(iteration.active_columns)

        def end(self, report):
            self.told.append(report["reasons"])

    tests = []
    for solver in (gl.lsqr, gl.cgls):
        solver(D, B, tolerance=1e-6, callback=lambda now: tests.append((now.active_columns, now.residual_tests, now.gradient_tests)))
    of_lsqr = [sum(min(pair) > 1e-6 for pair in zip(*both)) == active for active, *both in tests if both[0]]
    assert of_lsqr and all(of_lsqr) and tests[-1][1:] == ([], []), tests

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        gl.cgls(D, B, max_iterations=2, observers=[Watcher(), gl.stop_at_cost_ratio(0.0)], show=True)
    assert Watcher.told == [("cgls", 3), 3, 3, 0, ["iteration_limit"] * 3], Watcher.told
    assert ("Itn" in text.getvalue()) == (COMM.rank == 0)


def test_other_threads_run_meanwhile():
    grid = gl.Grid(COMM, (COMM.size, 1))
    space = gl.Space(grid, gl.Cut("all", [1] * COMM.size))
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.002):
            ticks.append(1)

    # A rank waits in the library until the last one comes: the other thread must not.
    op = gl.identity(gl.Space(grid, gl.Cut("uncut", [COMM.size])), space)
    thread = threading.Thread(target=tick)
    thread.start()
    if COMM.rank == COMM.size - 1:
        time.sleep(0.1)
    op @ gl.zeros(space, 1)
    done.set()
    thread.join()
    assert COMM.rank == COMM.size - 1 or len(ticks) > 2 or COMM.size == 1


def test_all_solvers():
    rng = np.random.default_rng(3)
    m, n, k = 17, 6, 3
    for dtype in TYPES:
        eps = np.finfo(dtype).eps
        A = (np.eye(m, n) * 4 + rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
        B = rng.standard_normal((m, k)).astype(dtype)
        grid = grids()[0]
        op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), dtype).scatter(A))
        data = gl.zeros(op.range, k, dtype).scatter(B)
        expected = np.linalg.solve(A.conj().T @ A + 0.09 * np.eye(n), A.conj().T @ B)
        close = lambda X: np.allclose(X.local, block_of(X, expected), atol=eps**0.5 * 4)  # noqa: E731
        for solver in (gl.cgls, gl.lsqr, gl.lsmr, gl.block_cgls, gl.direct):
            X, report = solver(op, data, damp=0.3, tolerance=eps**0.75)
            assert close(X), solver
            assert report["solver"] == solver.__name__.replace("_", "-")
        normal, right = op.H @ op, op.H @ data
        inverse = np.linalg.inv(A.conj().T @ A + 0.09 * np.eye(n)).astype(dtype)
        whole_model = gl.Space(grid, gl.Cut("uncut", [n]))
        spread = gl.identity(op.domain, whole_model, dtype)
        M = spread @ gl.local_matrix(whole_model, whole_model, inverse) @ spread.H
        for preconditioner in (None, M):
            X, report = gl.cg(normal, right, M=preconditioner, damp=0.3, tolerance=eps**0.75)
            assert close(X) and report["solver"] == ("cg" if preconditioner is None else "pcg")
        assert report["iterations"] <= 3
        variances = X.zeros_like()
        gl.lsqr(op, data, damp=0.3, variances=variances, tolerance=eps**0.75)
        limit = np.diag(np.linalg.inv(A.conj().T @ A + 0.09 * np.eye(n))).real
        assert (variances.local.real <= limit[X.rows, None] * 1.01).all() and (variances.local.real > 0).all()
        weights = np.where(rng.uniform(size=B.shape) < 0.3, 0, rng.uniform(0.5, 2, B.shape)).astype(B.real.dtype)
        W = gl.zeros(op.range, k, dtype).scatter(np.where(weights == 0, 3, weights).astype(dtype))
        with_holes = gl.zeros(op.range, k, dtype).scatter(np.where(weights == 0, np.nan, B))
        assert gl.mark_holes(with_holes, W) == np.count_nonzero(weights == 0)
        of_columns = np.stack([np.linalg.solve((A.conj().T * w**2) @ A + 0.09 * np.eye(n), A.conj().T @ (w**2 * b))
                               for w, b in zip(weights.T, B.T)], axis=1)
        for solver in ("cgls", "lsqr", "lsmr"):
            X, report = gl.solve(solver, op, with_holes, weights=W, damp=0.3, tolerance=eps**0.75)
            assert np.allclose(X.local, block_of(X, of_columns), atol=eps**0.5 * 4), solver
        assert report["weighted"] and not gl.cgls(op, data)[1]["weighted"]
        norm = float(np.linalg.norm(A))
        assert (gl.error_bounds(report, with_holes, X, norm, damp=0.3, weights=W) < 1).all()
        if grid.is_member:
            expect_error(gl.UsageError, lambda report=report, X=X, norm=norm: gl.error_bounds(report, data, X, norm, damp=0.3), "with weights, and none are given")
        check_misfits(op, data, A, B, W, weights, eps)
        R = gl.identity(op.domain, dtype=dtype)
        for X in (gl.regularized_inversion(op, data, regularizers=[(R, 0.3)], tolerance=eps**0.75)[0],
                  gl.normal_equations_inversion(op, data, regularizers=[(R, 0.3, gl.zeros(op.domain, k, dtype))], tolerance=eps**0.75)[0],
                  gl.preconditioned_inversion(op, 2 * R, data, damp=0.6, tolerance=eps**0.75)[0]):
            assert close(X)


def check_misfits(op, data, A, B, W, weights, eps):
    """Misfits by name and by a function of Python have the gradient 0 with the weights that come back."""
    def cauchy(t):
        return 1 / (1 + (t / 2.385) ** 2)

    final = gl.zeros(op.range, B.shape[1], op.dtype)
    with_holes = gl.zeros(op.range, B.shape[1], op.dtype).scatter(np.where(weights == 0, np.nan, B))
    for misfit in ("cauchy", cauchy):
        W.scatter(weights.astype(op.dtype))
        X, report = gl.cgls(op, with_holes, weights=W, misfit=misfit, misfit_scale=0.5, misfit_weights=final, damp=0.3, tolerance=eps**0.6, max_iterations=500)
        assert set(report["reasons"]) <= {"converged", "stagnated"} and (report["misfit_scales"] == np.array(0.5)).all(), report
        x = COMM.bcast(X.gather(0))
        residuals = np.where(weights == 0, 0, weights * (B - A @ x))
        expected = weights * np.sqrt(cauchy(abs(residuals) / 0.5))
        assert np.allclose(final.local, block_of(final, expected), atol=eps**0.5 * 4)
        gradient = A.conj().T @ (weights * cauchy(abs(residuals) / 0.5) * residuals) - 0.09 * x
        assert np.linalg.norm(gradient) <= 10 * eps**0.6 * np.linalg.norm(A.conj().T @ (expected**2 * B)), misfit
    expect_error(gl.UsageError, lambda: gl.cgls(op, data, misfit="l3"), "take one of l2, huber, l1, cauchy, tukey")
    expect_error(gl.UsageError, lambda: gl.cgls(op, data, misfit_scale=1.0), "need a misfit")
    if op.grid.is_member:
        expect_error(gl.UsageError, lambda: gl.solve("lsqr", op, data, misfit="huber"), "does not take a misfit; take cgls")
        expect_error(gl.ShapeError, lambda: gl.cgls(op, data, misfit=lambda t: t[:-1]), "must return a weight for each of")
