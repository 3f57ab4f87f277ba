# SPDX-License-Identifier: BSD-3-Clause
"""Operators and callbacks that are written in Python, the other solvers, and operators on arrays, against NumPy."""
import contextlib
import io
import threading
import time

import numpy as np
from ranks import COMM, TYPES, block_of, expect_error, grids, integers, on_root, whole

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


def soft(z, t):
    return np.maximum(abs(z) - t, 0) * np.exp(1j * np.angle(z))


def test_sparse_solvers():
    rng = np.random.default_rng(5)
    m, n = 30, 12
    A, B = np.eye(m, n) * 5 + rng.standard_normal((m, n)), rng.standard_normal((m, 2)) * 5
    grid = grids()[-1]
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n)).scatter(A))
    data = gl.zeros(op.range, 2).scatter(B)
    x = np.zeros((n, 2))
    step = 1 / np.linalg.norm(A, 2) ** 2
    for _ in range(3000):
        x = soft(x + step * A.T @ (B - A @ x), step * 3).real
    same = gl.identity(op.domain)
    found = [gl.ista(op, data, lambda_=3, max_iterations=3000, tolerance=1e-12)[0],
             gl.fista(op, data, lambda_=3, max_iterations=3000, tolerance=1e-12)[0],
             gl.fista(op, data, lambda_=3, S=same, step=step, max_iterations=3000, tolerance=1e-12)[0],
             gl.proximal_gradient(op, gl.threshold_penalty("soft"), data, lambda_=3, max_iterations=3000, tolerance=1e-12)[0],
             gl.admm(op, same, gl.threshold_penalty("soft", 3), data, tau=0.02, max_iterations=3000, tolerance=1e-9)[0]]
    for X in found if grid.is_member else ():
        assert np.allclose(X.local, block_of(X, x), atol=1e-6), abs(X.local - block_of(X, x)).max()
    X, report = gl.ista(op, data, lambda_=3, step=1e5, max_iterations=9)
    assert not grid.is_member or report["reasons"] == ["breakdown"] * 2
    boxed, _ = gl.proximal_gradient(op, gl.box(-0.1, 0.1), data, max_iterations=2000)
    assert not boxed.local.size or abs(boxed.local).max() <= 0.1
    expect_error(gl.UsageError, lambda: gl.ista(op, data, lambda_=1, threshold="firm"), "firm", "soft")
    expect_error(gl.UsageError, lambda: gl.lsqr(op, data, one_pass=True), "one-pass is an option of cgls", "lsqr")
    expect_error(gl.UsageError, lambda: gl.cgls(op, data, condition_limit=1e8), "conlim is an option of lsqr, lsmr", "cgls")


def test_total_variation_against_bounded_least_squares():
    """The dual of ½‖A x − b‖² + σ‖L x‖₁ is least squares within |y| ≤ σ, which SciPy solves by active sets."""
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(8)
    m, n, tolerance = 30, 18, 1e-7
    A = np.eye(m, n) * 3 + rng.standard_normal((m, n))
    b = A @ np.repeat([1.0, -2.0, 0.5], n // 3) + 0.3 * rng.standard_normal(m)
    grid = gl.Grid()
    space = gl.Space.array(grid, (n,), 0)
    L = gl.first_derivative(space, 0, kind="forward")
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n)).scatter(A))
    op = op @ gl.identity(op.domain, space)
    differences = np.diff(np.eye(n), axis=0)
    R = np.linalg.cholesky(A.T @ A)
    for sigma in (1e-3, 0.5, 20.0, 1e4):
        dual = lsq_linear(np.linalg.solve(R, differences.T), np.linalg.solve(R, A.T @ b), (-sigma, sigma), method="bvls", tol=1e-15)
        x = np.linalg.solve(R.T, np.linalg.solve(R, A.T @ b - differences.T @ dual.x))
        objective = lambda x: 0.5 * np.linalg.norm(A @ x - b) ** 2 + sigma * abs(np.diff(x)).sum()  # noqa: E731,B023
        verdicts = []
        for tau in (1e-5, 1e-1, 1.0, 10.0, 1e4):
            found, report = gl.admm(op, L, gl.threshold_penalty("soft", sigma), gl.zeros(op.range, 1).scatter(b[:, None]), tau=tau,
                                    tolerance=tolerance, max_iterations=400 if 1e-1 <= tau <= 10 else 30)
            found = COMM.bcast(found.gather(), 0)[:, 0]
            converged = report["reasons"] == ["converged"]
            assert not converged or objective(found) <= objective(x) * (1 + 100 * tolerance), (sigma, tau, objective(found), objective(x))
            verdicts += report["reasons"]
        assert "converged" in verdicts, (sigma, verdicts)
        if sigma not in (0.5, 20.0):
            continue
        # The same by the primal-dual method, for K = [A; L]. K x − b is known to T(‖K‖‖x‖ + ‖b‖), and the objective has
        # a slope of up to σ√n there, and ‖b‖.
        K = gl.vertical_stack([op, L])
        f = gl.separable_sum([op.range, L.range], [gl.quadratic(1), gl.threshold_penalty("soft", sigma)])
        stacked = gl.vertical_stack([gl.identity(op.range), gl.zero(L.range, op.range)]) @ gl.zeros(op.range, 1).scatter(b[:, None])
        norm = np.linalg.norm(np.vstack([A, differences]), 2)
        slack = 3 * tolerance * (norm * np.linalg.norm(x) + np.linalg.norm(b)) * (sigma * np.sqrt(n) + np.linalg.norm(b))
        verdicts = []
        for ratio in (1e-5, 0.03, 1e4):
            found, report = gl.primal_dual(K, f, gl.quadratic(0), stacked, tau=ratio / norm, tolerance=tolerance,
                                           max_iterations=1000 if ratio == 0.03 else 30)
            found = COMM.bcast(found.gather(), 0)[:, 0]
            converged = report["reasons"] == ["converged"]
            assert not converged or objective(found) <= objective(x) + slack, (sigma, ratio, objective(found), objective(x))
            verdicts += report["reasons"]
        assert "converged" in verdicts, (sigma, verdicts)


