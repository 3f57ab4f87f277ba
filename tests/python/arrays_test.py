# SPDX-License-Identifier: BSD-3-Clause
"""Whole arrays in the user's own order, whatever the grid and the cuts; and arrays of NumPy where there is one rank."""
import json
import pickle
import signal
import sys
import threading

import numpy as np
import pytest
from ranks import COMM, TYPES, expect_error, grids, integers, whole

import gridlops as gl


def on_root(array, root=0):
    return array if COMM.rank == root else None


def spaces():
    """Spaces of all kinds on all grids: vectors, arrays cut along each dimension, copies, empty parts, nothing."""
    for grid in grids():
        yield gl.Space(grid, gl.Cut("uncut", [7]))
        ranks = grid.shape[0] * grid.shape[1]
        yield gl.Space(grid, gl.Cut("all", [rank % 3 for rank in range(ranks)]))
        yield gl.Space.array(grid, (0, 3), axis="all")
        yield gl.Space.array(grid, (5,), columns="uncut")
        for cut in range(3):
            yield gl.Space.array(grid, (3, 5, 4), cut)
            yield gl.Space.array(grid, (3, 5, 4), cut, axis="grid_rows", columns="grid_cols")
        yield gl.Space.array_with_cuts(grid, [[1] * grid.shape[0], [2, *[0] * (grid.shape[1] - 1)]])


def test_scattered_and_gathered():
    for space in spaces():
        sizes = space.sizes or (space.dimension,)
        for dtype in TYPES[1:3]:
            for nrhs in (None, 0, 1, 3):
                shape = sizes if nrhs is None else (*sizes, nrhs)
                array = integers(dtype, 1)(*np.indices((space.dimension, 1 if nrhs is None else nrhs))).reshape(shape)
                root = space.grid.shape[0] * space.grid.shape[1] - 1
                X = space.scatter_array(on_root(array, root), root)
                assert X.space == space and X.dtype == dtype and X.shape == (space.dimension, 1 if nrhs is None else nrhs)
                if space.grid.is_member:
                    mine = array.reshape(*sizes, X.shape[1])[space.local_box][..., X.cols]
                    assert (X.local.ravel() == mine.reshape(X.local.shape).ravel()).all()
                    # fill() counts elements as the array does.
                    assert (gl.zeros(space, X.shape[1], dtype).fill(integers(dtype, 1)).local == X.local).all()
                else:
                    assert np.zeros(sizes)[space.local_box].size == 0
                got = space.gather_array(X, root)
                assert (got is not None) == (COMM.rank == root)
                if got is not None:
                    assert got.shape == (sizes if X.shape[1] == 1 else shape) and (got == array.reshape(got.shape)).all()
                flat = array.reshape(space.dimension, *shape[len(sizes):])
                assert (space.scatter_array(on_root(flat)).local == X.local).all()


def test_an_operator_on_arrays_cut_anywhere():
    """Deconvolution of one's own data: the operator cuts along dimension 1, and nobody has to know."""
    rng = np.random.default_rng(3)
    model, data = (6, 4), (6, 5)
    spectra = rng.standard_normal((4, 5, 4)) + 1j * rng.standard_normal((4, 5, 4)) + 4 * np.eye(5, 4)
    spectra[0].imag = 0
    spectra[3].imag = 0
    m = rng.standard_normal(model)
    d = np.fft.irfft(np.einsum("fxy,fy->fx", spectra, np.fft.rfft(m, axis=0)), 6, axis=0)
    for grid in grids():
        kernel = gl.Space.array(grid, spectra.shape)
        A = gl.multidimensional_convolution(gl.fredholm(kernel, kernel.scatter_array(on_root(spectra))), model[0])
        assert A.domain.sizes == model and A.range.sizes == data
        product = A.range.gather_array(A @ A.domain.scatter_array(on_root(m)))
        X, report = gl.cgls(A, A.range.scatter_array(on_root(d)), max_iterations=200, tolerance=1e-12)
        found = A.domain.gather_array(X)
        if COMM.rank == 0:
            assert np.allclose(product, d, atol=1e-12) and np.allclose(found, m, atol=1e-8), report
        if grid.shape == (1, COMM.size) and COMM.size > 1:
            expect_error(gl.UsageError, X.gather, "6 x 4", "gather_array(X)")
            expect_error(gl.UsageError, lambda: X.scatter(on_root(m)), "scatter_array(array)")


