# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops compress`, and products and solutions with what it wrote, against NumPy. compress_test.py LAUNCH PROGRAM"""
import numpy as np

import program


def waves(suite, rows, cols, **options):
    """The folder of a problem with waves, and its A."""
    folder = suite.folder / f"waves-{rows}-{cols}"
    words = [word for name, value in options.items() for word in ("--" + name, value)]
    suite.succeeded(suite.run("make-problem", "--kind", "waves", "--rows", rows, "--cols", cols, "--rhs", 3, "--out", folder, *words))
    return folder, np.load(folder / "A.npy")


def compress(suite, folder, output, tolerance, ranks=None, *more):
    positions = ["--row-positions", folder / "row_positions.npy", "--col-positions", folder / "col_positions.npy"]
    run = suite.run("compress", "--matrix", folder / "A.npy", "--output", output, "--tolerance", tolerance, *positions, *more, ranks=ranks)
    suite.succeeded(run)
    return run.output


def multiplied(suite, matrix, X, ranks, *more):
    np.save(suite.folder / "in.npy", X)
    words = ["--matrix", matrix, "--input", suite.folder / "in.npy", "--output", suite.folder / "out.npy", *more]
    if not suite.succeeded(suite.run("multiply", *words, ranks=ranks)):
        return np.zeros((0, 0))
    return np.load(suite.folder / "out.npy")


def check_error(suite):
    """On any ranks, the saved matrix is as near as the program says, and as asked for."""
    for dtype in ("c64", "c128"):
        folder, A = waves(suite, 190, 150, dtype=dtype, frequency=15)
        for writers, tolerance in ((None, 1e-2), (2, 1e-4), (4, 1e-3)):
            saved = suite.folder / f"compressed-{dtype}-{writers}"
            text = compress(suite, folder, saved, tolerance, writers, "--tile", 40)
            said = float(text.split("= ")[1].split()[0])
            C = [multiplied(suite, saved, np.eye(A.shape[1], dtype=A.dtype), readers) for readers in (None, 2, 4)]
            rounding = 100 * np.finfo(A.dtype).eps
            for other in C[1:]:
                suite.close(other, C[0], rounding * np.abs(A).max(), "the matrix depends on the ranks that read it", dtype)
            error = np.linalg.norm(C[0].astype(np.complex128) - A) / np.linalg.norm(A)
            suite.check(error <= tolerance and abs(error - said) <= 0.06 * said + rounding, "error", error, "said", said, "asked", tolerance)
            adjoint = multiplied(suite, saved, np.eye(A.shape[0], dtype=A.dtype), 2, "--adjoint")
            suite.close(adjoint, C[0].conj().T, rounding * np.abs(A).max(), "adjoint", dtype)


def check_solution(suite):
    """A damped solution is that of the compressed matrix."""
    folder, A = waves(suite, 130, 120)
    saved = suite.folder / "solved"
    compress(suite, folder, saved, 1e-3, 2)
    C, B = multiplied(suite, saved, np.eye(A.shape[1], dtype=A.dtype), 2), np.load(folder / "B.npy")
    words = ["--rhs", folder / "B.npy", "--output", suite.folder / "X.npy", "--damp", 0.1, "--tolerance", 1e-11]
    for ranks in (None, 2, 4):
        report = suite.folder / f"solve-{ranks}.json"
        if suite.succeeded(suite.run("solve", "--matrix", saved, *words, "--report", report, ranks=ranks)):
            expected = np.linalg.solve(C.conj().T @ C + 0.01 * np.eye(A.shape[1]), C.conj().T @ B)
            suite.close(np.load(suite.folder / "X.npy"), expected, 1e-9 * np.abs(expected).max(), "solution on", ranks)