def test_proximal_operators():
    rng = np.random.default_rng(3)
    shape, tau, sigma = (5, 4), np.array([0.3, 1.7]), 0.6
    for dtype in (np.float64, np.complex64):
        x = rng.standard_normal((*shape, 2)) + (1j * rng.standard_normal((*shape, 2)) if dtype == np.complex64 else 0)
        x = x.astype(dtype)
        eps = 30 * np.finfo(dtype).eps
        for cut in (0, 1):
            space = gl.Space.array(gl.Grid(COMM, (COMM.size, 1)), shape, cut)
            for dim in (0, 1):
                f = gl.l21_norm_along(space, dim, sigma, dtype)
                norms = np.linalg.norm(x.astype(complex), axis=dim, keepdims=True)
                scatter = lambda: space.scatter_array(x if COMM.rank == 0 else None)  # noqa: E731,B023
                assert np.allclose(f.value(scatter()), sigma * norms.sum(axis=(0, 1)), rtol=eps, atol=0)
                for map_of, expected in ((f.prox, x * np.maximum(1 - sigma * tau / norms, 0)), (f.prox_of_conjugate, x * np.minimum(1, sigma / norms))):
                    found = space.gather_array(map_of(scatter(), tau))
                    assert found is None or np.allclose(found, expected, rtol=eps, atol=eps), (dtype, cut, dim)
            # A stack of two: its norms, and both parts by maps of their own.
            pair = [space, space]
            I = gl.identity(space, dtype=dtype)  # noqa: E741
            upper, lower = gl.vertical_stack([I, 0 * I]), gl.vertical_stack([0 * I, I])
            X = (upper + 2 * lower) @ scatter()
            norms = np.sqrt(5) * abs(x)
            f = gl.l21_norm(pair, sigma, dtype)
            assert np.allclose(f.value(X), sigma * norms.sum(axis=(0, 1)), rtol=eps, atol=0)
            found = space.gather_array(lower.H @ f.prox(X.copy(), tau))
            assert found is None or np.allclose(found, 2 * x * np.maximum(1 - sigma * tau / norms, 0), rtol=eps, atol=eps)
            a = space.scatter_array(x[..., :1] if COMM.rank == 0 else None)
            g = gl.separable_sum(pair, [gl.postcompose(gl.box(-9, 9, dtype), 1, 0.5, a), gl.precompose(gl.threshold_penalty("soft", sigma, dtype), -2, a)])
            value = (0.25 * abs(x) ** 2 + (x[..., :1].conj() * x).real + sigma * abs(x[..., :1] - 4 * x)).sum(axis=(0, 1))
            assert np.allclose(g.value(X), value, rtol=eps, atol=0)
            g.prox(X, tau)
            found = [space.gather_array(part.H @ X) for part in (upper, lower)]
            shifted = x[..., :1] - 4 * x
            shrunk = shifted * np.maximum(1 - 4 * sigma * tau / abs(shifted), 0)
            if COMM.rank == 0:
                assert np.allclose(found[0], (x - tau * x[..., :1]) / (1 + tau / 2), rtol=eps, atol=eps)
                assert np.allclose(found[1], (shrunk - x[..., :1]) / -2, rtol=eps, atol=eps)
    space = gl.Space.array(gl.Grid(COMM, (COMM.size, 1)), shape, 1)
    F = gl.fourier(space, (0,))
    f = gl.precompose(gl.threshold_penalty("soft", sigma, complex), F)
    spectrum = np.fft.fft(x, axis=0, norm="ortho")
    X = space.scatter_array(x.astype(complex) if COMM.rank == 0 else None)
    assert np.allclose(f.value(X), sigma * abs(spectrum).sum(axis=(0, 1)))
    found = space.gather_array(f.prox(X, tau))
    assert found is None or np.allclose(found, np.fft.ifft(soft(spectrum, sigma * tau), axis=0, norm="ortho"), atol=1e-6)
    expect_error(gl.ShapeError, lambda: gl.l21_norm([space, space]).prox(gl.zeros(space, 1)), "L2,1 norm")
    expect_error(gl.UsageError, lambda: gl.precompose(f, F, X), "compose twice")
    expect_error(gl.UsageError, lambda: f.prox(gl.zeros(space, 1)), "complex128", "float64")


