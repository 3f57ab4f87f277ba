# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops ridge` against NumPy's normal equations, and against scikit-learn where it is installed. ridge_test.py LAUNCH PROGRAM"""
import fcntl
import json
import os
import struct

import numpy as np

import program

ALPHAS = np.geomspace(0.1, 1e4, 11)


def problem(dtype, m, n, r):
    """Features that have a mean, and targets that depend on them more or less."""
    rng = np.random.default_rng(m)
    A = program.random_matrix(rng, (m, n), dtype) + np.linspace(0, 4, n)
    B = A @ program.random_matrix(rng, (n, r), dtype) + 10 + np.geomspace(0.1, 30, r) * program.random_matrix(rng, (m, r), dtype)
    return A.astype(A.dtype.type), B


def fit(A, B, alpha, intercept=True, standardize=False):
    """Coefficients and intercepts by the normal equations."""
    mean, of_B = (A.mean(0), B.mean(0)) if intercept else (np.zeros(A.shape[1]), np.zeros(B.shape[1]))
    scale = A.std(0) if standardize else np.ones(A.shape[1])
    centred = (A - mean) / scale
    X = np.linalg.solve(centred.conj().T @ centred + alpha * np.eye(A.shape[1]), centred.conj().T @ (B - of_B)) / scale[:, None]
    return X, of_B - mean @ X


def scores(A, B, labels, alphas, **how):
    """Mean R² of each damping and target."""
    found = np.zeros((len(alphas), B.shape[1]))
    for label in np.unique(labels):
        test = labels == label
        for d, alpha in enumerate(alphas):
            X, intercept = fit(A[~test], B[~test], alpha, **how)
            error = np.square(np.abs(B[test] - A[test] @ X - intercept)).sum(0)
            found[d] += (1 - error / np.square(np.abs(B[test] - B[test].mean(0))).sum(0)) / len(np.unique(labels))
    return found


def contiguous(rows, folds):
    return np.repeat(np.arange(folds), [len(part) for part in np.array_split(np.arange(rows), folds)])


def ridge(suite, *words, ranks=None, status=0):
    for name in ("X.npy", "beta.npy", "chosen.npy", "scores.npy"):
        (suite.folder / name).unlink(missing_ok=True)
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--intercepts", "beta.npy", "--chosen", "chosen.npy",
                    "--scores", "scores.npy", "--report", "R.json", *words, ranks=ranks)
    if not suite.succeeded(run, status) or status:
        return run, None, None, None, None
    report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"), parse_constant=program.not_json)
    wrong = [] if program.jsonschema is None else [error.message for error in program.schema().iter_errors(report)]
    suite.check(not wrong and (report["command"], report["ranks"], report["grid"]) == ("ridge", ranks or 1, [ranks or 1, 1]), wrong, report)
    return run, *(np.load(suite.folder / name) for name in ("X.npy", "beta.npy", "chosen.npy", "scores.npy"))


def check_values(suite):
    for dtype, m, n, r in (("f64", 60, 13, 7), ("f32", 41, 20, 5), ("c128", 30, 12, 3), ("f64", 24, 40, 4)):
        A, B = problem(dtype, m, n, r)
        np.save(suite.folder / "A.npy", A)
        np.save(suite.folder / "B.npy", np.asfortranarray(B))
        labels = np.arange(m) % 3 * 2.0
        np.save(suite.folder / "labels.npy", labels)
        eps = program.epsilon(dtype)
        wide = A.astype(np.result_type(A, float)), B.astype(np.result_type(B, float))
        for ranks, words, folds, how in ((None, [], contiguous(m, 5), {}), (2, ["--no-intercept", "--folds", "labels.npy"], labels, {"intercept": False}),
                                         (4, ["--standardize", "--folds", 4, "--batch", 2], contiguous(m, 4), {"standardize": True})):
            _, X, beta, chosen, found = ridge(suite, "--alphas", "0.1:1e4:11", *words, ranks=ranks)
            if X is None:
                continue
            expected = scores(*wide, folds, ALPHAS, **how)
            suite.close(found, expected, 1e4 * eps * np.abs(expected).max(), "scores", dtype, m, n, words)
            suite.check((chosen == ALPHAS[found.argmax(0)]).all() or np.allclose(chosen, ALPHAS[found.argmax(0)], rtol=1e-14), "chosen", chosen, found)
            for j, alpha in enumerate(chosen):
                x, intercept = fit(wide[0], wide[1][:, j:j + 1], alpha, **how)
                suite.close(X[:, j], x[:, 0], 1e4 * eps * np.abs(x).max(), "coefficients", dtype, m, n, words, j)
                suite.close(beta[j:j + 1], intercept, 1e4 * eps * (1 + np.abs(intercept).max() + np.abs(A).max() * np.abs(x).sum()), "intercept", j)