def check_refusals(suite):
    folder, A = waves(suite, 60, 50)
    saved = suite.folder / "refused"
    compress(suite, folder, saved, 1e-3)
    before = {file: file.read_bytes() for file in saved.rglob("*") if file.is_file()}
    rhs, real = folder / "B.npy", suite.folder / "real.npy"
    np.save(suite.folder / "wide.npy", np.zeros((60, 3)))
    np.save(suite.folder / "few.npy", np.zeros((7, 2)))
    np.save(real, A.real)
    wrong, unplaced = A.copy(), np.zeros((60, 2))
    wrong[45, 3], unplaced[7, 1] = np.inf, np.nan
    np.save(suite.folder / "wrong.npy", wrong)
    np.save(suite.folder / "turned.npy", np.asfortranarray(wrong.real))
    np.save(suite.folder / "unplaced.npy", unplaced)
    (suite.folder / "empty").mkdir(exist_ok=True)
    output = ["--output", suite.folder / "refused.npy"]
    for status, texts, *words in [
            (74, ["names what an earlier run saved"], "compress", "--matrix", folder / "A.npy", "--output", saved),
            (2, ["the tolerance is 1"], "compress", "--matrix", real, "--output", suite.folder / "new", "--tolerance", 1),
            (65, ["few.npy is 7 x 2", "60 rows"], "compress", "--matrix", real, "--output", suite.folder / "new", "--row-positions", suite.folder / "few.npy"),
            (65, ["wrong.npy holds (inf", "at row 45, column 3 (from 0), in the part of rank"], "compress", "--matrix", suite.folder / "wrong.npy", "--output", suite.folder / "new"),
            (65, ["turned.npy holds inf at row 45, column 3 (from 0)"], "compress", "--matrix", suite.folder / "turned.npy", "--output", suite.folder / "new", "--tile", 16),
            (65, ["unplaced.npy holds nan at row 7, column 1 (from 0)"], "compress", "--matrix", real, "--output", suite.folder / "new", "--row-positions", suite.folder / "unplaced.npy"),
            (65, ["there is no manifest.json"], "solve", "--matrix", suite.folder / "empty", "--rhs", rhs, *output),
            (2, ["stationary-a only, not by summa"], "solve", "--matrix", saved, "--rhs", rhs, "--algorithm", "summa", *output),
            (2, ["--precondition"], "solve", "--matrix", saved, "--rhs", rhs, "--precondition", "column-norms", *output)]:
        for ranks in (None, 2):
            run = suite.run(*words, ranks=ranks)
            suite.succeeded(run, status)
            suite.check(all(text in run.errors for text in texts), "misses", texts, "in", run.errors)
    suite.check(before == {file: file.read_bytes() for file in saved.rglob("*") if file.is_file()}, "a refused run changed the directory")
    suite.check(not (suite.folder / "refused.npy").exists(), "a refused run wrote an output")


def check_memory(suite):
    """A rank takes memory for its share of what is stored, two rows of tiles, and a few tiles, but not for its block of A."""
    if program.DEVICE != "cpu":
        return
    size, tile, mib = 1600, 64, 2 ** 20
    folder, A = waves(suite, size, size, frequency=60)
    small, _ = waves(suite, 64, 64)
    for ranks in (1, 2):
        def peak(of, name, ranks=ranks):
            return suite.most_memory("compress", "--matrix", of / "A.npy", "--output", suite.folder / f"{name}-{ranks}", "--tolerance", 1e-9, "--tile", tile,
                                     "--grid", f"{ranks}x1", ranks=ranks)

        took = peak(folder, "large") - peak(small, "small")
        stored = sum(path.stat().st_size for path in (suite.folder / f"large-{ranks}").rglob("*.npy")) / ranks
        rows_of_tiles = 2 * tile * size * A.itemsize
        # The large run need not take again what the small one has taken, a little.
        allowed = 1.15 * stored + rows_of_tiles + 2 * mib
        suite.check(0.9 * stored < took < allowed < 0.95 * (stored + A.nbytes / ranks), "took", took / mib, "MiB for", stored / mib, "of", A.nbytes / ranks / mib,
                    "MiB on", ranks, "ranks; allowed", allowed / mib)


def test(suite, full):
    check_error(suite)
    check_memory(suite)
    check_solution(suite)
    check_refusals(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