def test_isotropic_total_variation_against_its_dual():
    """The dual of ½‖x − b‖² + σ Σ|∇x| is a projection of b onto the gradients' image of discs, which FISTA finds in NumPy."""
    rng = np.random.default_rng(6)
    shape, sigma = (7, 5), 0.4
    b = np.where(np.arange(7)[:, None] < 3, 1.0, -2.0) + 0.3 * rng.standard_normal(shape)

    def gradient(x):
        return np.stack([np.vstack([np.diff(x, axis=0), np.zeros((1, 5))]), np.hstack([np.diff(x, axis=1), np.zeros((7, 1))])])

    def adjoint(q):
        zeros = np.zeros((1, 5)), np.zeros((7, 1))
        return -np.diff(np.vstack([zeros[0], q[0][:-1], zeros[0]]), axis=0) - np.diff(np.hstack([zeros[1], q[1][:, :-1], zeros[1]]), axis=1)

    q = z = np.zeros((2, *shape))
    t = 1.0
    for _ in range(20000):
        q_next = z + gradient(b - adjoint(z)) / 8
        q_next *= sigma / np.maximum(sigma, np.linalg.norm(q_next, axis=0))
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        z = q_next + (t - 1) / t_next * (q_next - q)
        q, t = q_next, t_next
    x = b - adjoint(q)
    for cut in (0, 1):
        space = gl.Space.array(gl.Grid(COMM, (COMM.size, 1)), shape, cut)
        L = gl.gradient(space, kind="forward")
        I = gl.identity(space)  # noqa: E741
        f = gl.separable_sum([space, L.range], [gl.quadratic(1), gl.l21_norm([space] * 2, sigma)])
        data = space.scatter_array(b if COMM.rank == 0 else None)
        stacked = gl.vertical_stack([I, gl.zero(L.range, space)]) @ data
        dual = gl.zeros(L.range, 1)
        X, report = gl.primal_dual(gl.vertical_stack([I, L]), f, gl.quadratic(0), stacked, tolerance=1e-10, max_iterations=5000)
        assert report["reasons"] == ["converged"], report
        found = space.gather_array(X)
        assert found is None or abs(found - x).max() < 1e-7, abs(found - x).max()
        # The same with the data in g, as a linear term, and only the gradient in K.
        g = gl.quadratic(1, -1 * I @ data)
        X, report = gl.primal_dual(L, gl.l21_norm([space] * 2, sigma), g, gl.zeros(L.range, 1), dual=dual, tolerance=1e-10, max_iterations=5000)
        assert report["reasons"] == ["converged"], report
        found = space.gather_array(X)
        assert found is None or abs(found - x).max() < 1e-7, abs(found - x).max()
        found = space.gather_array(L.H @ dual)
        assert found is None or abs(found - (b - x)).max() < 1e-7


