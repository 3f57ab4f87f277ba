# SPDX-License-Identifier: BSD-3-Clause
"""Grids, matrices, products and CGLS from Python, against NumPy."""
import gc

import numpy as np
from ranks import COMM, TYPES, block_of, expect_error, grids, integers, whole

import gridlops as gl


def test_grids():
    for grid in grids():
        assert grid.is_member == (COMM.rank < grid.shape[0] * grid.shape[1])
        if grid.is_member:
            assert (grid.row, grid.col) == divmod(COMM.rank, grid.shape[1])
            assert grid.comm is COMM and grid.rank == COMM.rank
    assert gl.Grid().shape == {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 6: (2, 3)}[COMM.size]
    half = gl.Grid(COMM.Split(COMM.rank % 2, COMM.rank))
    assert half.shape[0] * half.shape[1] == (COMM.size + 1 - COMM.rank % 2) // 2


def test_blocks_are_used_in_place():
    for grid in grids():
        for dtype in TYPES if grid is grids()[0] else TYPES[-1:]:
            layout = grid.blocks_2d(7, 5)
            X = gl.Matrix(grid, layout, dtype)
            assert not X.local.any() and X.shape == (7, 5) and X.dtype == dtype
            m, n = X.local.shape
            memory = np.zeros((m + 3, n), dtype, order="F")  # the leading dimension is larger than the rows
            Y = gl.Matrix.from_local(grid, layout, memory[1 : m + 1])
            Y.fill(integers(dtype, 1))
            assert (memory[1 : m + 1] == block_of(Y, whole(dtype, 1, 7, 5))).all() and not memory[m + 1 :].any()
            memory[1 : m + 1] *= 2
            assert (Y.local == 2 * block_of(Y, whole(dtype, 1, 7, 5))).all()
            view = Y.local
            del Y, memory
            gc.collect()
            assert view.shape == (m, n) and view.sum() == 2 * block_of(X, whole(dtype, 1, 7, 5)).sum()
            got = X.fill(integers(dtype, 3)).gather()
            assert got is None or (got == whole(dtype, 3, 7, 5)).all()
            assert (got is not None) == (COMM.rank == 0)
            X.local[...] = 0
            X.scatter(whole(dtype, 4, 7, 5))
            Z = X.redistribute(grid.row_blocks(7, 5))
            assert (Z.local == block_of(Z, whole(dtype, 4, 7, 5))).all()
            if grid.is_member:
                expected = (abs(whole(dtype, 4, 7, 5).astype(complex)) ** 2).sum(axis=0)
                assert np.allclose(Z.column_dots(Z), expected, rtol=1e-14)
                assert np.allclose(Z.column_norms() ** 2, expected, rtol=1e-14)
            frozen = np.ones(Z.local.shape, dtype, order="F")
            frozen.flags.writeable = False
            F = gl.Matrix.from_local(grid, Z.layout, frozen)
            assert not F.local.size or not F.local.flags.writeable
            if grid.is_member:
                expect_error(gl.UsageError, lambda: F.scatter(whole(dtype, 1, 7, 5)), "read-only")


def test_products():
    for dtype, shapes in zip(TYPES, (((2, 3, 1),), ((11, 6, 3), (5, 9, 0)), ((1, 1, 7),), ((11, 6, 3),))):
        for m, n, k in shapes:
            A, X, Y = whole(dtype, 1, m, n), whole(dtype, 2, n, k), whole(dtype, 3, m, k)
            for grid in grids():
                for algorithm in ("stationary-a", "summa", "stationary-b", "block"):
                    given = gl.Matrix(grid, grid.matrix_layout(m, n, algorithm), dtype).fill(integers(dtype, 1))
                    op = gl.matrix_mult(given, algorithm)
                    del given
                    gc.collect()
                    assert op.shape == (m, n) and op.dtype == dtype
                    product = op @ gl.zeros(op.domain, k, dtype).fill(integers(dtype, 2))
                    assert (product.local == block_of(product, A @ X)).all()
                    back = op.H @ gl.zeros(op.range, k, dtype).fill(integers(dtype, 3))
                    assert (back.local == block_of(back, A.conj().T @ Y)).all()
                    # Y ← 2 A X − Y
                    op.apply(gl.zeros(op.domain, k, dtype).fill(integers(dtype, 2)), product, alpha=2, beta=-1)
                    assert (product.local == block_of(product, A @ X)).all()
                assert op.dot_test()[0]


