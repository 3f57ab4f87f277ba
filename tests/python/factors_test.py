# SPDX-License-Identifier: BSD-3-Clause
"""Factors from Python, of one damping and of all, against NumPy."""
from fractions import Fraction

import numpy as np
from ranks import COMM, expect_error, grids

import gridlops as gl

TYPES = ("float32", "float64", "complex64", "complex128")


def problem(grid, dtype, m, n, k=3):
    rng = np.random.default_rng(3)
    draw = lambda *shape: rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)  # noqa: E731
    A, B = (np.eye(m, n) * 4 + draw(m, n)).astype(dtype), draw(m, k).astype(dtype)
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), dtype).scatter(A))
    return A, B, op, gl.zeros(op.range, k, dtype).scatter(B)


def solution(A, b, damp):
    return np.linalg.solve(A.conj().T @ A + damp**2 * np.eye(A.shape[1]), A.conj().T @ b)


def is_close(X, expected, eps):
    whole = X.gather()
    return whole is None or np.abs(whole - expected).max() <= eps**0.5 * np.abs(expected).max()


def test_a_factor():
    for dtype in TYPES:
        eps = np.finfo(dtype).eps
        for grid in grids():
            A, B, op, data = problem(grid, dtype, 17, 6)
            factor = gl.factor(op, damp=0.3)
            X, report = gl.direct(op, data, factor=factor, damp=0.3)
            assert is_close(X, solution(A, B, 0.3), eps)
            assert factor.shape == (6, 6)
            expect_error(gl.UsageError, lambda: gl.direct(op, data, factor=2 * factor, damp=0.3), "gridlops.factor", "Operator")  # noqa: B023
            X, _ = gl.solve("pcgls", op, data, M=factor, damp=0.3)
            assert is_close(X, solution(A, B, 0.3), eps)
            if not grid.is_member:
                continue
            assert report["iterations"] == 1
            assert (factor.damp, factor.shift, factor.rank, factor.by_qr, factor.of_data) == (0.3, 0, 6, False, False)
            assert factor.condition >= np.linalg.cond(np.vstack([A, 0.3 * np.eye(6)])) * 0.3
            expect_error(gl.UsageError, lambda: gl.direct(op, data, factor=factor, damp=0.2), "the factor has the damping", "but the problem has")  # noqa: B023


def is_below_all_singular_values(sigma, A):
    """Whether AᴴA − σ²I is positive semidefinite, by LDLᴴ in exact arithmetic."""
    exact = [[(Fraction(float(x.real)), Fraction(float(x.imag))) for x in row] for row in A]
    n, zero = A.shape[1], (Fraction(0), Fraction(0))
    G = [[zero] * n for _ in range(n)]
    for row in exact:
        for i in range(n):
            for j in range(n):
                (a, b), (c, d) = row[i], row[j]  # conj(a + ib)(c + id)
                G[i][j] = (G[i][j][0] + a * c + b * d, G[i][j][1] + a * d - b * c)
    for i in range(n):
        G[i][i] = (G[i][i][0] - Fraction(sigma) ** 2, Fraction(0))
    for k in range(n):
        pivot = G[k][k][0]
        if pivot <= 0:
            return False
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                (a, b), (c, d) = G[i][k], G[k][j]
                G[i][j] = (G[i][j][0] - (a * c - b * d) / pivot, G[i][j][1] - (a * d + b * c) / pivot)
    return True