def test_the_primal_dual_method_with_theta_and_y0():
    """Its iterates, by the conjugate of f itself, which a projection is, and complex numbers; and what it goes on from."""
    m, n, nrhs, steps, sigma, tau, mu = 11, 7, 3, 9, 0.6, 0.2, 0.15
    rng = np.random.default_rng(8)
    A, B, X0, Y0 = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape) for shape in ((m, n), (m, nrhs), (n, nrhs), (m, nrhs)))
    A /= np.linalg.norm(A, 2) * np.sqrt(tau * mu)

    def iterate(theta, y):
        x = ahead = X0
        for _ in range(steps):
            y = y + mu * (A @ ahead - B)
            y = y / np.maximum(1, abs(y) / sigma)
            v = x - tau * A.conj().T @ y
            x, last = np.clip(v.real, -0.4, 0.4) + 1j * np.clip(v.imag, -0.4, 0.4), x
            ahead = x + theta * (x - last)
        return x, y

    f, g = gl.threshold_penalty("soft", sigma, complex), gl.box(-0.4, 0.4, complex)
    for grid in grids():
        op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), complex).scatter(A))
        b, x0, y0 = (gl.zeros(space, nrhs, complex).scatter(array) for space, array in ((op.range, B), (op.domain, X0), (op.range, Y0)))
        dual = gl.zeros(op.range, nrhs, complex)
        for theta in (0, 0.5, 1):
            for begun, guess in ((0 * Y0, None), (Y0, y0), (Y0, dual)):
                dual.scatter(Y0)  # which counts for nothing where it is no guess
                X, report = gl.primal_dual(op, f, g, b, x0, y0=guess, theta=theta, tau=tau, sigma=mu, dual=dual, tolerance=0, max_iterations=steps)
                for found, expected in zip((X.gather(), dual.gather()), iterate(theta, begun)):
                    assert found is None or abs(found - expected).max() < 1e-12, (theta, abs(found - expected).max())
            assert (y0.local == block_of(y0, Y0)).all()
            X, report = gl.primal_dual(op, f, g, b, dual=dual, theta=theta or 1, tau=tau, sigma=mu, tolerance=1e-6, max_iterations=20000)
            assert not grid.is_member or report["reasons"] == ["converged"] * nrhs
            X, report = gl.primal_dual(op, f, g, b, X, y0=dual, theta=theta, tau=tau, sigma=mu, tolerance=1e-6)
            assert not grid.is_member or (report["reasons"] == ["converged"] * nrhs and report["iterations"] == 0)
        for theta in (-0.1, 1.5, np.nan):
            expect_error(gl.UsageError, lambda: gl.primal_dual(op, f, g, b, theta=theta), "theta", str(theta))  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.primal_dual(op, f, g, b, y0=x0), f"{n} x {nrhs}")  # noqa: B023
    if COMM.size == 1:
        X, _ = gl.primal_dual(op, f, g, B, X0, y0=Y0, theta=0.5, tau=tau, sigma=mu, tolerance=0, max_iterations=steps)
        assert abs(X - iterate(0.5, Y0)[0]).max() < 1e-12