def test_a_matrix_changed_in_place():
    m, n = 12, 10
    for transport in ("mpi", "shared"):
        grid = gl.Grid(COMM, transport=transport)
        for algorithm, storage in (("block", "columns"), ("block", "packed"), ("summa", "columns"), ("stationary-a", "columns"),
                                   ("stationary-a", "packed"), ("stationary-b", "columns")):
            A = gl.Matrix(grid, grid.matrix_layout(m, n, algorithm)).fill(integers("float64", 1))
            op = gl.matrix_mult(A, algorithm, storage=storage)
            X = gl.zeros(op.domain, 3).fill(integers("float64", 2))
            for seed in (1, 3, 4):
                A.local[...] = block_of(A, whole("float64", seed, m, n))
                op.matrix_changed()
                Y = op @ X
                assert (Y.local == block_of(Y, whole("float64", seed, m, n) @ whole("float64", 2, n, 3))).all(), (transport, algorithm)
        expect_error(gl.UsageError, lambda: op.H.matrix_changed(), "matrix_mult")


def test_a_matrix_at_other_places():
    grid = gl.Grid(COMM, (COMM.size, 1))
    sizes = [0] * (COMM.size - 1) + [7]
    layout = gl.Layout(gl.Cut("grid_rows", sizes), gl.Cut("grid_cols", [4]))
    block = np.asfortranarray(whole("float64", 1, 7, 4)) if COMM.rank == COMM.size - 1 else np.zeros((0, 4), order="F")
    op = gl.matrix_mult(gl.Matrix.from_local(grid, layout, block))
    Y = op @ gl.zeros(op.domain, 2).fill(integers("float64", 2))
    got = Y.gather()
    assert got is None or (got == whole("float64", 1, 7, 4) @ whole("float64", 2, 4, 2)).all()


def test_cgls_of_many_columns():
    rng = np.random.default_rng(1)
    for dtype, damp in zip(TYPES, (0, 0.7, 0.3, 0)):
        m, n, k = 23, 9, 4
        A = rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if np.dtype(dtype).kind == "c" else 0)
        A = (np.eye(m, n) * 5 + A).astype(dtype)
        B = (rng.standard_normal((m, k)) * 10.0 ** np.arange(k)).astype(dtype)
        x0 = rng.standard_normal((n, k)).astype(dtype)
        accuracy = 1e-6 if np.dtype(dtype).itemsize * (1 if np.dtype(dtype).kind == "f" else 0.5) == 8 else 1e-3
        stacked = np.vstack([A, damp * np.eye(n)]).astype(complex)
        expected = np.linalg.lstsq(stacked, np.vstack([B, np.zeros((n, k))]), rcond=None)[0]
        for grid in grids():
            op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), dtype).scatter(A))
            data = gl.zeros(op.range, k, dtype).scatter(B)
            X, report = gl.cgls(op, data, damp=damp, max_iterations=50)
            guess = gl.zeros(op.domain, k, dtype).scatter(x0)
            again, _ = gl.cgls(op, data, guess, out=guess, damp=damp, max_iterations=50)
            assert again is guess
            for found in (X, guess) if grid.is_member else ():
                error = abs(found.local - block_of(found, expected)).max(axis=0, initial=0)
                assert (error <= accuracy * abs(expected).max(axis=0)).all(), (dtype, damp, error)
            if not grid.is_member:
                continue
            assert report["solver"] == "cgls" and report["reasons"] == ["converged"] * k
            residual = np.linalg.norm(A @ expected - B, axis=0)
            assert np.allclose(report["residual_norms"], residual, rtol=1e-4)
            assert len(report["column_iterations"]) == k and report["iterations"] == max(report["column_iterations"])
            assert report["history"][0]["iteration"] == 0 and report["history"][0]["columns"] == list(range(k))
            assert report["history"][0]["tested_norms"] == [1] * k


