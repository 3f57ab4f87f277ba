# SPDX-License-Identifier: BSD-3-Clause
"""Ridges from Python, against NumPy, and scikit-learn where it is installed."""
import numpy as np
import pytest
from ranks import COMM, expect_error, grids

import gridlops as gl

ALPHAS = np.geomspace(0.1, 1000, 9)


def problem(dtype, m=40, n=9, r=6):
    rng = np.random.default_rng(5)
    draw = lambda *shape: rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)  # noqa: E731
    A = draw(m, n) + 2
    return A.astype(dtype), (A @ draw(n, r) + 5 + np.geomspace(0.1, 20, r) * draw(m, r)).astype(dtype)


def fit(A, B, alpha):
    mean, of_B = A.mean(0), B.mean(0)
    centred = A - mean
    X = np.linalg.solve(centred.conj().T @ centred + alpha * np.eye(A.shape[1]), centred.conj().T @ (B - of_B))
    return X, of_B - mean @ X


def scores(A, B, labels, score):
    found = np.zeros((len(ALPHAS), B.shape[1]))
    for label in np.unique(labels):
        test = labels == label
        for d, alpha in enumerate(ALPHAS):
            X, intercept = fit(A[~test], B[~test], alpha)
            found[d] += score(B[test], A[test] @ X + intercept) / len(np.unique(labels))
    return found


def banded(A, B, labels, bands, candidates):
    """The best mean R² of each target, with its candidate and alpha, by the normal equations with a damping for each feature."""
    best = [(-np.inf, None, None)] * B.shape[1]
    for number, weights in enumerate(candidates):
        for alpha in ALPHAS:
            damp = alpha / weights[bands]
            total = np.zeros(B.shape[1])
            for label in np.unique(labels):
                test = labels == label
                mean, of_B = A[~test].mean(0), B[~test].mean(0)
                X = np.linalg.solve((A[~test] - mean).T @ (A[~test] - mean) + np.diag(damp), (A[~test] - mean).T @ (B[~test] - of_B))
                error = B[test] - of_B - (A[test] - mean) @ X
                total += (1 - (error**2).sum(0) / ((B[test] - B[test].mean(0)) ** 2).sum(0)) / len(np.unique(labels))
            best = [max(one, (total[j], number, alpha), key=lambda found: found[0]) for j, one in enumerate(best)]
    return best


def test_bands_have_their_own_dampings():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((48, 15)) + 1
    bands = np.repeat([7, 2, 30], [4, 8, 3])
    # Of the bands in the order of their numbers, each target needs another one.
    B = np.column_stack([A[:, np.flatnonzero(bands == band)] @ rng.standard_normal(np.count_nonzero(bands == band)) for band in (2, 7, 30, 2)])
    B = B + 3 + 0.5 * rng.standard_normal(B.shape)
    candidates = np.array([[1, 1, 1], [3, 0.02, 0.02], [0.02, 3, 0.02], [0.02, 0.02, 3.0]])
    candidates /= candidates.sum(axis=1, keepdims=True)
    places = np.searchsorted([2, 7, 30], bands)
    expected = banded(A, B, np.repeat(np.arange(4), 12), places, candidates)
    mine = (A, B) if COMM.rank == 0 else (None, None)
    model = gl.BandedRidgeCV(bands, ALPHAS, candidates=candidates, cv=4).fit(*mine)
    assert model.best_score_ == pytest.approx([one[0] for one in expected], abs=1e-10)
    assert model.alpha_.tolist() == [one[2] for one in expected] and model.bands_.tolist() == [2, 7, 30]
    assert len({one[1] for one in expected}) > 1, "all targets choose alike"
    for j, (_, number, alpha) in enumerate(expected):
        assert np.allclose(model.weights_[:, j], candidates[number]) and np.allclose(model.dampings_[:, j], alpha / candidates[number])
        centred = A - A.mean(0)
        x = np.linalg.solve(centred.T @ centred + np.diag(alpha / candidates[number][places]), centred.T @ (B[:, j] - B[:, j].mean()))
        assert np.allclose(model.coef_[j], x, atol=1e-10) and model.intercept_[j] == pytest.approx(B[:, j].mean() - A.mean(0) @ x)
    # One target as a vector, a band that is left out, and candidates that are drawn, alike each time; more of them are no worse.
    one = gl.BandedRidgeCV(bands, ALPHAS, candidates=[[1, 0, 0]]).fit(A if COMM.rank == 0 else None, B[:, 0] if COMM.rank == 0 else None)
    assert one.coef_.shape == (15,) and (one.coef_[places != 0] == 0).all() and np.isinf(one.dampings_[1:]).all()
    few, more, same = (gl.BandedRidgeCV(bands, ALPHAS, candidates=count, random_state=3).fit(*mine) for count in (1, 12, 12))
    assert (few.best_score_ <= more.best_score_).all() and (more.coef_ == same.coef_).all() and np.allclose(more.candidates_.sum(1), 1)
    # Candidates are divided by their sums, a generator of NumPy is taken, and one band has one candidate.
    large = gl.BandedRidgeCV(bands, ALPHAS, candidates=7 * candidates, cv=4).fit(*mine)
    assert np.allclose(large.coef_, model.coef_) and np.allclose(large.candidates_, candidates)
    for random in (np.random.RandomState, np.random.default_rng):
        drawn, again = (gl.BandedRidgeCV(bands, ALPHAS, candidates=3, random_state=random(4)).fit(*mine) for _ in range(2))
        assert (drawn.coef_ == again.coef_).all() and drawn.candidates_.shape == (3, 3)
    assert gl.BandedRidgeCV(alphas=ALPHAS).fit(*mine).candidates_.tolist() == [[1]]
    plain = gl.RidgeCV(3 * ALPHAS, cv=5, alpha_per_target=True).fit(*mine)
    assert np.allclose(few.best_score_, plain.best_score_) and np.allclose(few.coef_, plain.coef_)
    for wrong, text in (({"bands": [1, 2]}, "15 features"), ({"bands": bands, "candidates": [[1, 2]]}, "3 bands"),
                        ({"bands": bands, "candidates": [[1, 2, -1]]}, "not negative"), ({"bands": bands, "candidates": [[0, 0, 0]]}, "no weight above 0"),
                        ({"candidates": 0}, "at least 1")):
        expect_error(gl.UsageError, lambda: gl.BandedRidgeCV(**wrong).fit(*mine), text)  # noqa: B023


