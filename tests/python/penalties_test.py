# SPDX-License-Identifier: BSD-3-Clause
"""Sparse solvers, proximal operators, and the primal-dual method, against NumPy."""

import numpy as np
from ranks import COMM, block_of, expect_error, grids

import gridlops as gl


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