def test_real_transforms_of_lines_of_every_size():
    sizes = np.array([1e4, 1, np.nan, 1e-4, 1, 1e8])[:, None]
    for n in (1, 2, 7, 8, 45, 64, 500, 1001, 1024):
        x = (sizes * np.random.default_rng(n).standard_normal((6, n))).astype(np.float32)
        exact = np.fft.rfft(x.astype(float), axis=1, norm="ortho")
        exact[:, 1 : (n + 1) // 2] *= np.sqrt(2)
        space = gl.Space.array(gl.Grid(COMM, (COMM.size, 1)), (6, n), 0)
        mine = space.local_box[0]
        F = gl.real_fourier(space, 1, dtype=np.float32)
        Y = F @ gl.from_local(space, np.ascontiguousarray(x[mine]).ravel())
        found = Y.local[:, 0].reshape(-1, n // 2 + 1, 2).astype(float) @ [1, 1j]
        clean = ~np.isnan(sizes[mine, 0])
        assert np.isnan(found[~clean]).any(axis=1).all()
        error = abs(found - exact[mine]).max(axis=1, initial=0)[clean]
        assert (error <= 2e-6 * np.linalg.norm(x[mine][clean].astype(float), axis=1)).all(), (n, error)
        back = (F.H @ Y).local[:, 0].reshape(-1, n)[clean]
        assert (abs(back - x[mine][clean]).max(axis=1, initial=0) <= 4e-6 * np.linalg.norm(x[mine][clean].astype(float), axis=1)).all(), n


def test_arrays():
    grid = gl.Grid(COMM, (COMM.size, 1))
    shape = (4, 5)
    x = whole("float64", 1, 4, 5)
    for cut in (0, 1):
        space = gl.Space.array(grid, shape, cut)
        box = space.local_box
        X = gl.from_local(space, np.ascontiguousarray(x[box]).ravel())
        local = lambda Y: Y.local[:, 0].reshape(x[box].shape)  # noqa: B023,E731
        expected = np.zeros(shape)
        expected[1:-1] = (x[2:] - x[:-2]) / 2
        assert (local(gl.first_derivative(space, 0) @ X) == expected[box]).all()
        expected = np.zeros(shape)
        expected[:, 1:-1] = (x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]) / 0.25
        assert (local(gl.second_derivative(space, 1, sampling=0.5) @ X) == expected[box]).all()
        expected += np.vstack([np.zeros(5), x[2:] - 2 * x[1:-1] + x[:-2], np.zeros(5)])
        assert (local(gl.laplacian(space, (0, 1), sampling=(1, 0.5)) @ X) == expected[box]).all()
        smooth = np.apply_along_axis(np.convolve, 1, x, [1, 2, 1], "same")
        assert (local(gl.convolution(space, 1, [1, 2, 1], 1) @ X) == smooth[box]).all()
        smooth = np.apply_along_axis(np.convolve, 1 - cut, x, [1, 2, 1], "same")
        assert np.allclose(local(gl.convolution(space, 1 - cut, [1, 2, 1], 1, by_fourier=True) @ X), smooth[box])
        filters = np.arange(2 * shape[cut]).reshape(shape[cut], 2)  # a filter for each line
        own = np.stack([np.convolve(line, f)[:len(line)] for line, f in zip(np.moveaxis(x, 1 - cut, 1), filters)])
        assert np.allclose(local(gl.convolution(space, 1 - cut, filters, 0) @ X), np.moveaxis(own, 1, 1 - cut)[box])
        smooth = np.apply_along_axis(np.convolve, cut, x, [1, 2, 1], "same")
        assert np.allclose(local(gl.convolution(space, cut, np.array([[1, 2, 1]]), 1) @ X), smooth[box])  # along the cut
        expect_error(gl.ShapeError, lambda: gl.convolution(space, cut, np.ones((3, 2)), 1), "3, 2")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.convolution(space, cut, np.ones((1, 2)), 2), "2")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.convolution(space, cut, np.ones((1, 2)), 1, by_fourier=True), "single")  # noqa: B023
        kept = gl.restriction(space, 0, [1, 3])
        assert (space.gather_array(kept.H @ (kept @ X)) is None) == (COMM.rank > 0)
        total = COMM.allreduce(float((kept @ X).local.sum()))
        assert total == x[[1, 3]].sum()
        operators = [gl.gradient(space), gl.box_smoothing(space, 0, 3), gl.halo(space, (1, 1), (1, 0)), kept,
                     gl.crop(space, (1, 1), (1, 0)) @ gl.halo(space, (1, 1), (1, 0))]
        assert ((operators[-1] @ X).local == X.local).all()
        spectrum = gl.fourier(space, 1 - cut)
        Z = gl.from_local(space, np.ascontiguousarray(x[box]).ravel().astype(complex))
        assert np.allclose(local(spectrum @ Z), np.fft.fft(x, axis=1 - cut, norm="ortho")[box])
        operators += [spectrum, gl.on_pairs(spectrum), gl.real_fourier(space, 1 - cut)]
        for op in operators:
            assert op.dot_test()[0], op
    for cut in (0, 1, 2):
        space = gl.Space.array(grid, (4, 5, 6), cut)
        x = whole("float64", 2, 20, 6).reshape(4, 5, 6)
        on_root = lambda array: array if COMM.rank == 0 else None  # noqa: E731
        for norm, theirs in {"none": "backward", "1/n": "forward", "ortho": "ortho"}.items():
            for dims, lengths in {(0, 1, 2): 0, (2, 0): (7, 4), (1,): 8}.items():
                F = gl.fourier(space, dims, lengths=lengths, norm=norm)
                found = F.range.gather_array(F @ space.scatter_array(on_root(x.astype(complex))))
                shape = lengths or None
                expected = np.fft.fftn(x, (shape,) if isinstance(shape, int) else shape, dims, norm=theirs)
                assert found is None or np.allclose(found, expected), (cut, norm, dims)
                G = gl.real_fourier(space, dims, lengths=lengths, norm=norm)
                found = G.range.gather_array(G @ space.scatter_array(on_root(x)))
                expected = np.fft.rfftn(x, (shape,) if isinstance(shape, int) else shape, dims, norm=theirs)
                n = shape if isinstance(shape, int) else shape[-1] if shape else x.shape[dims[-1]]
                twice = np.moveaxis(expected, dims[-1], -1)
                twice[..., 1:(n + 1) // 2] *= np.sqrt(2)
                assert found is None or np.allclose(found @ [1, 1j], expected), (cut, norm, dims)
                assert F.dot_test()[0] and G.dot_test()[0]
        centred = gl.fourier(space, (0, 2), time_zero=(2, 3), frequency_zero=(2, 3))
        found = centred.range.gather_array(centred @ space.scatter_array(on_root(x.astype(complex))))
        expected = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(x, (0, 2)), axes=(0, 2), norm="ortho"), (0, 2))
        assert found is None or np.allclose(found, expected)
    expect_error(gl.UsageError, lambda: gl.real_fourier(space, (0, 1), 2), "keep 2 frequencies")
    expect_error(gl.UsageError, lambda: gl.fourier(space, (0, 1), lengths=(3, 5)), "which has 4")
    space = gl.Space.array(grid, (4, 5), 1)
    expect_error(gl.ShapeError, lambda: gl.first_derivative(space, 2), "2")
    expect_error(gl.UsageError, lambda: gl.first_derivative(space, 0, kind="upward"), "upward")