def test_rows_have_weights():
    rng = np.random.default_rng(4)
    for dtype, (m, n) in (("float32", (40, 9)), ("float64", (40, 9)), ("float64", (20, 31))):
        A, B = problem(dtype, m, n)
        weights = rng.integers(0, 4, m)
        weights[0] = 0
        copies = np.repeat(np.arange(m), weights)
        bound = 1e4 * np.finfo(dtype).eps
        mine = (A, B) if COMM.rank == 0 else (None, None)
        labels = np.arange(m) % 2
        cv = [(np.flatnonzero(labels != k), np.flatnonzero(labels == k)) for k in range(2)]
        of_copies = [(np.flatnonzero(labels[copies] != k), np.flatnonzero(labels[copies] == k)) for k in range(2)]
        repeated = (A[copies], B[copies]) if COMM.rank == 0 else (None, None)
        for one, other in ((gl.Ridge(3.0), gl.Ridge(3.0)), (gl.Ridge(3.0, standardize=True), gl.Ridge(3.0, standardize=True)),
                           (gl.RidgeCV(ALPHAS, cv=cv, alpha_per_target=True), gl.RidgeCV(ALPHAS, cv=of_copies, alpha_per_target=True)),
                           (gl.BandedRidgeCV(np.arange(n) % 2, ALPHAS, candidates=3, random_state=0, cv=cv),
                            gl.BandedRidgeCV(np.arange(n) % 2, ALPHAS, candidates=3, random_state=0, cv=of_copies))):
            one.fit(*mine, weights if COMM.rank == 0 else None)  # the third argument, as in scikit-learn
            other.fit(*repeated)
            assert np.abs(one.coef_ - other.coef_).max() <= bound * np.abs(other.coef_).max()
            assert np.abs(one.intercept_ - other.intercept_).max() <= bound * np.abs(B).max()
    expect_error(ValueError, lambda: gl.Ridge().fit(*mine, sample_weight=[1, 2]), "expected")
    expect_error(gl.UsageError, lambda: gl.Ridge().fit(*mine, sample_weight=-np.ones(20)), "weight -1")