def check_weights(suite):
    """A weight of 2 is two rows in the same fold, one of 0 none; a restart compares weights."""
    A, B = problem("f64", 60, 13, 7)
    weights = np.arange(60) % 4
    labels = np.arange(60) // 4 % 3
    copies = np.repeat(np.arange(60), weights)
    for name, rows, of_rows in (("copied", copies, None), ("weighted", np.arange(60), weights)):
        np.save(suite.folder / "A.npy", A[rows])
        np.save(suite.folder / "B.npy", B[rows])
        np.save(suite.folder / "labels.npy", labels[rows].astype(float))
        np.save(suite.folder / "weights.npy", weights.astype(np.float32))
        more = [] if of_rows is None else ["--row-weights", "weights.npy", "--checkpoint", "with_weights"]
        _, *found = ridge(suite, "--alphas", "0.1:1e4:11", "--folds", "labels.npy", *more, ranks=2)
        if name == "copied":
            expected = found
        elif found[0] is not None and expected[0] is not None:
            for one, other in zip(found, expected, strict=True):
                suite.close(one, other, 1e-9 * (1 + np.abs(other).max()), "with weights")
    np.save(suite.folder / "weights.npy", np.ones(60))
    run, *_ = ridge(suite, "--alphas", "0.1:1e4:11", "--folds", "labels.npy", "--row-weights", "weights.npy", "--restart", "with_weights", status=65)
    suite.check("weights" in run.errors, run.errors)


def check_scikit_learn(suite):
    """The choices, coefficients and scores are those of scikit-learn for each target alone, and those of its LOO for all."""
    try:
        from sklearn.linear_model import Ridge, RidgeCV
        from sklearn.model_selection import GridSearchCV
    except ImportError:
        return
    A, B = problem("f64", 60, 13, 7)
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    _, X, beta, chosen, found = ridge(suite, "--alphas", "0.1:1e4:11")
    for j in range(B.shape[1]):
        search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=5).fit(A, B[:, j])
        suite.close(found[:, j], search.cv_results_["mean_test_score"], 1e-10, "scores of GridSearchCV", j)
        suite.close(chosen[j], search.best_params_["alpha"], 1e-9, "the choice of GridSearchCV", j)
        suite.close(X[:, j], search.best_estimator_.coef_, 1e-9, "its coefficients", j)
        suite.close(beta[j], search.best_estimator_.intercept_, 1e-8, "its intercept", j)
    for words, per_target in (([], True), (["--choose-for", "all"], False)):
        model = RidgeCV(ALPHAS, alpha_per_target=per_target).fit(A, B)
        _, X, beta, chosen, _ = ridge(suite, "--alphas", "0.1:1e4:11", "--folds", "loo", "--score", "negative-mse", *words)
        suite.close(chosen, np.broadcast_to(model.alpha_, chosen.shape), 1e-9, "the choice of RidgeCV", words)
        suite.close(X.T, model.coef_, 1e-9, "its coefficients", words)