def test_samples_and_matrices_along_a_dimension():
    """Against NumPy's own functions, and the loop over samples that PyLops' users know."""
    grid = gl.Grid(COMM, (COMM.size, 1))
    rng = np.random.default_rng(11)
    shape = (7, 5, 6)
    filters, places = rng.standard_normal((3, 5)), (1, 3, 5)
    for dtype in TYPES:
        tolerance = 100 * np.finfo(dtype).eps
        x = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
        for cut in range(3):
            space = gl.Space.array(grid, shape, cut)
            X = space.scatter_array(x if COMM.rank == 0 else None)
            for dim, n in enumerate(shape):
                positions = np.unique(np.append(rng.uniform(0, n - 1, 4), [0, n - 1]))
                lines = np.moveaxis(x, dim, -1).reshape(-1, n)
                linear = np.array([np.interp(positions, np.arange(n), line.real) + (1j * np.interp(positions, np.arange(n), line.imag)
                                   if np.iscomplexobj(x) else 0) for line in lines])
                A = rng.standard_normal((4, n)).astype(dtype)
                spread = np.zeros((n, n + 4))
                for j in range(n):
                    spread[j, j:j + 5] = [np.interp(j, places, tap) for tap in filters.T]
                spread = spread[:, 2:-2].T
                for op, matrix in ((gl.restriction(space, dim, [1, 2, 4], dtype=dtype), np.eye(n)[[1, 2, 4]]),
                                   (gl.interpolation(space, dim, positions, dtype=dtype), None),
                                   (gl.interpolation(space, dim, positions, kind="sinc", dtype=dtype), np.sinc(positions[:, None] - np.arange(n))),
                                   (gl.matrix_along(space, dim, A), A),
                                   (gl.nonstationary_convolution(space, dim, filters, places, 2, dtype=dtype), spread)):
                    assert op.dtype == dtype and op.dot_test()[0]
                    found = op.range.gather_array(op @ X)
                    expected = linear if matrix is None else lines @ matrix.T
                    if found is not None:
                        assert np.allclose(np.moveaxis(found, dim, -1).reshape(expected.shape), expected, atol=tolerance, rtol=tolerance), (op, dim, cut)
            # Each line with filters of its own, along a dimension that is cut, too.
            many = rng.standard_normal((7, 5, 2, 3))
            matrices = np.zeros((7, 5, 6, 8))
            for j in range(6):
                share = np.interp(j, (1, 4), (0, 1))
                matrices[:, :, j, j:j + 3] = (1 - share) * many[:, :, 0] + share * many[:, :, 1]
            op = gl.nonstationary_convolution(space, 2, many, (1, 4), 1, dtype=dtype)
            found = op.range.gather_array(op @ X)
            assert op.dot_test()[0]
            if found is not None:
                expected = np.einsum("abj,abji->abi", x, matrices[..., 1:-1])
                assert np.allclose(found, expected, atol=tolerance, rtol=tolerance), cut
    expect_error(gl.UsageError, lambda: gl.nonstationary_convolution(space, 2, many, (1, 3, 4), 1), "3 positions")
    expect_error(gl.UsageError, lambda: gl.interpolation(space, 0, [0.5], kind="cubic"), "cubic")
    expect_error(gl.UsageError, lambda: gl.interpolation(space, 0, [0.5, 6.5]), "6.5")
    expect_error(gl.UsageError, lambda: gl.matrix_along(space, 0, np.ones(7)), "two-dimensional")
    expect_error(gl.ShapeError, lambda: gl.matrix_along(space, 0, np.ones((2, 6))), "2 x 6")
    expect_error(gl.UsageError, lambda: gl.nonstationary_convolution(space, 0, filters, (1, 3, 5), 5), "5")


