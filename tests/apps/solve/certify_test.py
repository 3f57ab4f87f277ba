# SPDX-License-Identifier: BSD-3-Clause
"""Checks what solves with a compressed matrix say of the matrix that it was made of, against NumPy: `--certify`, bounds of errors, and
plans. certify_test.py LAUNCH PROGRAM"""
import json
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from compress_test import compress, multiplied, waves  # noqa: E402


def solve(suite, matrix, *words, ranks=None, status=0, name="report.json"):
    """The run, X and the report."""
    (suite.folder / name).unlink(missing_ok=True)
    run = suite.run("solve", "--matrix", matrix, "--output", "X.npy", "--report", name, *words, ranks=ranks)
    if not suite.succeeded(run, status) or status not in (0, 3):
        return run, None, None
    grid = json.loads((suite.folder / name).read_text(encoding="utf-8"))["grid"]
    return run, np.load(suite.folder / "X.npy"), suite.report(name, "solve", ranks or 1, grid)


def damped_solution(A, B, damp):
    return np.linalg.solve(A.conj().T @ A + np.square(damp) * np.eye(A.shape[1]), A.conj().T @ B)


def check_certified(suite):
    """Solutions, norms and verdicts are those of the original, whose products are few."""
    for dtype, tolerance in (("c128", 1e-11), ("c64", 1e-4)):
        folder, A = waves(suite, 190, 150, dtype=dtype, frequency=15)
        A, B = A.astype(complex), np.load(folder / "B.npy").astype(complex)
        saved = suite.folder / f"certified-{dtype}"
        compress(suite, folder, saved, 1e-3, 2, "--tile", 40)
        expected = damped_solution(A, B, 0.02)
        words = ["--rhs", folder / "B.npy", "--damp", 0.02, "--tolerance", tolerance]
        _, _, plain = solve(suite, folder / "A.npy", *words)
        for ranks, more in ((None, []), (2, ["--grid", "2x1", "--guard", 2]), (4, ["--batch", 2]), (4, ["--grid", "1x3", "--storage", "packed"])):
            run, X, report = solve(suite, saved, *words, "--certify", folder / "A.npy", *more, ranks=ranks)
            if X is None:
                continue
            scale = np.linalg.norm(A.conj().T @ B, axis=0)
            # An error is at most the norm of the gradient over D².
            suite.close(X, expected, 2 * tolerance * scale.max() / 0.0004, "certified on", ranks, more)
            gradients = np.linalg.norm(A.conj().T @ (B - A @ X) - 0.0004 * X, axis=0)
            seen = np.array([column["normal_residual_norm"] for column in report["columns"]])
            suite.check((np.abs(seen - gradients) <= 1e-2 * gradients + 100 * np.finfo(dtype.replace("c", "complex")).eps * scale).all(),
                        "norms are not those of the original:", seen, gradients)
            suite.check((gradients <= 2 * tolerance * scale).all(), "not solved:", gradients, scale)
            about = report["compressed"]
            suite.check(about["verdicts_for"] == str(folder / "A.npy") and f"verdicts are for {folder / 'A.npy'}:" in run.output, about, run.output)
            suite.check(about["error"] / 3 < about["seen_error"] < 3 * about["error"] <= 3e-3 and abs(about["norm"] / np.linalg.norm(A) - 1) < 1e-6, about)
            suite.check(report["solver"] == "refined-cgls" and about["refusal"] == "" and report["prediction"]["seconds"]["predicted"] is None, report)
            inner = max(column["inner_iterations"] for column in report["columns"])
            suite.check(about["products"]["compressed"] >= 2 * inner > 0 and about["products"]["original"] < 2 * plain["iterations"], about, plain["iterations"])
            suite.check(all(0 <= column["contraction"] < 0.5 for column in report["columns"]), report["columns"])


def check_shapes(suite):
    """Ranks without rows or columns, a matrix of zeros, of one column and of none, huge numbers, and no right-hand sides."""
    rng = np.random.default_rng(1)
    for name, A, damp in (("zero", np.zeros((5, 4)), 0.3), ("small", rng.standard_normal((3, 2)) * (1 + 1j), 0.3), ("one", rng.standard_normal((30, 1)), 0.3),
                          ("none", np.zeros((4, 0)), 0.3), ("huge", rng.standard_normal((20, 10)) * 1e200, 1e199)):
        np.save(suite.folder / f"{name}.npy", A)
        suite.succeeded(suite.run("compress", "--matrix", f"{name}.npy", "--output", f"shaped-{name}", "--tolerance", 1e-2))
        size = max(np.abs(A).max(initial=0), 1e-30)
        for ranks in (None, 4):
            for nrhs in (2, 0):
                B = rng.standard_normal((len(A), nrhs)).astype(A.dtype)
                np.save(suite.folder / "shaped.npy", np.asfortranarray(B))
                _, X, report = solve(suite, f"shaped-{name}", "--certify", f"{name}.npy", "--rhs", "shaped.npy", "--damp", damp, "--tolerance", 1e-10, ranks=ranks)
                if X is not None:
                    expected = damped_solution(A / size, B, damp / size) / size
                    suite.close(X, expected, 1e-7 * np.abs(expected).max(initial=0), name, ranks, nrhs)
                    suite.check(len(report["columns"]) == nrhs, report["columns"])