def test_weights_are_those_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge, RidgeCV
    for m, n in ((40, 9), (30, 45)):
        A, B = problem("float64", m, n)
        weights = np.random.default_rng(2).uniform(0.1, 5, m)
        mine = (A, B) if COMM.rank == 0 else (None, None)
        for intercept in (True, False):
            ours = gl.Ridge(2.0, fit_intercept=intercept).fit(*mine, sample_weight=weights)
            theirs = Ridge(2.0, fit_intercept=intercept).fit(A, B, sample_weight=weights)
            assert np.allclose(ours.coef_, theirs.coef_, atol=1e-9) and np.allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
            ours = gl.RidgeCV(ALPHAS, fit_intercept=intercept, alpha_per_target=True).fit(*mine, sample_weight=weights)
            theirs = RidgeCV(ALPHAS, fit_intercept=intercept, alpha_per_target=True).fit(A, B, sample_weight=weights)
            assert np.allclose(ours.alpha_, theirs.alpha_) and np.allclose(ours.coef_, theirs.coef_, atol=1e-9)
            # There scores are means over rows, here over weights.
            assert np.allclose(ours.best_score_ * weights.sum(), theirs.best_score_ * m)


def mse(B, P):
    return -np.mean(np.abs(B - P) ** 2, axis=0)


def test_a_ridge_on_every_grid():
    for dtype in ("float32", "float64", "complex64", "complex128"):
        A, B = problem(dtype)
        wide = A.astype(np.result_type(A, float)), B.astype(np.result_type(B, float))
        eps = np.finfo(dtype).eps
        labels = np.arange(len(A)) % 4
        expected = scores(*wide, labels, mse)
        for grid in grids():
            op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape), dtype).scatter(A))
            for layout in (op.range.rows, gl.Cut("uncut", [len(A)])):
                columns = gl.Cut("uncut", [6]) if layout == op.range.rows else gl.Cut.balanced("all", 6, grid.native)
                data = gl.Matrix(grid, gl.Layout(layout, columns), dtype).scatter(B)
                X, report = gl.ridge(op, data, ALPHAS, folds=labels, score="negative-mse", batch=4)
                whole = X.gather()
                if not grid.is_member:
                    assert len(report["alphas"]) == 0
                    continue
                assert np.abs(report["scores"] - expected).max() <= 1e4 * eps * np.abs(expected).max()
                assert (report["alphas"] == ALPHAS[report["scores"].argmax(0)]).all()
                assert report["intercepts"].dtype == A.dtype and set(report["reasons"]) <= {"converged", "stagnated"}
                for j, alpha in enumerate(report["alphas"]):
                    x, intercept = fit(wide[0], wide[1][:, j:j + 1], alpha)
                    assert abs(report["intercepts"][j] - intercept[0]) <= 1e3 * eps * (1 + np.abs(x).sum() * np.abs(A).max())
                    assert whole is None or np.abs(whole[:, j] - x[:, 0]).max() <= 1e3 * eps * np.abs(x).max()
                none, same = gl.ridge(op, data, ALPHAS, folds=labels, score="negative-mse", coefficients=False)
                assert none is None and (same["alphas"] == report["alphas"]).all() and same["reasons"] == []


def test_a_ridge_of_any_storage():
    A, B = problem("float64")
    for grid in grids():
        matrix = gl.Matrix(grid, grid.matrix_layout(*A.shape)).scatter(A)
        op = gl.matrix_mult(matrix)
        data = gl.zeros(op.range, 6).scatter(B)
        X, report = gl.ridge(op, data, ALPHAS)
        X = X.gather()
        for other in (gl.stream_matrix(matrix, memory=1000), gl.compress(matrix, 1e-13, tile=8), gl.matrix_mult(matrix, storage="packed")):
            again, same = gl.ridge(other, data, ALPHAS)
            again = again.gather()
            assert np.array_equal(same["alphas"], report["alphas"]) and np.allclose(same["scores"], report["scores"], atol=1e-10)
            assert again is None or np.allclose(again, X, atol=1e-10)


def test_what_a_ridge_refuses():
    for grid in grids():
        A, B = problem("float64")
        op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape)).scatter(A))
        data = gl.zeros(op.range, 6).scatter(B)
        expect_error(gl.UsageError, lambda: gl.ridge(op, data, [1, -1]), "damping -1")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.ridge(op, data, [1, 2], folds="lou"), "no validation 'lou'", "leave-one-out")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.ridge(op, data, [1, 2], folds=[0.5] * 40), "whole numbers")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.ridge(2 * op, data, [1, 2]), "no rows to read")  # noqa: B023