def test_a_proven_smallest_singular_value():
    """In exact rational arithmetic, for conditions up to those that rounding hides."""
    rng = np.random.default_rng(5)
    shapes, cases, said = list(grids()), 1000 // COMM.size, 0
    for case in range(cases):
        dtype, condition = ("float64", "complex128", "float32")[case % 3], 10 ** rng.uniform(0, 17)
        n = int(rng.integers(1, 5))
        m = n + int(rng.integers(0, 8))
        draw = lambda *shape: rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex128" else 0)  # noqa: E731, B023
        Q, W = np.linalg.qr(draw(m, n))[0], np.linalg.qr(draw(n, n))[0]
        A = ((Q * np.geomspace(1, 1 / condition, n)) @ W).astype(dtype)
        grid = shapes[case % len(shapes)]
        sigma = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), dtype).scatter(A)).proven_sigma_min()
        assert sigma == 0 or is_below_all_singular_values(sigma, A), (dtype, m, n, condition, sigma)
        if grid.is_member and dtype != "float32" and condition < 1e10:
            assert sigma >= 0.9 * np.linalg.svd(A, compute_uv=False)[-1] * (1 - 1e-15 * condition), (dtype, condition, sigma)
        said += sigma > 0
    assert said > 0.7 * cases * sum(grid.is_member for grid in shapes) / len(shapes), said
    wide = gl.matrix_mult(gl.Matrix(shapes[0], shapes[0].matrix_layout(2, 3)).scatter(np.ones((2, 3))))
    expect_error(gl.UsageError, wide.proven_sigma_min, "2 x 3")


def test_a_factor_of_all_dampings():
    damps = [0.2, 5.0, 1.0]
    for dtype in TYPES:
        eps = np.finfo(dtype).eps
        for grid in grids():
            for m, n in ((17, 6), (6, 17)):
                A, B, op, data = problem(grid, dtype, m, n)
                factor = gl.spectral_factor(op, 0.2)
                curves = gl.damping_curves(op, data, factor, damps)
                X, report = gl.direct(op, data, factor=factor, damp=damps)
                alone, _ = gl.direct(op, data, damp=damps)
                for each in (X, alone):
                    assert is_close(each, np.array([solution(A, B[:, j], damp) for j, damp in enumerate(damps)]).T, eps)
                assert len(curves) == (3 if grid.is_member else 0)
                if not grid.is_member:
                    assert factor.singular_values.size == 0
                    continue
                if m > n:
                    variances = gl.zeros(op.domain, 3, dtype)
                    gl.solve("direct", op, data, factor=factor, damp=damps, variances=variances)
                    diagonals = np.array([np.diag(np.linalg.inv(A.conj().T @ A + damp**2 * np.eye(n))).real for damp in damps]).T
                    assert is_close(variances, diagonals, eps)
                values = np.linalg.svd(A, compute_uv=False)
                assert report["iterations"] <= 3 and np.allclose(factor.singular_values, values, rtol=eps**0.5)
                assert (factor.damp, factor.rank, factor.of_data) == (0.2, 6, m < n) and isinstance(factor, gl.Factor)
                for j, curve in enumerate(curves):
                    exact = [solution(A, B[:, j], damp) for damp in damps]
                    residuals = np.array([np.linalg.norm(B[:, j] - A @ x) for x in exact])
                    free = np.array([m - (values**2 / (values**2 + damp**2)).sum() for damp in damps])
                    assert np.allclose([factor.free_dimensions(damp) for damp in damps], free, rtol=eps**0.5)
                    assert np.allclose(curve["residual_norms"], residuals, rtol=4 * eps**0.5) and np.allclose(curve["x_norms"], [np.linalg.norm(x) for x in exact], rtol=4 * eps**0.5)
                    assert np.allclose(curve["merits"], (residuals / free) ** 2, rtol=16 * eps**0.5) and curve["chosen"] == int(np.argmin((residuals / free) ** 2))
                expect_error(gl.UsageError, lambda: gl.damping_curves(op, data, factor, [0.1]), "the damping 0.1", "from 0.2")  # noqa: B023
                expect_error(gl.UsageError, lambda: gl.direct(op, data, factor=factor, damp=0.1), "the factor has dampings from 0.2", "but the problem has 0.1")  # noqa: B023
                expect_error(gl.UsageError, lambda: gl.damping_curves(op, data, gl.factor(op), [0.5]), "spectral_factor")  # noqa: B023
    if COMM.size == 1:
        A, B, op, _ = problem(grids()[0], "float64", 17, 6)
        (curve, *_) = gl.damping_curves(op, B, gl.spectral_factor(op), np.geomspace(1e-2, 1, 9), "lcurve")
        assert curve["rule"] == "lcurve" and len(curve["damps"]) == 9