def check_sweep(suite):
    """Each of several dampings is solved for the original."""
    folder, A = waves(suite, 130, 120)
    saved = suite.folder / "swept"
    compress(suite, folder, saved, 1e-3, 2)
    b = np.load(folder / "B.npy")[:, :1]
    np.save(suite.folder / "b.npy", b)
    damps = np.geomspace(0.05, 1, 4)
    for ranks in (None, 4):
        _, X, report = solve(suite, saved, "--rhs", "b.npy", "--damps", "0.05:1:4", "--certify", folder / "A.npy", "--tolerance", 1e-10, ranks=ranks)
        expected = np.hstack([damped_solution(A, b, damp) for damp in damps])
        if X is not None:
            suite.close(X, expected, 1e-7 * np.abs(expected).max(), "swept on", ranks)
            suite.close(np.array([column["damp"] for column in report["columns"]]), damps, 1e-12, "dampings")


def check_refusal(suite):
    """A poor approximation is refused with the tolerance that would do, and that one does."""
    folder, A = waves(suite, 190, 150, dtype="c128", frequency=15)
    B = np.load(folder / "B.npy")
    saved, finer = suite.folder / "poor", suite.folder / "finer"
    compress(suite, folder, saved, 0.3, 2, "--tile", 40)
    words = ["--rhs", folder / "B.npy", "--damp", 0.02, "--certify", folder / "A.npy", "--tolerance", 1e-10, "--iterations", 3000]
    run, X, report = solve(suite, saved, *words, ranks=2, status=3)
    if X is None:
        return
    suite.check(np.isfinite(X).all() and {column["reason"] for column in report["columns"]} <= {"user_stop", "converged"}, report["columns"])
    advice = re.search(r"compress \S+A\.npy with --tolerance (\S+), or solve with --matrix \S+A\.npy$", run.errors, re.MULTILINE)
    if not suite.check(advice and "cgls with A" in run.errors and report["compressed"]["refusal"], "no advice:", run.errors):
        return
    suite.check(0 < float(advice[1]) < report["compressed"]["error"], "advised", advice[1], "where the error is", report["compressed"]["error"])
    compress(suite, folder, finer, advice[1], 2, "--tile", 40)
    _, X, report = solve(suite, finer, *words, ranks=2)
    if X is not None:
        expected = damped_solution(A, B, 0.02)
        suite.close(X, expected, 1e-5 * np.abs(expected).max(), "with the tolerance that was advised")


def check_restart(suite):
    """A certified run goes on from its checkpoint with the same bits, also by itself on another grid, and is no other run's."""
    folder, A = waves(suite, 130, 120)
    saved, B = suite.folder / "restarted", np.load(folder / "B.npy")
    compress(suite, folder, saved, 1e-2, 2)
    words = ["--rhs", folder / "B.npy", "--damp", 0.1, "--tolerance", 1e-11]
    certify = ["--certify", folder / "A.npy"]
    _, whole, report = solve(suite, saved, *words, *certify, ranks=2)
    _, _, begun = solve(suite, saved, *words, *certify, "--iterations", 1, "--checkpoint", "state", ranks=2, status=3)
    suite.check(begun and begun["iterations"] == 1 < report["iterations"], "begun", begun)
    _, again, _ = solve(suite, saved, *words, *certify, "--restart", "state", ranks=2)
    suite.check(np.array_equal(again, whole), "a restart has other bits")
    _, moved, _ = solve(suite, saved, *words, *certify, "--restart", "state", ranks=4)
    suite.close(moved, damped_solution(A, B, 0.1), 1e-8 * np.abs(whole).max(), "restarted on another grid")
    for other in (words, [*words, "--solver", "lsqr"]):
        run, _, _ = solve(suite, saved, *other, "--restart", "state", ranks=2, status=65)
        suite.check("holds a checkpoint of" in run.errors, run.errors)


