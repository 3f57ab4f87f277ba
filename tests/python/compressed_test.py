# SPDX-License-Identifier: BSD-3-Clause
"""Compressed matrices and planes from Python, against NumPy."""
import numpy as np
from ranks import COMM, expect_error, grids, on_root

import gridlops as gl

STATIONS = np.random.default_rng(3).uniform(0, 1000, (2, 90, 2))  # of rows and of columns, in no order

ORDERS = {"row_order": gl.hilbert_order(STATIONS[0]), "col_order": gl.hilbert_order(STATIONS[1][:70]), "tile": 20}


def waves(dtype, rows=90, cols=70):
    """What stations send each other: tiles between neighbours have low rank."""
    distance = np.hypot(np.linalg.norm(STATIONS[0][:rows, None] - STATIONS[1][None, :cols], axis=2), 300)
    A = np.exp(-0.02j * distance) / distance
    return (A if np.dtype(dtype).kind == "c" else A.real).astype(dtype)


def matrix_of(grid, A):
    return gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(A)


def decompressed(op):
    """The matrix of an operator, on rank 0, by products with unit vectors."""
    n = op.shape[1]
    eye = gl.zeros(op.domain, n, op.dtype).fill(lambda i, j: (i == j).astype(op.dtype))
    return (op @ eye).gather()


def test_error_and_products():
    for dtype in ("float32", "float64", "complex64", "complex128"):
        A = waves(dtype)
        for grid in grids():
            op = gl.compress(matrix_of(grid, A), 1e-2, **ORDERS)
            report = op.report
            assert isinstance(op, gl.Operator) and op.shape == (90, 70) and op.dtype == dtype
            passed, mismatch, tolerance = op.dot_test()
            C = decompressed(op)
            Y = gl.zeros(op.range, 3, dtype).fill(lambda i, j: np.cos(i + 2 * j).astype(dtype))
            back, whole_Y = (op.H @ Y).gather(), Y.gather()
            if not grid.is_member:
                assert report["bytes"] == 0
                continue
            assert passed and mismatch <= tolerance
            assert report["dense_bytes"] == A.nbytes and 0 < report["bytes"] and report["tiles"] >= report["dense_tiles"] + report["empty_tiles"]
            assert COMM.size > 2 or report["bytes"] < A.nbytes
            assert abs(report["norm"] / np.linalg.norm(A.astype(complex)) - 1) < 1e-6 and 0 < report["error"] <= 1e-2
            if C is not None:
                error = np.linalg.norm(C.astype(complex) - A) / np.linalg.norm(A.astype(complex))
                assert abs(error - report["error"]) <= 1e-3 * error + 30 * np.finfo(dtype).eps
                assert np.allclose(back, C.conj().T @ whole_Y, rtol=0, atol=100 * np.finfo(dtype).eps * np.abs(A).sum())


def test_files(folder):
    A = waves("complex128")
    on_root(lambda: np.save(folder / "A.npy", A))
    for k, grid in enumerate(grids()):
        saved = folder / f"saved-{k}"
        made = gl.compress(folder / "A.npy", 1e-3, tile=16, directory=saved, grid=grid)
        C = decompressed(made)
        for other in grids():
            read = gl.read_compressed(saved, other)
            again = decompressed(read)
            if other.is_member:
                assert read.dtype == "complex128" and (not grid.is_member or read.report["error"] == made.report["error"])
            if C is not None and again is not None:
                assert np.abs(again - C).max() <= 1e-14 * np.abs(C).max()
        if grid.is_member:
            expect_error(gl.OutputError, lambda: gl.compress(matrix_of(grid, A), directory=saved), "names what an earlier run saved")
    assert gl.read_compressed(folder / "saved-0").grid.shape == gl.Grid().shape
    assert gl.compress(folder / "A.npy").shape == A.shape
    expect_error(gl.InputError, lambda: gl.read_compressed(folder), "there is no manifest.json")
    expect_error(gl.InputError, lambda: gl.compress(folder / "none.npy"), "none.npy")