def test_dampings_and_tolerances_of_columns():
    grid = gl.Grid()
    m, n, damps = 12, 7, np.array([0, 0.1, 1, 10])
    A = np.eye(m, n) * 4 + whole("float64", 1, m, n)
    b = whole("float64", 2, m, 1)
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n)).scatter(A))
    B = gl.zeros(op.range, len(damps)).scatter(np.tile(b, len(damps)))
    expected = [np.linalg.solve(A.T @ A + D**2 * np.eye(n), A.T @ b) for D in damps]
    for solver in (gl.cgls, gl.lsqr, gl.lsmr):
        X, report = solver(op, B, damp=damps, tolerance=1e-12)
        assert np.allclose(X.local, block_of(X, np.hstack(expected)), rtol=0, atol=1e-9), solver
        assert len(report["reference_norms"]) == len(damps) and (report.tested_norms <= 1e-12 * 1.01).all() or solver is not gl.cgls
    _, report = gl.cgls(op, B, tolerance=[1e-12, 1e-1, 1e-12, 1], max_iterations=50)
    loose, tight = report["column_iterations"][1], report["column_iterations"][0]
    assert report["column_iterations"][3] == 0 < loose < tight == report["column_iterations"][2]
    assert np.allclose(report["reference_norms"], np.linalg.norm(A.T @ b))
    expect_error(gl.UsageError, lambda: gl.cgls(op, B, damp=[1, 2]), "2", "4")
    expect_error(gl.UsageError, lambda: gl.fista(op, B, damp=damps), "damp")


def test_dampings_are_chosen_as_numpy_chooses():
    grid = gl.Grid()
    m, n, damps = 30, 12, np.geomspace(1e-2, 3, 25)
    U, V = np.linalg.qr(whole("float64", 1, m, n))[0], np.linalg.qr(whole("float64", 2, n, n))[0]
    values = np.geomspace(1, 1e-3, n)
    A = (U * values) @ V.T
    b = U @ values[:, None] ** 1.5 + 0.02 * whole("float64", 3, m, 1)
    z = gl.gcv_probe(np.arange(m))[:, None]
    assert set(z.ravel()) == {-1.0, 1.0}
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n)).scatter(A))
    x = np.hstack([np.linalg.solve(A.T @ A + D**2 * np.eye(n), A.T @ b) for D in damps])
    residuals = np.linalg.norm(b - A @ x, axis=0)
    trace = np.array([(z.T @ (z - A @ np.linalg.solve(A.T @ A + D**2 * np.eye(n), A.T @ z))).item() for D in damps])
    noise = 1.2 * residuals[0]
    expected = {"discrepancy": np.flatnonzero(residuals <= noise)[-1], "gcv": np.argmin(residuals**2 / trace**2), "none": None}
    for rule, choice in expected.items():
        probes = len(damps) if rule == "gcv" else 0
        B = gl.zeros(op.range, len(damps) + probes).scatter(np.hstack([np.tile(b, len(damps)), np.tile(z, probes)]))
        X, report = gl.lsqr(op, B, damp=np.tile(damps, 2 if probes else 1), tolerance=1e-12, max_iterations=500)
        curve = gl.damping_curve(damps, X, report, rule, noise)
        assert curve["rule"] == rule
        if grid.is_member:
            assert curve["chosen"] == choice, (rule, curve["chosen"], choice)
            assert np.allclose(curve["residual_norms"], residuals, rtol=1e-6) and (curve["damps"] == damps).all()
            assert np.allclose(curve["x_norms"], np.linalg.norm(x, axis=0), rtol=1e-6)
    X, report = gl.cgls(op, B, damp=damps[-1], max_iterations=3)
    norm = gl.frobenius_norm(gl.Matrix(grid, grid.matrix_layout(m, n)).scatter(A))
    bounds = gl.error_bounds(report, B, X, norm, damp=damps[-1])
    unbounded, found = gl.error_bounds(report, B, X, norm), X.gather()
    if grid.is_member:
        assert np.isclose(norm, np.linalg.norm(A)) and np.isfinite(bounds).all() and np.isinf(unbounded).all()
    assert found is None or (np.linalg.norm(found - x[:, -1:], axis=0) <= bounds).all()
    expect_error(gl.UsageError, lambda: gl.error_bounds(report, B, X, norm, sigma_min=-1), "sigma_min is -1")
    tall = np.linalg.qr(np.vander(np.linspace(-1, 1, 60), 12))[0] * np.geomspace(1, 0.01, 12)
    sketched = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*tall.shape)).scatter(tall if grid.rank == 0 else None))
    probable, bold = sketched.probable_sigma_min(), sketched.probable_sigma_min(failure=0.1)
    assert 0.002 < probable < bold <= 0.01 or not grid.is_member, (probable, bold)
    expect_error(gl.UsageError, sketched.H.probable_sigma_min, "12 x 60")
    square = 2.0 * gl.identity(op.domain, dtype=op.dtype)
    Z, report = gl.cg(square, X, max_iterations=0)
    bounds, sizes = gl.error_bounds(report, X, Z, 2 * np.sqrt(op.shape[1]), sigma_min=2, definite=True), X.column_norms()
    assert np.allclose(bounds, 0.5 * np.asarray(sizes), rtol=1e-3) or not op.domain.grid.is_member, (bounds, sizes)  # Z is 0
    expect_error(gl.UsageError, lambda: gl.damping_curve(damps, X, report, "corner"), "corner")
    expect_error(gl.ShapeError, lambda: gl.damping_curve(damps, X, report, "gcv"), "gcv_probe")