def check_refused_inputs(suite):
    """Another matrix than the one that was compressed is found, also one of the same norm."""
    folder, A = waves(suite, 60, 50)
    saved = suite.folder / "other"
    compress(suite, folder, saved, 1e-3)
    one = A.copy()
    one[3, 4] = np.nan
    for name, matrix in {"rolled": np.roll(A, 1, axis=0), "scaled": 1.001 * A, "nan": one, "narrow": A.astype(np.complex64), "wide": A.T, "zero": 0 * A}.items():
        np.save(suite.folder / f"{name}.npy", matrix)
    rhs = ["--rhs", folder / "B.npy", "--output", "refused.npy"]
    plain, compressed = ["solve", "--matrix", folder / "A.npy", *rhs], ["solve", "--matrix", saved, *rhs]
    right = ["--certify", folder / "A.npy"]
    for status, texts, *words in [
            (65, ["is not the matrix that", "they differ by about 0.2"], *compressed, "--certify", "rolled.npy"),
            (65, ["is not the matrix that", "its Frobenius norm is"], *compressed, "--certify", "scaled.npy"),
            (65, ["is not the matrix that", "its Frobenius norm is nan"], *compressed, "--certify", "nan.npy"),
            (65, ["is not the matrix that", "its Frobenius norm is 0"], *compressed, "--certify", "zero.npy"),
            (65, ["narrow.npy is 60 x 50 c64", "60 x 50 c128"], *compressed, "--certify", "narrow.npy"),
            (65, ["wide.npy is 50 x 60 c128"], *compressed, "--certify", "wide.npy"),
            (65, ["none.npy"], *compressed, "--certify", "none.npy"),
            (2, ["--certify is for a compressed matrix"], *plain, *right),
            (2, ["not --solver lsqr"], *compressed, *right, "--solver", "lsqr"),
            (2, ["exclude each other"], *compressed, *right, "--damps", "0.1:1:3", "--sweep", "space", "--choose", "lcurve"),
            (2, ["--column-stable"], *compressed, "--column-stable"),
            (2, ["--precondition"], *compressed, *right, "--precondition", "column-norms"),
            (2, ["would replace --certify"], "solve", "--matrix", saved, "--rhs", folder / "B.npy", *right, "--output", folder / "A.npy")]:
        for ranks in (None, 4):
            run = suite.run(*words, ranks=ranks)
            suite.succeeded(run, status)
            suite.check(len(run.error_lines) == 1 and all(text in run.errors for text in texts), "misses", texts, "in", run.errors)
    suite.check(not (suite.folder / "refused.npy").exists(), "a refused run wrote an output")


def check_bounds(suite):
    """Without --certify the report bounds the distance to the solution for the original, by the formula of the documentation."""
    folder, A = waves(suite, 190, 150, dtype="c128", frequency=15)
    B, loose = np.load(folder / "B.npy"), []
    for tolerance in (1e-2, 1e-4):
        saved = suite.folder / f"bounded-{tolerance}"
        compress(suite, folder, saved, tolerance, 2, "--tile", 40)
        C = multiplied(suite, saved, np.eye(A.shape[1], dtype=A.dtype), 2)
        for solver, damp, ranks in (("cgls", 0.3, None), ("lsqr", 0.03, 2), ("block-cgls", 0.1, 4)):
            run, X, report = solve(suite, saved, "--rhs", folder / "B.npy", "--solver", solver, "--damp", damp, "--tolerance", 1e-9, ranks=ranks)
            if X is None:
                continue
            bounds = np.array([column["original_error_bound"] for column in report["columns"]])
            errors = np.linalg.norm(X - damped_solution(A, B, damp), axis=0)
            suite.check((errors <= bounds).all(), "beyond its bound:", errors, bounds)
            E, norms, residuals = np.linalg.norm(A - C), np.linalg.norm(X, axis=0), np.linalg.norm(B - C @ X, axis=0)
            gradients = np.linalg.norm(C.conj().T @ (B - C @ X) - damp**2 * X, axis=0)
            formula = E * (residuals / damp**2 + norms / (2 * damp)) + gradients / damp**2
            suite.close(bounds, formula, 1e-3 * formula, "the formula")
            loose.extend(bounds / errors)
            said = re.search(rf"verdicts are for {saved}, not for .* at most (\S+) \|x\| away", run.output)
            suite.check(said and abs(float(said[1]) - (bounds / norms).max()) <= 0.06 * float(said[1]), run.output, bounds / norms)
            suite.check(report["compressed"]["verdicts_for"] == str(saved), report["compressed"])
        for words in ([], ["--solver", "fista", "--lambda-relative", 0.1, "--tolerance", 1e-2]):
            run, _, report = solve(suite, saved, "--rhs", folder / "B.npy", *words, "--iterations", 4000, ranks=2)
            if report is not None:
                suite.check("original_error_bound" not in report["columns"][0] and "verdicts are for" in run.output, report["columns"][0], run.output)
    print(f"bounds of errors for the original are {min(loose):.0f} to {max(loose):.0f} times the errors")