def test_one_row_is_left_out_of_few():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        A = rng.standard_normal((60, 61)).astype(dtype)
        B = (A @ rng.standard_normal((61, 2)) + 5 * rng.standard_normal((60, 2))).astype(dtype)
        # Without the constant vector, of which a basis is the complement, K has no eigenvalue near 0.
        basis = np.linalg.qr(np.column_stack([np.ones(60), rng.standard_normal((60, 59))]))[0][:, 1:]
        K = basis.T @ A.astype(float) @ A.astype(float).T @ basis
        alphas = np.array([1e-8, 1e-5, 1e-2, 1.0])
        for grid in grids():
            op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(60, 61), dtype).scatter(A))
            data = gl.zeros(op.range, 2, dtype).scatter(B)
            for how in ("leave-one-out", "gcv"):
                _, report = gl.ridge(op, data, alphas, folds=how, score="negative-mse")
                if not grid.is_member:
                    continue
                for d, alpha in enumerate(alphas):
                    left = basis @ np.linalg.inv(K + alpha * np.eye(59)) @ basis.T
                    share = np.diag(left)[:, None] if how == "leave-one-out" else np.trace(left) / 60
                    expected = -np.mean(((left @ B.astype(float)) / share) ** 2, axis=0)
                    assert np.allclose(report["scores"][d], expected, rtol=1e-8 if dtype == "float64" else 1e-5)


def test_ranks_agree_before_a_ridge_takes_memory():
    A, B = problem("float64")
    grid = gl.Grid(shape=(COMM.size, 1))
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape)).scatter(A))
    data = gl.zeros(op.range, 6).scatter(B)
    if COMM.size > 1:
        expect_error(gl.UsageError, lambda: gl.ridge(op, data, [1, 2], coefficients=COMM.rank == 0), "disagree", "coefficients")
        expect_error(gl.UsageError, lambda: gl.ridge(op, data, [1, 2], folds=[0.5] * 40 if COMM.rank == 0 else 3), "whole numbers")


def test_estimators_take_the_arrays_of_rank_0():
    for dtype in ("float32", "float64"):
        A, B = problem(dtype)
        mine = (A, B) if COMM.rank == 0 else (None, None)
        model = gl.RidgeCV(ALPHAS, cv=4, alpha_per_target=True, scoring="neg_mean_squared_error").fit(*mine)
        labels = np.repeat(np.arange(4), 10)
        chosen = ALPHAS[scores(A.astype(float), B.astype(float), labels, mse).argmax(0)]
        assert (model.alpha_ == chosen).all() and model.scores_.shape == (9, 6)
        assert model.coef_.shape == (6, 9) and model.coef_.dtype == A.dtype and model.n_features_in_ == 9
        assert model.predict(A).dtype == A.dtype
        bound = 1e4 * np.finfo(dtype).eps
        for j, alpha in enumerate(chosen):
            x, intercept = fit(A.astype(float), B[:, j:j + 1].astype(float), alpha)
            assert np.abs(model.predict(A)[:, j] - (A @ x + intercept)[:, 0]).max() <= bound * np.abs(B).max()
        together = gl.RidgeCV(ALPHAS, cv=np.int64(4)).fit(*mine)
        assert isinstance(together.alpha_, float) and together.best_score_ == pytest.approx(together.scores_.mean(1).max())
        plain = gl.Ridge(chosen).fit(*mine)
        assert np.abs(plain.coef_ - model.coef_).max() <= bound * np.abs(model.coef_).max()
        one = gl.Ridge(3.0).fit(A if COMM.rank == 0 else None, B[:, 2] if COMM.rank == 0 else None)
        assert one.coef_.shape == (9,) and one.predict(A).shape == (40,)
        assert one.score(A, B[:, 2]) == pytest.approx(1 - np.sum((B[:, 2] - one.predict(A)) ** 2) / np.sum((B[:, 2] - B[:, 2].mean()) ** 2), abs=1e-5)
    # What is wrong on rank 0 is raised on all.
    expect_error(ValueError, lambda: gl.Ridge().fit(A * np.nan if COMM.rank == 0 else None, B), "contains NaN")
    expect_error(gl.UsageError, lambda: gl.RidgeCV(scoring="accuracy").fit(A, B), "no scoring 'accuracy'")
    overlapping = [(np.arange(10, 40), np.arange(10)), (np.arange(5, 40), np.arange(5))]
    expect_error(gl.UsageError, lambda: gl.RidgeCV(cv=overlapping).fit(A, B), "two test sets")


class Frame:
    """What estimators see of a data frame."""

    def __init__(self, array, columns):
        self.array, self.columns = array, columns

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


