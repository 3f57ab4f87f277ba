# SPDX-License-Identifier: BSD-3-Clause
"""Ridges: scores against predictions that each training set's own least-squares problem gives, choices against scores, and
coefficients against the gradient in long double."""
import numpy as np

import problems
from problems import TYPES
from properties import norms, require, wide
from solve_area import answer

EPSILON = np.finfo(float).eps


def arrays_of(case):
    """A and B in their type, and the weights of rows."""
    rows, cols, name = case["rows"], case["cols"], case["type"]
    A = problems.matrix(case["matrix"], rows, cols, name, False)
    A = A + case["offset"] * np.linspace(0, 1, cols)
    rng = np.random.default_rng(case["seed"])
    columns = []
    for kind in case["rhs"]:
        noise = problems.random(rng.integers(1 << 30), (rows,), name)
        columns.append({"explained": A @ problems.random(rng.integers(1 << 30), (cols,), name) + 0.3 * noise, "noise": noise + 5,
                        "constant": np.full(rows, 2.5), "zero": np.zeros(rows)}[kind])
    B = np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
    weights = None
    if case["weights"]:
        weights = {"whole": rng.integers(0, 4, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}[case["weights"]]
    return (np.asfortranarray(each.astype(TYPES[name])) for each in (A, B)), weights


def labels_of(case):
    """The fold of each row; folds may have one row, and rows may be in none."""
    rng = np.random.default_rng(case["seed"] + 1)
    kind, rows, count = case["folds"], case["rows"], case["count"]
    if kind == "contiguous":
        return np.repeat(np.arange(count), [len(part) for part in np.array_split(np.arange(rows), count)])
    labels = rng.integers(0, count, rows) if kind == "uneven" else rng.integers(-1, count, rows)
    return 7 * labels if kind == "uneven" else labels


def is_refused(case, labels, weights):
    """What the page says of folds and weights that leave nothing to predict, or to predict from."""
    rows = case["rows"]
    w = np.ones(rows) if weights is None else weights
    if case["folds"] in ("leave-one-out", "gcv"):
        return (case["one_standard_error"] or rows < 2 or (w > 0).sum() < 2 or (case["folds"] == "gcv" and ((w == 0).any() or case["score"] == "correlation")))
    predicted = set(labels[labels >= 0])
    least = 1 if case["score"] == "negative-mse" else 2
    return (not predicted or len(set(labels)) < 2
            or any((labels == label).sum() < least or not least <= (w[labels == label] > 0).sum() < (w > 0).sum() for label in predicted))


class Training:
    """The ridge of some rows: its means, deviations and predictions."""

    def __init__(self, case, A, B, w, deviations=None):
        self.w, self.B = w, B
        total = w.sum()
        centred = case["intercept"]
        self.mean, self.of_B = (w @ A / total, w @ B / total) if centred else (np.zeros(A.shape[1]), np.zeros(B.shape[1]))
        about = A - w @ A / total
        self.deviations = deviations if deviations is not None else np.ones(A.shape[1])
        if case["standardize"] and deviations is None:
            # Rounding to the type makes weighted rows differ, which are equal.
            found = np.sqrt(w @ abs(about) ** 2 / total)
            least = 16 * (np.finfo(TYPES[case["type"]]).eps if case["weights"] else EPSILON) * abs(A).max(axis=0, initial=0)
            self.deviations = np.where(found <= least, 1, found)
        root = np.sqrt(w)[:, None]
        self.A = (A - self.mean) / self.deviations * root
        self.b = (B - self.of_B) * root
        in_double = self.A.astype(complex if np.iscomplexobj(A) else float)
        values = np.linalg.svd(in_double, compute_uv=False)
        self.largest = values.max(initial=0) ** 2
        # What centring and sums over rows hide of small eigenvalues. Differences, weighted rows and the residuals that leave-one-out
        # divides by what is left are rounded to the type.
        scale = max(self.largest, float((abs(A / self.deviations * root) ** 2).sum()))
        is_rounded = centred or case["weights"] is not None or case["folds"] == "leave-one-out"
        self.hidden = 100 * max(A.shape) * (np.finfo(TYPES[case["type"]]).eps if is_rounded else EPSILON) * scale
        self.smallest = values.min() ** 2 if A.shape[0] >= A.shape[1] and values.min() ** 2 > self.hidden else 0.0

    def uncertainty(self, alpha):
        """By how much, relative to data, rounding changes predictions."""
        kept = self.smallest + alpha
        return self.hidden / kept if kept > 0 else (0.0 if self.largest == 0 else np.inf)

    def predict(self, A, alpha):
        """Predictions, from a problem of least squares with rows √α."""
        n = self.A.shape[1]
        stacked = np.vstack([self.A, np.sqrt(alpha) * np.eye(n)])
        x = np.linalg.lstsq(stacked, np.vstack([self.b, np.zeros((n, self.b.shape[1]))]), rcond=None)[0] if n else np.zeros((0, self.b.shape[1]))
        return (A - self.mean) / self.deviations @ x + self.of_B


def scores_of(score, y, p, w, sizes, relative):
    """The score of each column, and by how much it may differ; NaN where rounding decides."""
    error, total = np.sqrt(w @ abs(y - p) ** 2), w.sum()
    if not np.isfinite(relative):
        return np.full(error.shape, np.nan), np.full(error.shape, np.inf)
    change = relative * (np.sqrt(w @ abs(y) ** 2) + np.sqrt(w @ abs(p) ** 2) + sizes * np.sqrt(total))
    spread = np.sqrt(w @ abs(y - w @ y / total) ** 2)
    by_squares = 2 * error * change + change**2
    clear = spread > 1e-6 * np.sqrt(w @ abs(y) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        if score == "negative-mse":
            return -(error**2) / total, by_squares / total
        if score == "r2":
            return np.where(clear, 1 - error**2 / spread**2, np.nan), by_squares / spread**2
        of_p = p - w @ p / total
        spread_p = np.sqrt(w @ abs(of_p) ** 2)
        r = (w @ ((y - w @ y / total).conj() * of_p).real) / (spread * spread_p)
        return np.where(clear & (spread_p > 100 * change), r, np.nan), 4 * change / np.minimum(spread, spread_p)


def expected_scores(case, A, B, labels, weights):
    """Scores of every damping and column, and by how much they may differ."""
    w = np.ones(len(A)) if weights is None else weights
    single = 4e-5 if case["type"] in ("f32", "c64") else 1e-11
    scores, bounds = [], []
    sizes = abs(B).max(axis=0, initial=0)
    for alpha in case["alphas"]:
        of_folds = []
        if case["folds"] == "leave-one-out":
            deviations = Training(case, A, B, w).deviations
            p, relative = np.zeros_like(B), single
            for i in range(len(A)):
                rest = np.arange(len(A)) != i
                if w[rest].sum() == 0:
                    return None
                training = Training(case, A[rest], B[rest], w[rest], deviations)
                p[i] = training.predict(A[i:i + 1], alpha)[0]
                # The prediction is a residual over what a row leaves to others.
                relative = max(relative, 10 * training.uncertainty(alpha) * max(1, Training(case, A, B, w).largest / (training.smallest + alpha) if training.smallest + alpha else np.inf))
            of_folds.append(scores_of(case["score"], B, p, w, sizes, relative))
        elif case["folds"] == "gcv":
            training = Training(case, A, B, w)
            squares = np.linalg.svd(training.A, compute_uv=False) ** 2
            rest = 1 - ((squares / (squares + alpha)).sum() if alpha else (squares > training.hidden).sum()) / len(A) - case["intercept"] / len(A)
            p = B - (B - training.predict(A, alpha)) / rest if rest > 1e-6 else B
            relative = max(single, 10 * training.uncertainty(alpha)) / rest if rest > 1e-6 else np.inf
            of_folds.append(scores_of(case["score"], B, p, w, sizes, relative))
        else:
            for label in sorted(set(labels[labels >= 0])):
                test = labels == label
                training = Training(case, A[~test], B[~test], w[~test])
                of_folds.append(scores_of(case["score"], B[test], training.predict(A[test], alpha), w[test], sizes, max(single, 10 * training.uncertainty(alpha))))
        scores.append(np.mean([each[0] for each in of_folds], axis=0))
        bounds.append(np.max([each[1] for each in of_folds], axis=0))
    return np.array(scores), np.array(bounds)


def check_choice(case, report, groups):
    """A damping is the best of the scores that are told."""
    scores, alphas = report["scores"], np.array(case["alphas"])
    for group in set(groups):
        of_group = np.flatnonzero(groups == group)
        with np.errstate(invalid="ignore"):
            means = scores[:, of_group].mean(axis=1)
        chosen = {int(report["chosen"][j]) for j in of_group}
        require(len(chosen) == 1, "columns of a group share a damping", chosen)
        k = chosen.pop()
        require((report["alphas"][of_group] == alphas[k]).all(), "the damping is the chosen one", k, report["alphas"])
        if np.isnan(means).all():
            continue
        best = np.nanmax(means)
        slack = 1e-9 * (1 + abs(best))
        if case["one_standard_error"]:
            require(alphas[k] >= alphas[means >= best - slack].min(), "one standard error takes no smaller damping", k)
        else:
            require(means[k] >= best - slack, "the best score is chosen", float(means[k]), float(best))


def check_coefficients(case, A, B, w, X, report):
    """Norms of the verdicts are those of the definition, and what is called converged meets its tolerance."""
    epsilon = np.finfo(X.dtype).eps
    training = Training(case, wide(A), wide(B), w.astype(np.longdouble))
    x = wide(X) * training.deviations[:, None]
    alphas = report["alphas"].astype(np.longdouble)
    r = training.b - training.A @ x
    gradient = norms(training.A.conj().T @ r - alphas * x)
    size = np.sqrt((abs(training.A) ** 2).sum()) + np.sqrt((abs(wide(A) / training.deviations * np.sqrt(w)[:, None]) ** 2).sum())
    of_b = norms(training.b) + norms(wide(B) * np.sqrt(w)[:, None])
    c = 16 + 4 * np.sqrt(sum(A.shape))
    rounding = c * epsilon * (size * (of_b + size * norms(x)) + alphas * norms(x))
    reference = norms(training.A.conj().T @ training.b)
    for j, reason in enumerate(report["reasons"]):
        found = report["normal_residual_norms"][j]
        require(abs(found - gradient[j]) <= rounding[j] + 1e-6 * gradient[j], "the gradient of a ridge", "column", j, found, float(gradient[j]), float(rounding[j]))
        require(abs(report["residual_norms"][j] - norms(r)[j]) <= c * epsilon * (of_b[j] + size * norms(x)[j]) + 1e-6 * norms(r)[j], "the residual of a ridge", "column", j)
        tolerance = 1e-4 if X.dtype.char in "fF" else 1e-8
        require(reason != "converged" or gradient[j] <= 1.01 * tolerance * reference[j] + rounding[j], "converged, ridge", "column", j, float(gradient[j]), float(reference[j]))
        intercept = training.of_B[j] - training.mean @ wide(X)[:, j]
        require(abs(report["intercepts"][j] - intercept) <= c * epsilon * (abs(training.of_B[j]) + abs(training.mean) @ abs(wide(X)[:, j]) + abs(wide(B)[:, j]).max()),
                "the intercept", "column", j, report["intercepts"][j])


def check(case, workers):
    (A, B), weights = arrays_of(case)
    by_rows = case["folds"] in ("leave-one-out", "gcv")
    labels = None if by_rows else labels_of(case)
    groups = np.arange(B.shape[1]) % case["groups"] if case["groups"] else np.arange(B.shape[1])
    X, report = answer(workers, {"how": case["how"], "solver": "ridge", "A": A, "B": B, "alphas": case["alphas"], "options": {
        "folds": case["folds"] if by_rows else labels.tolist(), "score": case["score"], "groups": groups.tolist() if case["groups"] else None,
        "weights": weights, "one_standard_error": case["one_standard_error"], "intercept": case["intercept"], "standardize": case["standardize"],
        "batch": case["batch"]}}, "ridge")
    refused = is_refused(case, labels, weights)
    require((X is None) == refused, "refused, ridge", "refused" if X is None else "not refused", report if X is None else "")
    if X is None:
        return ["refused"]
    require(X.shape == (A.shape[1], B.shape[1]) and report["scores"].shape == (len(case["alphas"]), B.shape[1]), "shapes of a ridge", X.shape, report["scores"].shape)
    require(np.isfinite(X).all(), "coefficients are finite", report["reasons"])
    wide_w = np.ones(len(A)) if weights is None else weights
    check_choice(case, report, groups)
    check_coefficients(case, A, B, wide_w, X, report)
    compared = 0
    in_double = [each.astype(complex if np.iscomplexobj(each) else float) for each in (A, B)]
    expected = None if case["folds"] == "gcv" and weights is not None else expected_scores(case, *in_double, labels, weights)
    if expected is not None and B.shape[1]:
        scores, bounds = expected
        clear = np.isfinite(scores) & (bounds < 0.1 * (1 + abs(scores))) & np.isfinite(report["scores"])
        compared = int(clear.sum())
        require((abs(scores - report["scores"])[clear] <= bounds[clear] + 1e-12).all(), "scores of a ridge", "expected", scores.tolist(), "told", report["scores"].tolist(), "within", bounds.tolist())
    return report["reasons"] + ["score as expected"] * compared