def check_words(suite):
    """Dampings are D or D²; a choice at an end is told; a plan takes no file; and what is wrong is said."""
    A, B = problem("f64", 60, 13, 7)
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    run, X, *_ = ridge(suite, "--dampings", "3:30:2")
    suite.check(any("chose an end of the range" in line for line in run.warning_lines), run.errors)
    _, of_alphas, *_ = ridge(suite, "--alphas", "9:900:2")
    suite.close(X, of_alphas, 1e-12, "--dampings are the roots of --alphas")
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--alphas", 7, "--output", "one.npy")
    if suite.succeeded(run):
        suite.close(np.load(suite.folder / "one.npy"), fit(A, B, 7)[0], 1e-10, "one damping")
    # One damping is scored if folds are asked for.
    *_, found = ridge(suite, "--alphas", 7, "--folds", 4)
    suite.close(found, scores(A, B, contiguous(60, 4), [7.0]), 1e-10, "the scores of one damping")
    # Rows with a label below 0 are always in training.
    labels = contiguous(60, 4) - 1.0
    np.save(suite.folder / "labels.npy", labels)
    *_, found = ridge(suite, "--alphas", 7, "--folds", "labels.npy")
    expected = np.zeros((1, 7))
    for label in (0, 1, 2):
        X, intercept = fit(A[labels != label], B[labels != label], 7)
        test = labels == label
        expected += (1 - np.square(B[test] - A[test] @ X - intercept).sum(0) / np.square(B[test] - B[test].mean(0)).sum(0)) / 3
    suite.close(found, expected, 1e-10, "the scores where some rows always train")
    # The chosen dampings are a file of --alphas.
    _, X, *_ = ridge(suite, "--alphas", "0.1:1e4:11")
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--alphas", "chosen.npy", "--folds", "none", "--output", "again.npy", ranks=2)
    if suite.succeeded(run):
        suite.close(np.load(suite.folder / "again.npy"), X, 1e-10, "a damping for each target")
    check_words_of_values(suite, A, B)
    check_edges(suite, A)
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--alphas", "1:10:3", "--output", "planned.npy", "--dry-run", ranks=2)
    suite.check(suite.succeeded(run) and "in all" in run.output and not (suite.folder / "planned.npy").exists(), run.output)
    for words, status, text in ((["--alphas", "1:2:3", "--dampings", "3"], 2, "--dampings D, or --alphas"), ([], 2, "--dampings D, or --alphas"),
                                (["--alphas", "1:2:3", "--folds", "1"], 2, "1"), (["--alphas", "1:2:3", "--folds", "A.npy"], 65, "vector"),
                                (["--alphas", "1:2:3", "--folds", "60"], 2, "the fold of label 0 has one row"),
                                (["--alphas", "1:2:3", "--folds", "none"], 2, "--scores are those of folds"), (["--alphas", "3"], 2, "--scores are those of folds")):
        run, *_ = ridge(suite, *words, status=status)
        suite.check(text in run.errors, words, run.errors)
    check_groups(suite)
    B[3, 2] = np.nan
    np.save(suite.folder / "B.npy", B)
    run, *_ = ridge(suite, "--alphas", "1:2:3", ranks=2, status=65)
    suite.check("row 3, column 2" in run.errors, run.errors)


def check_groups(suite):
    """Each of the 7 targets has one number, and there is a choice to share."""
    for count in (1, 6, 8, 700):
        np.save(suite.folder / "groups.npy", np.zeros(count))
        for more in ([], ["--dry-run"]):
            run, *_ = ridge(suite, "--alphas", "1:10:3", "--choose-for", "groups.npy", *more, ranks=2, status=65)
            suite.check(f"groups.npy has {count} numbers of groups, but B.npy has 7 columns" in run.errors, count, more, run.errors)
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--alphas", 3, "--folds", "none", "--choose-for", "all", "--output", "X.npy")
    suite.check(run.status == 2 and "--choose-for all" in run.errors, run.status, run.errors)