def test_names_of_features_are_those_of_fit():
    A, B = problem(np.float64)
    names = [f"f{i}" for i in range(9)]
    model = gl.RidgeCV(ALPHAS, cv=4).fit(Frame(A, names), B)
    assert list(model.feature_names_in_) == names
    expected = A @ model.coef_.T + model.intercept_
    assert np.array_equal(model.predict(Frame(A, names)), expected)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(Frame(A[:, ::-1], names[::-1]))
    with pytest.raises(ValueError, match="unseen at fit time:\n- g\n.*now missing:\n- f8\n"):
        model.score(Frame(A, [*names[:8], "g"]), B)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(A), expected)
    model.fit(A, B)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict(Frame(A, names))


def test_what_estimators_say_of_wrong_words():
    A, B = problem(np.float64)
    one = np.where(np.arange(6) == 3, np.nan, B)
    one[:7, 3] = B[:7, 3]
    for call, error, text in (
            (lambda: gl.RidgeCV(ALPHAS, cv=4).fit(A, one), ValueError, "Input y contains NaN. The first is at row 7, column 3 (from 0); 1 of 6 columns"),
            (lambda: gl.RidgeCV(ALPHAS, cv=4).fit(A, np.where(B == B[2, 1], np.inf, B)), ValueError, "infinity or a value too large for dtype('float64'). The first is at row 2, column 1"),
            (lambda: gl.RidgeCV(ALPHAS, cv=np.arange(40) % 4).fit(A, B), gl.UsageError, "PredefinedSplit(labels)"),
            (lambda: gl.RidgeCV(ALPHAS, cv=5.0).fit(A, B), gl.UsageError, "cv=5.0: take None"),
            (lambda: gl.RidgeCV(ALPHAS, cv="folds").fit(A, B), gl.UsageError, "cv='folds': take None"),
            (lambda: gl.RidgeCV(ALPHAS, cv=41).fit(A, B), ValueError, "cv=41 folds"),
            (lambda: gl.RidgeCV(np.ones((2, 3)), cv=4).fit(A, B), gl.UsageError, "alphas are a number or a vector"),
            (lambda: gl.BandedRidgeCV([4, 5], ALPHAS).fit(A, B), gl.UsageError, "np.repeat([0, 1], [n0, n1])"),
            (lambda: gl.ridge(A, B, ALPHAS), gl.UsageError, "gridlops.RidgeCV takes arrays")):
        expect_error(error, call, text)
    expected = gl.RidgeCV(ALPHAS).fit(A, B)
    for cv in ("loo", "leave-one-out"):
        assert np.array_equal(gl.RidgeCV(ALPHAS, cv=cv).fit(A, B).coef_, expected.coef_)
    grid = next(iter(grids()))
    op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(A if grid.is_member and grid.rank == 0 else None))
    data = gl.zeros(op.range, 6, A.dtype).scatter(B if grid.is_member and grid.rank == 0 else None)
    for labels in (np.array(["a", "b"] * 20), ["a", "b"] * 20):
        expect_error(gl.UsageError, lambda labels=labels: gl.ridge(op, data, ALPHAS, folds=labels), "return_inverse=True)[1] numbers labels")
    scores = [gl.ridge(op, data, ALPHAS, folds=folds)[1]["scores"] for folds in ("loo", "leave-one-out")]
    assert np.array_equal(*scores)


def test_estimators_beside_scikit_learn():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    assert sklearn
    A, B = problem("float64")
    groups = np.arange(40) // 3 % 5
    for cv in (5, KFold(3, shuffle=True, random_state=1), GroupKFold(4)):
        model = gl.RidgeCV(ALPHAS, cv=cv, alpha_per_target=True, standardize=True).fit(A, B, groups=groups)
        for j in range(B.shape[1]):
            search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": ALPHAS}, cv=cv).fit(A, B[:, j], groups=groups)
            assert model.alpha_[j] == search.best_params_["ridge__alpha"]
            assert model.best_score_[j] == pytest.approx(search.best_score_, abs=1e-10)
            assert np.allclose(model.predict(A)[:, j], search.predict(A), atol=1e-8)
    for per_target in (False, True):
        ours, theirs = (kind(ALPHAS, alpha_per_target=per_target).fit(A, B) for kind in (gl.RidgeCV, RidgeCV))
        assert np.array_equal(ours.alpha_, theirs.alpha_) and np.allclose(ours.coef_, theirs.coef_)
        assert np.allclose(ours.best_score_, theirs.best_score_) and np.allclose(ours.intercept_, theirs.intercept_)


def test_scikit_learn_accepts_the_estimators():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if COMM.size > 1:
        pytest.skip("its checks draw data of their own, which ranks must not")
    for estimator in (gl.Ridge(), gl.RidgeCV(), gl.RidgeCV(cv=3), gl.BandedRidgeCV(candidates=3)):
        checks.check_estimator(estimator)