def test_fredholm_and_migration():
    grid = gl.Grid(COMM, (COMM.size, 1))
    slices, nx, ny = 5, 3, 2
    g = whole(complex, 1, slices * nx * ny, 1).reshape(slices, nx, ny)
    m = whole(complex, 2, slices * ny, 2).reshape(slices, ny, 2)
    for transposed in (False, True):
        array = g.transpose(0, 2, 1) if transposed else g
        kernel = gl.Space.array(grid, array.shape)
        op = gl.fredholm(kernel, kernel.scatter_array(array if COMM.rank == 0 else None), transposed=transposed)
        D = op.range.gather_array(op @ op.domain.scatter_array(m if COMM.rank == 0 else None))
        assert (D is None or (D == g @ m).all()) and op.dot_test()[0]
    across = gl.Space.array(grid, (slices, nx, ny), 1)
    if COMM.size > 1:
        expect_error(gl.ShapeError, lambda: gl.fredholm(across, gl.zeros(across, 1, complex)), "cut along its slices only")
    expect_error(gl.ShapeError, lambda: gl.fredholm(across, gl.zeros(op.domain, 1, complex)), "kernel")
    mdc = gl.multidimensional_convolution(op, 9)
    assert mdc.shape == (9 * nx, 9 * ny) and mdc.dot_test()[0]
    image = gl.Space.array(grid, (4, 3), axis="uncut")
    data = gl.Space.array(grid, (2, 3, 20), 1)
    times = gl.straight_rays((4, 3), (0, 1), (1, 1), [(0, 0), (3, 0)], [(0, 0), (1, 0), (2, 0)], 1.0)
    migrate = gl.kirchhoff(data, image, times, interval=0.5, wavelet=[1.0], centre=0)
    table = [[np.hypot(i - s, 1 + j) for s in (0, 3)] for i in range(4) for j in range(3)]
    back = [[np.hypot(i - r, 1 + j) for r in (0, 1, 2)] for i in range(4) for j in range(3)]
    same = gl.kirchhoff(data, image, gl.tabulated_rays(table, back), interval=0.5, wavelet=[1.0], centre=0)
    point = gl.zeros(image, 1).fill(lambda i, j: i == 5)
    assert migrate.dot_test()[0] and ((migrate @ point).local == (same @ point).local).all()
    traces = (migrate @ point).local.reshape(2, -1, 20)
    t = (table[5][0] + back[5][data.local_box[1].start]) / 0.5 if traces.size else 0
    assert not traces.size or np.isclose(traces[0, 0, int(t)], 1 - (t - int(t)))
    check_weighted_pairs(grid, image, np.array(table), np.array(back))


def check_weighted_pairs(grid, image, table, back):
    """Demigration of listed pairs with weights, from functions and in blocks, is a sum over the points."""
    pairs = np.array([(1, 2), (0, 0), (1, 0), (0, 0), (0, 1)])
    data = gl.Space.array(grid, (len(pairs), 20))
    ends = [(0, 0), (3, 0)], [(0, 0), (1, 0), (2, 0)]
    times = gl.computed_rays(lambda s, points: table[points, s], lambda r, points: back[points, r])
    weights = gl.straight_ray_weights((4, 3), (0, 1), (1, 1), *ends, 2.0)
    model = np.arange(12) - 4.0
    expected = np.zeros((len(pairs), 20))
    depth = 1 + np.arange(12) % 3
    for trace, (s, r) in zip(expected, pairs):
        t = (table[:, s] + back[:, r]) / 0.5
        cosines = depth / table[:, s] + depth / back[:, r]
        echo = model * cosines / 2 / np.sqrt(table[:, s] * back[:, r])
        np.add.at(trace, t.astype(int), (1 - t % 1) * echo)
        np.add.at(trace, t.astype(int) + 1, t % 1 * echo)
    for bytes in (None, 200):
        op = gl.kirchhoff(data, image, times, interval=0.5, wavelet=[1.0], centre=0, traces=pairs, weights=weights, table_bytes=bytes)
        D = data.gather_array(op @ gl.zeros(image, 1).fill(lambda i, j: i - 4.0))
        assert op.dot_test()[0] and (D is None or np.allclose(D.reshape(expected.shape), expected, 1e-13, 1e-13))
    none = gl.straight_rays((4, 3), (0, 1), (1, 1), *ends, 1.0, widest=1e-3)
    op = gl.kirchhoff(data, image, none, interval=0.5, wavelet=[1.0], centre=0, traces=pairs)
    D = data.gather_array(op @ gl.zeros(image, 1).fill(lambda i, j: 1.0))
    assert D is None or (D.reshape(expected.shape).sum(1) == [0, 3, 0, 3, 0]).all(), "rays straight down"
    broken = gl.computed_rays(lambda s, points: table[points, s], lambda r, points: points[:1][points])
    op = gl.kirchhoff(data, image, broken, interval=0.5, wavelet=[1.0], centre=0, traces=pairs)
    expect_error(Exception, lambda: op @ gl.zeros(image, 1), "out of bounds")