def test_one_space_has_the_solutions_of_all_columns_and_dampings(folder):
    grid = gl.Grid()
    m, n, damps = 30, 12, np.geomspace(1e-2, 3, 15)
    for name in ("float64", "complex64"):
        A, b = whole(name, 1, m, n) / 8, whole(name, 2, m, 3)
        z = gl.gcv_probe(np.arange(m))[:, None]
        op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), A.dtype).scatter(A))
        B = gl.zeros(op.range, 3, A.dtype).scatter(b)
        damped = [np.linalg.inv(A.conj().T @ A + D**2 * np.eye(n)) @ A.conj().T for D in damps]
        residuals = np.array([np.linalg.norm(b - A @ (P @ b), axis=0) for P in damped])
        trace = np.array([(z.T @ (z - A @ (P @ z))).item().real for P in damped])
        tolerance = 1e-10 if name == "float64" else 1e-4
        space = gl.SolutionSpace(op, B, damps, tolerance=tolerance, gcv=True)
        curves = space.curves("gcv")
        picked = [0.3, damps[0], 2.0]
        X, report = space.solve(B, picked)
        found = X.gather()
        if not grid.is_member:
            assert curves == [] and report["reasons"] == []
            continue
        assert space.end in ("converged", "complete") and 0 < space.dimension <= n and space.products <= 2 * n + 4
        assert all(curve["chosen"] == np.argmin(residuals[:, j] ** 2 / trace**2) for j, curve in enumerate(curves)) or name == "complex64"
        assert all(np.allclose(curve["residual_norms"], residuals[:, j], rtol=100 * tolerance) for j, curve in enumerate(curves))
        assert report["reasons"] == ["converged"] * 3 and (np.array(report["column_iterations"]) == 0).all(), report
        if found is not None:
            exact = np.column_stack([np.linalg.solve(A.conj().T @ A + D**2 * np.eye(n), A.conj().T @ b[:, j]) for j, D in enumerate(picked)])
            assert np.linalg.norm(found - exact) <= 100 * tolerance * np.linalg.norm(exact)
        others = whole(name, 3, m, 2)
        X, report = space.solve_others(gl.zeros(op.range, 2, A.dtype).scatter(others), 0.5)
        found = X.gather()
        assert report["reasons"] == ["converged"] * 2, report
        if found is not None:
            exact = np.linalg.solve(A.conj().T @ A + 0.25 * np.eye(n), A.conj().T @ others)
            assert np.linalg.norm(found - exact) <= 100 * tolerance * np.linalg.norm(exact)
        space.save(folder / name)
        again = gl.SolutionSpace.load(op, folder / name)
        assert all(np.array_equal(one[key], other[key]) for one, other in zip(again.curves("gcv"), curves) for key in ("chosen", "residual_norms", "x_norms"))
        assert (again.dimension, again.products, again.end) == (space.dimension, space.products, space.end)
        Y, report = again.solve_others(gl.zeros(op.range, 2, A.dtype).scatter(others), 0.5)
        same = Y.gather()
        assert report["reasons"] == ["converged"] * 2 and (found is None or np.array_equal(same, found)), report
        more = gl.SolutionSpace(op, B, [0.05, *damps], tolerance=tolerance, gcv=True, checkpoint=folder / name, restart=folder / name)
        assert more.dimension >= space.dimension and more.end in ("converged", "complete") and len(more.curves()[0]["damps"] if more.curves() else damps) >= len(damps)
        for D, P, *bounds in zip(damps, damped, *(curve["error_bounds"] for curve in space.curves("none", frobenius_norm=np.linalg.norm(A)))):
            found = space.solve(B, D, max_iterations=0)[0].gather()
            if found is not None:
                errors = np.linalg.norm(found - P @ b, axis=0)
                rounding = 10 * np.finfo(A.dtype).eps * np.linalg.norm(b, axis=0) / D**2  # that of P
                assert (errors <= np.array(bounds) + rounding).all() and np.isfinite(bounds).all(), (name, D, errors, bounds)
        assert all(np.isnan(curve["error_bounds"]).all() for curve in curves)
        cheap = gl.SolutionSpace(op, B, damps, tolerance=tolerance, gcv=True, limits_cost=True, product_cost=1e-3)
        report = cheap.solve_rest(B, max_iterations=1000)
        assert cheap.end == "cost_limit" and cheap.dimension < space.dimension and len(report["reasons"]) > 0 and set(report["reasons"]) <= {"converged", "stagnated"}
        assert all(np.allclose(curve["residual_norms"], residuals[:, j], atol=100 * tolerance * np.linalg.norm(b[:, j])) and (curve["chosen"] == curves[j]["chosen"] or name == "complex64")
                   for j, curve in enumerate(cheap.curves("gcv")))
        assert gl.SolutionSpace(op, B, damps, tolerance=tolerance, gcv=True, limits_cost=True, product_cost=1e9).dimension == space.dimension
        expect_error(gl.UsageError, lambda: cheap.solve_rest(B, damp=0.1), "those of the space")
        expect_error(gl.InputError, lambda: gl.SolutionSpace(op, B, damps, restart=folder / name), "probe")
        expect_error(gl.OutputError, lambda: space.save(folder / name), "names what an earlier run saved")
        expect_error(gl.InputError, lambda: gl.SolutionSpace.load(op, folder / "none"), "holds no checkpoint")
        expect_error(gl.UsageError, lambda: gl.SolutionSpace(op, B, []), "no damping")
        expect_error(gl.UsageError, lambda: gl.SolutionSpace(op, B, [1, -1]), "a damping is -1")
        expect_error(gl.UsageError, lambda: space.curves("corner"), "corner")
        expect_error(gl.UsageError, lambda: gl.SolutionSpace(op, B, [1]).curves("gcv"), "has_probe")
    if COMM.size == 1:  # whole arrays
        space = gl.SolutionSpace(op, b, damps)
        X, _ = space.solve(b, 0.3)
        assert X.shape == (n, 3) and np.allclose(X, np.linalg.solve(A.conj().T @ A + 0.09 * np.eye(n), A.conj().T @ b), atol=1e-2)