def test_solutions_for_the_original():
    A, damp = waves("complex128"), 1e-2
    B = np.random.default_rng(4).standard_normal((90, 2)).astype(A.dtype)
    exact = np.linalg.solve(A.conj().T @ A + damp**2 * np.eye(70), A.conj().T @ B)
    for grid in grids():
        matrix = matrix_of(grid, A)
        op, cheap = gl.matrix_mult(matrix), gl.compress(matrix, 1e-2, **ORDERS)
        data = gl.zeros(op.range, 2, A.dtype).scatter(B)
        X, report = gl.solve_refined(op, cheap, data, damp=damp, tolerance=1e-10)
        Y, rough = gl.cgls(cheap, data, damp=damp, tolerance=1e-10)
        found, near = X.gather(), Y.gather()
        bounds = gl.error_bounds(rough, data, Y, cheap.report["norm"], damp=damp, difference_norm=cheap.report["error"] * cheap.report["norm"])
        if found is not None:
            assert report["reasons"] == ["converged"] * 2 and np.abs(found - exact).max() < 1e-7 * np.abs(exact).max()
            errors = np.linalg.norm(near - exact, axis=0)
            assert (1e-6 * np.linalg.norm(exact, axis=0) < errors).all() and (errors <= bounds).all()


def test_refusals():
    grid = grids()[0]
    A = matrix_of(grid, waves("float64"))
    for words, text in (({"tolerance": 0}, "the tolerance is 0"), ({"tolerance": 1}, "the tolerance is 1"), ({"tile": 0}, "tiles cannot have 0"),
                        ({"row_order": [0, 1]}, "their order has 2 indices"), ({"col_order": [0] * 70}, "each index from 0 to 69")):
        expect_error(gl.UsageError, lambda words=words: gl.compress(A, **words), text)
    expect_error(gl.ShapeError, lambda: gl.compress(A, row_order=np.zeros(90)), "an order is a vector of indices")
    if COMM.size > 1:
        expect_error(gl.ShapeError, lambda: gl.compress(gl.Matrix(grid, grid.row_blocks(9, 5)) if grid.shape[1] > 1 else gl.Matrix(grid, grid.column_blocks(9, 5))), "compress needs its matrix as")
    A.fill(lambda i, j: np.where((i == 80) & (j == 69), np.nan, 1.0))
    expect_error(gl.UsageError, lambda: gl.compress(A), "element (80, 69) of the matrix is nan")
    for shape in ((0, 5), (5, 0), (1, 1)):
        op = gl.compress(gl.Matrix(grid, grid.matrix_layout(*shape)))
        assert op.shape == shape and op.report["error"] == 0
    if COMM.size == 1:
        op = gl.compress(waves("float64"), 1e-2)
        assert np.allclose(op @ np.eye(70), waves("float64"), atol=1e-2 * np.linalg.norm(waves("float64")))


def test_planes():
    A = waves("complex128")
    high = np.ldexp(np.round(np.ldexp(np.frexp(A.view(float))[0], 21)), np.frexp(A.view(float))[1] - 21).view(complex)
    for grid in grids():
        op = gl.matrix_mult(matrix_of(grid, A), storage="planes")
        plane = gl.high_plane(op)
        B = gl.zeros(op.range, 1, A.dtype).fill(lambda i, j: np.sin(i).astype(A.dtype))
        found, data = decompressed(plane), B.gather()
        X, report = gl.solve_refined(op, plane, B, damp=1e-2, tolerance=1e-10)
        solved = X.gather()
        if found is not None:
            assert np.abs(found - high).max() <= 1e-15 * np.abs(A).max() < np.abs(found - A).max()
            exact = np.linalg.solve(A.conj().T @ A + 1e-4 * np.eye(70), A.conj().T @ data)
            assert report["reasons"] == ["converged"] and np.abs(solved - exact).max() < 1e-7 * np.abs(exact).max()
        expect_error(gl.UsageError, lambda: gl.high_plane(gl.matrix_mult(matrix_of(grid, A))), "planes")  # noqa: B023