def test_types_and_shapes_of_whole_arrays():
    grid = gl.Grid()
    space = gl.Space.array(grid, (2, 3), 1)
    a = np.arange(6.0).reshape(2, 3)
    for dtype in ("<f4", ">f4", "<f", ">c16", "float64"):
        X = space.scatter_array(on_root(a.astype(dtype)))
        assert X.dtype == np.dtype(dtype).newbyteorder("=") and X.dtype.isnative
        got = space.gather_array(X)
        assert got is None or (got == a).all()
    assert gl.zeros(space, 1, "<f").dtype == np.float32
    given = space.scatter_array(on_root(a.astype(np.int16)), dtype="float32")
    assert given.dtype == np.float32
    masked = np.ma.masked_array(a, mask=a == 3)
    for bad, dtype, kind, words in ((masked, None, gl.UsageError, ("1 of the 6 elements", "filled(0)")),
                                    (a.astype(int), None, gl.UsageError, ("int64", "astype")),
                                    (a, "float32", gl.UsageError, ("float64", "array.astype('float32')")),
                                    (a * 1j, "float64", gl.UsageError, ("complex128",)),
                                    (a.astype(object), None, gl.UsageError, ("object",)),
                                    (a.T, None, gl.ShapeError, ("(3, 2)", "(2, 3)", "(6,)")),
                                    (np.zeros((2, 3, 1, 1)), None, gl.ShapeError, ("(2, 3, 1, 1)",)),
                                    (np.float64(1), None, gl.ShapeError, ("()",)),
                                    ([[1, 2], [3]], None, gl.UsageError, ())):
        expect_error(kind, lambda bad=bad, dtype=dtype: space.scatter_array(on_root(bad), dtype=dtype), *words)
    expect_error(gl.UsageError, lambda: space.scatter_array(a, root=COMM.size), f"no rank {COMM.size}")
    expect_error(gl.UsageError, lambda: gl.zeros(space, 1, "float16"), "float16")
    expect_error(gl.UsageError, lambda: gl.zeros(space, 1, "zzz"), "zzz")
    A = gl.Matrix(grid, grid.matrix_layout(4, 3))
    for bad, kind in ((np.zeros((3, 4)), gl.ShapeError), (np.zeros(12), gl.ShapeError), (np.zeros((4, 3), complex), gl.UsageError)):
        expect_error(kind, lambda bad=bad: A.scatter(on_root(bad)))
    assert A.scatter(on_root(np.arange(12).reshape(4, 3))).local.dtype == np.float64
    expect_error(gl.ShapeError, lambda: space.gather_array(gl.zeros(gl.Space.array(grid, (3, 2), 1))), "3 x 2")


one_rank = pytest.mark.skipif(COMM.size > 1, reason="arrays are whole on one rank only")


@one_rank
def test_products_of_arrays():
    for dtype in TYPES:
        dense, x = whole(dtype, 1, 6, 4), whole(dtype, 2, 4, 3)
        A = gl.matrix_mult(dense)
        for given in (x, x[:, 0], np.asfortranarray(x), x.astype(np.dtype(dtype).newbyteorder(">"))):
            expected = dense @ given
            for got in (A @ given, A * given, A.matvec(given), A.matmat(given), (given.T @ A.T).T):
                assert got.shape == expected.shape and got.dtype == dtype and (got == expected).all()
        y = whole(dtype, 3, 6, 2)
        assert (A.H @ y == dense.conj().T @ y).all() and (A.T @ y == dense.T @ y).all() and (y.T @ A == y.T @ dense).all()
        assert A.T.dot_test()[0] and (sum([A, A, A]) @ x == 3 * dense @ x).all() and (A / 2 @ x == dense @ x / 2).all()
    expect_error(gl.ShapeError, lambda: A @ np.zeros(5, dtype), "(5,)", "(4,)")
    expect_error(gl.UsageError, lambda: gl.matrix_mult(np.zeros((2, 3), int)), "int64")
    space = gl.Space.array(gl.Grid(), (5, 4), 1)
    D = gl.first_derivative(space, 1, kind="forward")
    a = np.random.default_rng(1).standard_normal((5, 4, 2))
    assert np.allclose((D @ a)[:, :-1], np.diff(a, axis=1)) and (D @ a[..., 0]).shape == (5, 4) and (D @ a.reshape(20, 2)).shape == (20, 2)