def check_records(suite):
    """The files of a compressed matrix have a size and a hash, and `gridlops report` says whose verdicts there are."""
    folder, _ = waves(suite, 60, 50)
    entries = {}
    for tolerance in (1e-2, 1e-3):
        saved = suite.folder / f"hashed-{tolerance}"
        compress(suite, folder, saved, tolerance)
        for name in ("once.json", "twice.json"):
            _, _, report = solve(suite, saved, "--rhs", folder / "B.npy", "--damp", 0.1, "--hashes", "--certify", folder / "A.npy", name=name)
            entry = next(file for file in report["files"] if file["option"] == "--matrix")
            suite.check(entry["bytes"] == sum(path.stat().st_size for path in saved.rglob("*") if path.is_file()), entry)
            entries[tolerance, name] = entry["xxh3"]
    suite.check(entries[1e-2, "once.json"] == entries[1e-2, "twice.json"] != entries[1e-3, "once.json"] == entries[1e-3, "twice.json"], entries)
    run = suite.run("report", "once.json", "twice.json")
    suite.succeeded(run)
    suite.check(re.search(rf"verdicts are for +{folder / 'A.npy'} +{folder / 'A.npy'}", run.output), run.output)


def check_plans(suite):
    """Plans have the bytes of the compressed matrix, as runs report them, and seconds where there is a model of them."""
    folder, A = waves(suite, 190, 150, dtype="c64", frequency=15)
    saved = suite.folder / "planned"
    compress(suite, folder, saved, 1e-3, 2, "--tile", 40)
    for ranks, grid in ((None, "1x1"), (2, "2x1"), (4, "2x2"), (4, "1x3"), (4, None)):
        on = ["--grid", grid] if grid else []
        words = ["--rhs", folder / "B.npy", *on]
        run, X, report = solve(suite, saved, *words, "--iterations", 4000, "--tolerance", 1e-3, ranks=ranks)
        suite.succeeded(suite.run("plan", "--matrix", saved, "--rhs", 3, "--json", "plan.json", *(on or ["--ranks", ranks])))
        plan = json.loads((suite.folder / "plan.json").read_text(encoding="utf-8"))["results"][0]
        if X is None:
            continue
        suite.check(plan["grid"] == report["grid"] and plan["memory_bytes"] == max(report["memory_bytes"]["planned"]), plan, report["memory_bytes"])
        suite.check(plan["seconds"] is None and plan["seconds_per_iteration"] is None, plan)
        predicted = report["prediction"]
        suite.check(predicted["seconds"]["predicted"] is None and predicted["bytes_received"]["predicted"] == predicted["bytes_received"]["counted"] and
                    max(predicted["bytes_received"]["predicted"]) == plan["bytes_received"], predicted, plan)
        for more in ([], ["--certify", folder / "A.npy"]):
            (suite.folder / "dry.npy").unlink(missing_ok=True)
            dry = suite.run("solve", "--matrix", saved, *words, "--output", "dry.npy", "--damp", 0.1, "--dry-run", *more, ranks=ranks)
            suite.succeeded(dry)
            suite.check(not (suite.folder / "dry.npy").exists(), "--dry-run wrote X")
            _, _, report = solve(suite, saved, *words, "--damp", 0.1, "--tolerance", 1e-3, *more, ranks=ranks)
            said = re.search(r"^memory in all +[\d.]+ \w+ +([\d.]+) (\w+)$", dry.output, re.MULTILINE)
            if suite.check(said and report, dry.output):
                planned = float(said[1]) * {"B": 1, "KiB": 2**10, "MiB": 2**20}[said[2]]
                suite.check(abs(planned / max(report["memory_bytes"]["planned"]) - 1) < 0.01, planned, report["memory_bytes"])
    np.save(suite.folder / "dense.npy", A)
    for text, *words in [("needs --matrix-size", "--rhs", 3), ("is no directory that gridlops compress made", "--matrix", "dense.npy", "--rhs", 3),
                         ("stationary-a only", "--matrix", saved, "--rhs", 3, "--algorithm", "summa"), ("--one-pass", "--matrix", saved, "--rhs", 3, "--one-pass", "on"),
                         ("--matrix-size", "--matrix", saved, "--rhs", 3, "--matrix-size", "9x9")]:
        run = suite.run("plan", *words)
        suite.succeeded(run, 2)
        suite.check(text in run.errors, text, run.errors)


def test(suite, full):
    check_certified(suite)
    check_shapes(suite)
    check_sweep(suite)
    check_refusal(suite)
    check_restart(suite)
    check_refused_inputs(suite)
    check_bounds(suite)
    check_records(suite)
    check_plans(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