def test_slices_on_groups_of_ranks(folder):
    shapes = [(5, 3), (2, 4), (7, 2)]
    dense = np.zeros((14, 9), complex)
    for f, (i, j) in enumerate([(0, 0), (5, 3), (7, 7)]):
        dense[i:i + shapes[f][0], j:j + shapes[f][1]] = whole(complex, f, *shapes[f])
    for dtype in TYPES:
        for grid in grids():
            A = gl.grouped_slices(grid, shapes, lambda f, rows, cols, dtype=dtype: whole(dtype, f, *shapes[f])[rows, cols],
                                  groups=[((1, grid.shape[0] * grid.shape[1]), 3)], dtype=dtype)
            whole_A = (dense if np.dtype(dtype).kind == "c" else dense.real).astype(dtype)
            X = gl.zeros(A.domain, 2, dtype).fill(integers(dtype, 1))
            found = A.range.gather_array(A @ X)
            assert A.shape == dense.shape and A.dot_test()[0]
            assert found is None or (found == whole_A @ whole(dtype, 1, 9, 2)).all()
    # A kernel of equal slices stays in its file, of which each rank reads its parts.
    G = whole(complex, 5, 3 * 4, 6).reshape(3, 4, 6)
    on_root(lambda: np.save(folder / "G.npy", G))
    kernel = np.load(folder / "G.npy", mmap_mode="r")
    for grid in grids():
        op = gl.grouped_slices(grid, [(4, 6)] * 3, lambda f, rows, cols: kernel[f, rows, cols], dtype=complex)
        assert op.domain.sizes == (3, 6) and op.range.sizes == (3, 4)
        found = op.range.gather_array(op @ gl.zeros(op.domain, 1, complex).fill(integers(complex, 2)))
        assert found is None or (found == np.einsum("fxy,fy->fx", G, whole(complex, 2, 18, 1).reshape(3, 6))).all()

    def broken(f, rows, cols):
        return np.zeros((2, 5)) / (COMM.rank or None)

    expect_error(Exception, lambda: gl.grouped_slices(gl.Grid(), [(2, 5)] * COMM.size, broken, groups=[((1, 1), 1)] * COMM.size),
                 "unsupported operand")
    assert gl.divide_ranks([(2000, 1000)] * 2, 2) == [((1, 1), 1), ((1, 1), 1)]
    assert gl.divide_ranks([], 3) == []


def test_points_along_a_hilbert_curve():
    x, y = (a.ravel() for a in np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
    points = 12.5 * np.stack([x, y], 1)
    order = gl.hilbert_order(points)
    assert order.dtype == np.int64 and sorted(order) == list(range(64))
    assert (abs(np.diff(points[order], axis=0)).sum(axis=1) == 12.5).all()
    assert (gl.hilbert_order(np.asfortranarray(points.astype(np.float32))) == order).all()
    assert gl.hilbert_order([3.0, -1.0, 2.0]).tolist() == [1, 2, 0]
    assert gl.hilbert_order(np.zeros((0, 3))).size == 0
    points[5, 1] = np.inf
    expect_error(gl.UsageError, lambda: gl.hilbert_order(points), "coordinate 1 of point 5 is inf")
    expect_error(gl.UsageError, lambda: gl.hilbert_order(np.zeros((4, 4))), "4 coordinates")
    expect_error(gl.UsageError, lambda: gl.hilbert_order(np.zeros((2, 2, 2))), "(2, 2, 2)")