def test_steps_with_an_approximation_solve_for_the_operator_itself():
    grid = gl.Grid()
    m, n, damps = 30, 24, [0.3, 0.5, 0.4]
    for name in ("float64", "complex64"):
        A, b = whole(name, 1, m, n) / 8, whole(name, 2, m, 3)
        rough = A + (whole(name, 4, m, n) / 1000).astype(A.dtype)
        operator_of = lambda matrix: gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(m, n), matrix.dtype).scatter(matrix))  # noqa: E731
        op, approximation = operator_of(A), operator_of(rough)
        B = gl.zeros(op.range, 3, A.dtype).scatter(b)
        tolerance = 1e-10 if name == "float64" else 1e-4
        X, report = gl.solve_refined(op, approximation, B, damp=damps, tolerance=tolerance)
        norm = gl.difference_norm(op, approximation)
        Y, rough_report = gl.cgls(approximation, B, damp=damps)
        bounds = gl.error_bounds(rough_report, B, Y, float(np.linalg.norm(A)), damp=damps, difference_norm=norm)
        found, roughly = X.gather(), Y.gather()
        other = operator_of(whole(name, 5, m, n) / 8)
        dear = gl.solve_refined(op, other, B, damp=0.1, tolerance=tolerance, cost_of_A=1, cost_of_approximation=2)[1]
        expect_error(gl.UsageError, lambda: gl.solve_refined(op, approximation, B, cost_of_A=1), "give both")
        if not grid.is_member:
            assert report["refinement"]["contractions"] == [] and norm == 0 and len(bounds) == 0
            continue
        steps = report["refinement"]
        assert report["solver"] == "refined-cgls" and report["reasons"] == ["converged"] * 3, report
        assert steps["refusal"] == "" and steps["refused"] == [False] * 3
        assert steps["products_with_A"] >= 2 * report["iterations"] + 3 and report["iterations"] <= 6
        assert all(0 <= contraction < 0.1 for contraction in steps["contractions"])
        assert "none could leave little enough" in dear["refinement"]["refusal"] and dear["reasons"].count("user_stop") > 0, dear
        assert abs(norm / np.linalg.norm(A - rough, 2) - 1) < 1e-2
        if found is not None:
            exact = np.column_stack([np.linalg.solve(A.conj().T @ A + D**2 * np.eye(n), A.conj().T @ b[:, j]) for j, D in enumerate(damps)])
            assert np.linalg.norm(found - exact) <= 100 * tolerance * np.linalg.norm(exact)
            errors = np.linalg.norm(roughly - exact, axis=0)
            assert (errors <= bounds).all() and (bounds <= 1e3 * errors).all()