def check_words_of_values(suite, A, B):
    """What a value should be is said with its option; labels are any numbers."""
    np.save(suite.folder / "transposed.npy", A.T)
    np.save(suite.folder / "labels.npy", np.where(np.arange(60) == 4, np.nan, np.arange(60) % 3 - 1))
    np.save(suite.folder / "some.npy", np.geomspace(1, 100, B.shape[1]))
    files = ["--matrix", "A.npy", "--rhs", "B.npy"]
    for words, status, text in (([*files, "--alphas", "1:10:3", "--folds", 1], 2, "--folds 1: there must be at least 2, and A has 60 rows"),
                                ([*files, "--alphas", "1:10:3", "--folds", 61], 2, "--folds 61: there must be at least 2, and A has 60 rows"),
                                ([*files, "--alphas", "1:10:1"], 2, "--alphas 1:10:1: '1' is no whole number from 2 on"),
                                ([*files, "--dampings=-1:5:3"], 2, "--dampings -1:5:3: '-1' is no finite number"),
                                ([*files, "--alphas", "1:10:3", "--folds", "labels.npy"], 65, "holds nan at 4, but a label is a finite number\n"),
                                (["--matrix", "transposed.npy", *files[2:], "--alphas", "1:10:3"], 65, "did you transpose A?")):
        run = suite.run("ridge", *words, "--chosen", "c.npy", ranks=2)
        suite.check(run.status == status and text in run.errors, words, run.status, run.errors)
    for more, warns in (([], True), (["--folds", "none"], False), (["--folds", 5], False)):
        run = suite.run("ridge", *files, "--alphas", "some.npy", "--output", "X.npy", *more)
        suite.check(suite.succeeded(run) and any("with --folds none each gets its own" in line for line in run.warning_lines) == warns, more, run.errors)
    runs = [ridge(suite, "--alphas", "1:10:3", "--folds", name)[1] for name in ("loo", "leave-one-out")]
    suite.check(runs[0] is not None and (runs[0] == runs[1]).all(), "two names of leave-one-out")


def check_edges(suite, A):
    """Without targets nothing is NaN; a feature that one row has alone is told; and too many eigenvectors are refused without reading A."""
    np.save(suite.folder / "none.npy", np.zeros((60, 0)))
    run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "none.npy", "--alphas", "1:10:3", "--chosen", "empty.npy")
    suite.check(suite.succeeded(run) and "nan" not in run.output, run.output)
    alone = A.copy()
    alone[:, 3] = np.arange(60) == 41
    np.save(suite.folder / "alone.npy", alone)
    run = suite.run("ridge", "--matrix", "alone.npy", "--rhs", "B.npy", "--alphas", "1e-13:10:3", "--folds", "loo", "--chosen", "alone_alphas.npy")
    suite.check(suite.succeeded(run) and any("row 41 (from 0) of A decides" in line for line in run.warning_lines), run.errors)
    np.lib.format.open_memmap(suite.folder / "wide.npy", "w+", np.float32, (31000, 31000))  # a file of holes
    np.save(suite.folder / "long.npy", np.zeros((31000, 1), np.float32))
    for words in ([], ["--dry-run"]):
        run = suite.run("ridge", "--matrix", "wide.npy", "--rhs", "long.npy", "--alphas", "1:10:3", "--chosen", "c.npy", *words)
        suite.check(run.status == 2 and "at most 30000" in run.errors, run.status, run.errors)
    (suite.folder / "wide.npy").unlink()


def saved(suite, folder, kind="fitted"):
    return sorted(suite.folder.glob(f"{folder}/{kind}-*-figures.npy"))