@one_rank
def test_solvers_on_arrays_and_scipy():
    import scipy.sparse.linalg

    rng = np.random.default_rng(7)
    dense = rng.standard_normal((9, 4)) + 1j * rng.standard_normal((9, 4))
    b = rng.standard_normal((9, 2)) + 0j
    A = gl.matrix_mult(dense)
    expected = np.linalg.lstsq(dense, b, rcond=None)[0]
    for solver in (gl.cgls, gl.lsqr, gl.lsmr, gl.regularized_inversion):
        x, report = solver(A, b, tolerance=1e-13)
        assert isinstance(x, np.ndarray) and np.allclose(x, expected) and report["reasons"] == ["converged"] * 2, (solver, report)
    x, _ = gl.cgls(A, b[:, 0], np.zeros(4, complex), tolerance=1e-13)
    assert x.shape == (4,) and np.allclose(x, expected[:, 0])
    found = scipy.sparse.linalg.lsqr(scipy.sparse.linalg.aslinearoperator(A), b[:, 1], atol=1e-12, btol=1e-12)[0]
    assert np.allclose(found, expected[:, 1], atol=1e-6)
    S = dense.conj().T @ dense
    x, report = gl.cg(gl.matrix_mult(S), S @ expected, tolerance=1e-13)
    assert np.allclose(x, expected), report
    shifted = S - 1.1 * np.mean(np.linalg.eigvalsh(S)) * np.eye(4)  # with eigenvalues of both signs
    x, report = gl.minres(gl.matrix_mult(shifted), shifted @ expected, tolerance=1e-13)
    assert np.allclose(x, expected) and report["reasons"] == ["converged"] * 2, report
    assert (np.asarray(gl.zeros(A.range, 2).fill(lambda i, j: i + j)) == np.add.outer(np.arange(9), np.arange(2))).all()


def solved(**options):
    grid = gl.Grid(COMM, (COMM.size, 1))
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(30, 20)).fill(lambda i, j: np.cos(i * j) + 9.0 * (i == j)))
    return gl.cgls(A, gl.zeros(A.range, 3).fill(lambda i, j: np.sin(i + j) * (j != 1)), **options)


def test_reports():
    _, report = solved()
    again = json.loads(json.dumps(report))
    assert again == report and again["reasons"] == ["converged"] * 3
    assert report.residual_norms.dtype == np.float64 and (report.residual_norms == report["residual_norms"]).all()
    assert report.solver == "cgls" and report.history[0]["columns"] == [0, 1, 2]
    expect_error(AttributeError, lambda: report.residuals, "residual_norms")
    lines = str(report).splitlines()
    assert len(lines) == 5 and lines[1].split()[:3] == ["column", "verdict", "iterations"] and "converged" in lines[2]
    assert report._repr_html_().count("<tr>") == 4 and "3 converged" in repr(report)
    assert pickle.loads(pickle.dumps(report)) == report


def test_names_of_other_libraries():
    for given, meant in (("niter", "max_iterations"), ("maxiter", "max_iterations"), ("max_iter", "max_iterations"), ("tol", "tolerance"),
                         ("rtol", "tolerance"), ("eps", "lambda_"), ("lam", "lambda_"), ("alpha", "damp"), ("damping", "damp"), ("guess", "x0"),
                         ("verbose", "show"), ("preconditioner", "M "), ("max_iteration", "max_iterations")):
        expect_error(gl.UsageError, lambda given=given: solved(**{given: 3}), f"no option {given}", f"did you mean {meant}")
    expect_error(gl.UsageError, lambda: solved(zzz=3), "max_iterations")


def test_progress_and_log(capfd, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)  # whatever is installed
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level("INFO", "gridlops"):
        solved(progress=True)
    shown = capfd.readouterr().err
    assert ("iteration 0 of at most 100: " in shown) == (COMM.rank == 0)
    assert ("the last: 3 converged" in shown) == (COMM.rank == 0), shown
    logged = [record.message for record in caplog.records if record.name == "gridlops"]
    assert len(logged) == (COMM.rank == 0) and all("3 converged" in line for line in logged)


def test_control_c_ends_a_solve():
    """A signal to the last rank ends all: that rank with KeyboardInterrupt, the others with an Error that names it."""
    seen = []

    def callback(iteration):
        seen.append(iteration.iteration)
        if iteration.iteration == 3 and COMM.rank == COMM.size - 1:
            signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    expect_error((KeyboardInterrupt, gl.Error), lambda: solved(tolerance=0, callback=callback))
    assert len(seen) <= 5, seen
    assert solved()[1]["reasons"] == ["converged"] * 3  # ranks still understand each other


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    _, report = solved()
    assert len(gl.plot.history(report).lines) == 3 and len(gl.plot.history(report, [2]).lines) == 1
    damps = np.geomspace(1e-3, 1, 5)
    grid = gl.Grid()
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(12, 8)).fill(lambda i, j: np.exp(-0.1 * (i - j) ** 2.0)))
    X, report = gl.cgls(A, gl.zeros(A.range, 5).fill(lambda i, j: np.sin(i) + 0 * j), damp=damps, max_iterations=300)
    curve = gl.damping_curve(damps, X, report, "discrepancy", 100)
    if grid.is_member:
        assert curve["chosen"] == 4 and len(gl.plot.picks(curve).lines) == 2