def test_bounds_are_numbers_vectors_columns_and_matrices():
    grid = gl.Grid(COMM, (COMM.size, 1))
    n, nrhs = 7, 3
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(n, n)).fill(lambda i, j: (1.0 + i) * (i == j)))
    data = np.cos(np.arange(n)[:, np.newaxis] + 2.0 * np.arange(nrhs))
    B = gl.zeros(A.range, nrhs).fill(lambda i, j: data[i, j])
    exact, vector, columns = data / (1.0 + np.arange(n)[:, np.newaxis]), np.linspace(-0.5, 0.1, n), np.linspace(-0.2, 0.4, n * nrhs).reshape(n, nrhs)
    for lower in (0.05, 0, vector, vector.astype("float32"), vector[:, np.newaxis], columns):
        whole = np.broadcast_to(lower[:, np.newaxis] if np.ndim(lower) == 1 else lower, (n, nrhs))
        for given in (lower, gl.zeros(A.domain, nrhs).fill(lambda i, j, whole=whole: whole[i, j])):
            X, report = gl.bounded(A, B, lower=given, upper=0.5)
            found = X.gather()
            assert set(report["reasons"]) == {"converged"}
            assert found is None or np.abs(found - np.clip(exact, whole, 0.5)).max() < 1e-6


def test_every_type_of_error_has_its_class_and_status():
    statuses = {name: getattr(gl, name).status for name in gl._native.error_statuses}
    assert statuses == {"Error": 70, "UsageError": 2, "ShapeError": 2, "InputError": 65, "OutputError": 74, "OutOfMemory": 71,
                        "CommunicationError": 70, "Suspended": 75}
    assert all(issubclass(getattr(gl, name), gl.Error) for name in statuses)


def test_errors_have_types_that_fit():
    grid = gl.Grid()
    A = gl.Matrix(grid, grid.matrix_layout(6, 4)).fill(integers("float64", 1))
    op = gl.matrix_mult(A)
    wrong = gl.zeros(op.range, 1)
    error = expect_error(gl.ShapeError, lambda: op @ wrong, "6 x 1")
    assert isinstance(error, ValueError) and isinstance(error, gl.UsageError) and error.status == 2
    assert error.known_to_all_ranks
    expect_error(ValueError, lambda: gl.Grid(shape=(COMM.size + 1, 1)))
    expect_error(gl.UsageError, lambda: gl.matrix_mult(A, "fastest"), "fastest")
    expect_error(gl.UsageError, lambda: gl.Matrix(grid, A.layout, "int32"), "int32", "float64")
    expect_error(gl.UsageError, lambda: op @ gl.zeros(op.domain, 1, "float32"), "float32", "float64")
    expect_error(gl.UsageError, lambda: gl.cgls(op, gl.zeros(op.range), damp=-1), "-1")
    expect_error(gl.UsageError, lambda: gl.cgls(op, gl.zeros(op.range), damping=1), "no option damping", "did you mean damp")
    rows, cols = A.local.shape
    if rows > 1 and cols > 1:
        expect_error(gl.UsageError, lambda: gl.Matrix.from_local(grid, A.layout, np.zeros((rows, cols))), "asfortranarray")
    expect_error(gl.ShapeError, lambda: gl.Matrix.from_local(grid, A.layout, np.zeros((rows + 1, cols), order="F")))
    expect_error(OSError, lambda: gl.cgls(op, gl.zeros(op.range).fill(integers("float64", 1)), restart="/nonexistent"))