def check_larger_than_memory(suite):
    """B and X, which would take 120 MB, are never in memory, whichever way they lie in their files."""
    rng = np.random.default_rng(8)
    m, n, few, many = 300, 200, 4000, 60000
    A = rng.standard_normal((m, n), np.float32)
    np.save(suite.folder / "A.npy", A)
    B = A @ rng.standard_normal((n, many), np.float32) + 20 * rng.standard_normal((m, many), np.float32)
    peaks = {}
    for name, data in (("few", B[:, :few]), ("rows", B), ("columns", np.asfortranarray(B))):
        np.save(suite.folder / f"{name}.npy", data)
        peaks[name] = suite.most_memory("ridge", "--matrix", "A.npy", "--rhs", f"{name}.npy", "--alphas", "1:1e4:5", "--folds", 3, "--output", f"{name}_X.npy",
                                        "--intercepts", "beta.npy", "--chosen", "chosen.npy", "--batch", 1000, "--report", "R.json", ranks=2)
    expected = B.nbytes // 2 + 4 * n * many // 2
    for name in ("rows", "columns"):
        suite.check(peaks[name] - peaks["few"] < expected / 4, "takes", peaks[name] - peaks["few"], "bytes more for B and X of", expected, "on each rank")
    found = [np.load(suite.folder / f"{name}_X.npy", mmap_mode="r") for name in ("few", "rows", "columns")]
    suite.check((found[1] == found[2]).all(), "other bits where columns are contiguous")
    suite.close(np.asarray(found[1][:, :few]), found[0], 1e-6, "the first targets among others")
    chosen, beta = np.load(suite.folder / "chosen.npy"), np.load(suite.folder / "beta.npy")
    for j in range(0, many, 7919):
        x, intercept = fit(A.astype(float), B[:, j:j + 1].astype(float), chosen[j])
        suite.close(found[1][:, j], x[:, 0], 1e-4 * np.abs(x).max(), "coefficients", j)
        suite.close(beta[j:j + 1], intercept, 1e-3, "intercept", j)
    for path in suite.folder.glob("*_X.npy"):
        path.unlink()


def check_a_damping_for_each(suite):
    """A damping for each of many targets takes no memory for scores, which would be 8 bytes for every pair."""
    rng = np.random.default_rng(3)
    many = 8000
    A, B = rng.standard_normal((60, 5)), rng.standard_normal((60, many))
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    alphas = np.geomspace(1, 100, many)
    np.save(suite.folder / "each.npy", alphas)
    one, each = (suite.most_memory("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--folds", "none", "--alphas", of, "--output", "X.npy", ranks=1)
                 for of in (3, "each.npy"))
    suite.check(each - one < 8 * many**2 / 10, "a damping for each takes", each - one, "bytes more than one for all")
    for j in (0, many - 1):
        suite.close(np.load(suite.folder / "X.npy")[:, j], fit(A, B[:, j:j + 1], alphas[j])[0][:, 0], 1e-10, "its coefficients")


def check_goes_on(suite):
    """A job that is killed leaves what it has done, and ends with the bits of one that was not."""
    A, B = problem("f64", 60, 13, 400)
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    for words in ([], ["--choose-for", "all", "--one-standard-error"]):
        words = ["--alphas", "0.1:1e4:11", "--batch", 4, *words]
        whole = ridge(suite, *words)[1:]
        if whole[0] is None:
            continue
        kind = "fitted" if len(words) == 4 else "scored"
        folder = f"saved-{kind}"
        run = suite.run("ridge", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "killed.npy", "--scores", "killed_scores.npy", "--checkpoint", folder, *words,
                        shell=f"{{}} & while [ ! -e {folder}/{kind}-8-figures.npy ] && kill -0 $!; do sleep 0.01; done; kill -9 $!; wait $!")
        done = len(saved(suite, folder, kind))
        for path in suite.folder.glob("killed.npy.tmp.*"):  # which the next run of that output removes
            path.unlink()
        suite.check(run.status == 137 and 3 <= done < 100 and not (suite.folder / "killed.npy").exists(), run.status, done, run.errors)
        # On two ranks by what the others left; then on one as the run would have gone on.
        for ranks, bound in ((2, 1e-9), (None, 0)):
            again = ridge(suite, *words, "--restart", folder, *(["--checkpoint", folder] if ranks is None else []), ranks=ranks)[1:]
            if again[0] is None:
                continue
            for one, other in zip(again, whole, strict=True):
                suite.close(one, other, bound * (1 + np.abs(other).max()), "after a restart", words, ranks)
        suite.check(len(saved(suite, folder)) == 100, "batches are not saved", len(saved(suite, folder)))
        # All is there: nothing is computed, and another number of ranks changes no bit.
        again = ridge(suite, *words, "--restart", folder, ranks=3)[1:]
        for one, other in zip(again, whole, strict=True) if again[0] is not None else ():
            suite.check((one == other).all(), "other bits than were saved", words)
    words = ["--alphas", "0.1:1e4:11", "--batch", 4]
    for more, status, text in ((["--checkpoint", "saved-fitted"], 74, "--restart saved-fitted"), (["--restart", "nowhere"], 65, "is missing"),
                               (["--restart", "saved-fitted", "--standardize"], 65, "another run, with standardize false, here true:"),
                               (["--restart", "saved-fitted", "--folds", 6], 65, "another run, with folds \"5\", here \"6\":")):
        run, *_ = ridge(suite, *words, *more, status=status, ranks=2)
        suite.check(text in run.errors, more, run.errors)
    check_restart_of_others(suite, words, A, B)


def check_restart_of_others(suite, words, A, B):
    """Every element of A and B counts, and a batch that another run left in the folder does not."""
    one = A.copy()
    one[-1, -1] = np.nextafter(one[-1, -1], 9)
    for name, other in (("twice", 2 * A), ("signs", -A), ("rows", A[::-1]), ("one bit", one)):
        np.save(suite.folder / "A.npy", other)
        run, *_ = ridge(suite, *words, "--restart", "saved-fitted", status=65, ranks=2)
        suite.check("another A" in run.errors, name, run.errors)
    np.save(suite.folder / "A.npy", A)
    one = B.copy()
    one[17, 10] = np.nextafter(one[17, 10], 9)  # not of the first column of a batch
    for name, other in (("one bit", one), ("sign", B * np.where(np.arange(B.shape[1]) == 9, -1, 1)),
                        ("rows", np.where(np.arange(B.shape[1]) == 8, B[::-1], B))):
        np.save(suite.folder / "B.npy", other)
        run, *_ = ridge(suite, *words, "--restart", "saved-fitted", status=65, ranks=2)
        suite.check("other targets: columns 8 to 11" in run.errors, name, run.errors)
    # The manifest was removed, a run of -A was killed after its first batch, and left the others' batches.
    np.save(suite.folder / "B.npy", B)
    np.save(suite.folder / "A.npy", -A)
    whole = ridge(suite, *words)[1:]
    (suite.folder / "saved-fitted/manifest.json").unlink()
    others = {path: path.read_bytes() for path in suite.folder.glob("saved-fitted/fitted-*.npy") if not path.name.startswith("fitted-0-")}
    ridge(suite, *words, "--checkpoint", "saved-fitted")
    for path, data in others.items():
        path.write_bytes(data)
    again = ridge(suite, *words, "--checkpoint", "saved-fitted", "--restart", "saved-fitted")[1:]
    for one, other in zip(again, whole, strict=True) if again[0] is not None else ():
        suite.check((one == other).all(), "batches of another run were taken")
    # Two runs never save batches in one folder at a time.
    with open(suite.folder / "saved-fitted/lock", "w") as lock:
        lock.write("process 1 on elsewhere")
        lock.flush()
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 62, 1, 0))
        run, *_ = ridge(suite, *words, "--checkpoint", "saved-fitted", "--restart", "saved-fitted", status=74, ranks=2)
        suite.check("is held by process 1 on elsewhere, which may still save batches there" in run.errors, run.errors)
    # Nobody's batches are replaced.
    foreign = suite.folder / "foreign"
    foreign.mkdir()
    (foreign / "fitted-0-figures.npy").write_bytes(b"mine")
    run, *_ = ridge(suite, *words, "--checkpoint", "foreign", status=74, ranks=2)
    suite.check("fitted-0-figures.npy" in run.errors and (foreign / "fitted-0-figures.npy").read_bytes() == b"mine", run.errors)


def test(suite, _full):
    check_values(suite)
    check_weights(suite)
    check_larger_than_memory(suite)
    check_a_damping_for_each(suite)
    check_goes_on(suite)
    check_scikit_learn(suite)
    check_words(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
