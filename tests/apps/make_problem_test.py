# SPDX-License-Identifier: BSD-3-Clause
"""Checks the problems of `gridlops make-problem`: the same on any ranks, with the spectrum, formula and noise asked for.
make_problem_test.py LAUNCH PROGRAM"""
import numpy as np

import program


def make(suite, ranks, **options):
    """A, X_true and B."""
    folder = suite.folder / f"on{ranks}" / "problem"
    words = [word for name, value in options.items() for word in ("--" + name, value)]
    run = suite.run("make-problem", *words, "--out", folder, ranks=None if ranks == 1 else ranks)
    if not suite.succeeded(run):
        return None
    return [np.load(folder / f"{name}.npy") for name in ("A", "X_true", "B")]


def make_on_several(suite, **options):
    """A, X_true and B of one rank, after a check that 2 and 4 ranks make the same."""
    problem = make(suite, 1, **options)
    for ranks in (2, 4):
        other = make(suite, ranks, **options)
        if problem is None or other is None:
            return None
        for name, mine, others in zip(("A", "X_true"), problem, other):
            suite.check(mine.tobytes("F") == others.tobytes("F"), f"{name} differs between 1 and {ranks} ranks:", options)
        scale = np.abs(problem[2]).max(initial=0)
        suite.close(other[2], problem[2], 100 * np.finfo(other[2].dtype).eps * scale, f"B on {ranks} ranks", options)
    A, X, B = problem
    shapes = ((options["rows"], options["cols"]), (options["cols"], options["rhs"]), (options["rows"], options["rhs"]))
    suite.check((A.shape, X.shape, B.shape) == shapes, "shapes", A.shape, X.shape, B.shape, options)
    wanted = program.TYPES[options.get("dtype", "c128" if options.get("kind") in ("multiples", "waves") else "f64")]
    suite.check(A.dtype == X.dtype == B.dtype == wanted, "types", A.dtype, X.dtype, B.dtype, options)
    if not options.get("noise"):
        suite.close(B, A @ X, 100 * np.finfo(B.dtype).eps * np.abs(B).max(initial=0), "B is not A X_true", options)
    return problem


def check_random(suite):
    problem = make_on_several(suite, rows=41, cols=23, rhs=5, dtype="c64", seed=7)
    if problem is not None:
        for name, matrix in zip(("A", "X_true"), problem):
            parts = np.concatenate([matrix.real.ravel(), matrix.imag.ravel()])
            suite.check(np.abs(parts).max() < 1 and abs(parts.mean()) < 0.1 and abs(parts.var() - 1 / 3) < 0.06,
                        name, "is not uniform in (-1, 1):", parts.mean(), parts.var())
        other = make(suite, 1, rows=41, cols=23, rhs=5, dtype="c64", seed=8)
        suite.check(other is not None and not (other[0] == problem[0]).any(), "another seed gives the same")
    make_on_several(suite, rows=3, cols=0, rhs=2)


def check_spectra(suite):
    for rows, cols, dtype, condition in [(30, 19, "c128", 1000), (19, 30, "f64", 50)]:
        problem = make_on_several(suite, rows=rows, cols=cols, rhs=2, dtype=dtype, condition=condition)
        if problem is not None:
            found = np.linalg.svd(problem[0], compute_uv=False)
            suite.close(found, np.geomspace(1, 1 / condition, min(rows, cols)), 1e-13, "singular values", dtype)
    for dtype, condition, options in [("c128", 100, {}), ("f32", 10, {"condition": 10})]:
        problem = make_on_several(suite, rows=25, cols=25, rhs=2, dtype=dtype, kind="spd", **options)
        if problem is not None:
            A = problem[0]
            suite.check((A == A.conj().T).all(), "spd is not Hermitian to the last bit", dtype)
            found = np.linalg.eigvalsh(A.astype(np.complex128))[::-1]
            suite.close(found, np.geomspace(1, 1 / condition, 25), 10 * program.epsilon(dtype), "eigenvalues", dtype)


def check_condition(suite):
    """The largest condition that a type can have is made, and more is refused with that."""
    for kind in ("random", "spd"):
        for dtype, most in (("f32", 8388608), ("f64", 4503599627370496)):
            words = ["make-problem", "--rows", 50, "--cols", 50, "--rhs", 1, "--kind", kind, "--dtype", dtype, "--out", "c", "--condition"]
            suite.succeeded(suite.run(*words, most))
            A = np.load(suite.folder / "c" / "A.npy").astype(float)
            suite.check(0.5 < np.linalg.cond(A) / most < 2, "condition of", kind, dtype, np.linalg.cond(A))
            run = suite.run(*words, "1e200")
            suite.succeeded(run, 2)
            suite.check(len(run.error_lines) == 1 and f"take at most {most}" in run.error_lines[0], "should say the most:", run.errors)


def multiples(rows, cols):
    """The sum over k = 0 … 4 of (−0.8)^k exp(ıκr_k)/r_k, with r_k from vertical distances of 100 m + k·150 m."""
    i, j = np.arange(rows)[:, None] - (rows - 1) / 2, np.arange(cols) - (cols - 1) / 2
    distances = [np.hypot(10 * (i - j), 100 + 150 * k) for k in range(5)]
    return sum((-0.8) ** k * np.exp(2j * np.pi / 20 * r) / r for k, r in enumerate(distances))


def check_multiples(suite):
    for rows, cols, dtype in [(60, 41, None), (23, 40, "c64")]:
        problem = make_on_several(suite, rows=rows, cols=cols, rhs=9, kind="multiples", **({"dtype": dtype} if dtype else {}))
        if problem is not None:
            A, X, _ = problem
            # The phase of a wave after 700 m is 220 radians, so its error is about 50 ε.
            suite.close(A, multiples(rows, cols), 100 * np.finfo(A.dtype).eps * 0.01, "the formula of multiples")
            suite.check(not X.imag.any() and 0.3 < np.abs(X).max() < 3, "X_true is not real and of order 1")


def waves(sources, receivers, frequency, velocity):
    """The sum of a exp(−2πıfr/c)/r over reflectors, with r from a source's image, 2z below and 0.1 z beside it."""
    x, y = (sources[:, k, None] - receivers[:, k] for k in (0, 1))
    distances = {a: np.sqrt((x + 0.1 * z)**2 + y**2 + (2 * z)**2) for z, a in ((300, 1), (500, -0.6), (700, 0.5), (900, 0.3))}
    return sum(a * np.exp(-2j * np.pi * frequency / velocity * r) / r for a, r in distances.items())


def stations(count, line, spacing):
    """Lines of stations, of which the last may be shorter, about the origin."""
    places = np.stack(np.divmod(np.arange(count), line), 1) - [(-(-count // line) - 1) / 2, (min(line, count) - 1) / 2]
    return spacing * places


def check_waves(suite):
    cases = [(dict(rows=144, cols=144), dict()),
             (dict(rows=57, cols=36, dtype="c64"), {"frequency": 12, "row-line": 19, "col-line": 6}),
             (dict(rows=30, cols=91), {"velocity": 1500, "spacing": 40, "jitter": 0, "col-line": 100, "seed": 5})]
    for shape, options in cases:
        problem = make_on_several(suite, kind="waves", rhs=2, **shape, **options)
        if problem is None:
            continue
        files = [[(suite.folder / f"on{ranks}" / "problem" / f"{name}_positions.npy") for ranks in (1, 2, 4)] for name in ("row", "col")]
        for one, *others in files:
            suite.check(all(other.read_bytes() == one.read_bytes() for other in others), "positions differ between ranks", options)
        S, R = (np.load(one) for one, *_ in files)
        spacing, jitter = options.get("spacing", 15), options.get("jitter", 2)
        suite.check(S.dtype == R.dtype == np.float64 and S.flags.f_contiguous, "positions are of", S.dtype, R.dtype)
        suite.close(R, stations(shape["cols"], options.get("col-line", np.ceil(np.sqrt(shape["cols"]))), spacing), 0, "receivers", options)
        moved = S - stations(shape["rows"], options.get("row-line", np.ceil(np.sqrt(shape["rows"]))), spacing)
        suite.check((not moved.any()) if jitter == 0 else 0.8 < moved.std() / jitter < 1.2, "sources are moved by", moved.std(), options)
        A, G = problem[0], waves(S, R, options.get("frequency", 30), options.get("velocity", 1800))
        scale = 2.0**np.round(np.log2(np.linalg.norm(A) / np.linalg.norm(G)))
        # The phase of a wave after 4 km is at most 500 radians.
        suite.close(A, scale * G, 300 * np.finfo(A.dtype).eps * np.abs(A).max(), "the formula of waves", options)
        suite.check(0.7 < np.linalg.norm(A, 2) < 1.42, "the norm of A is", np.linalg.norm(A, 2), options)
    for rows, cols in ((0, 3), (3, 0), (1, 1)):
        make_on_several(suite, kind="waves", rows=rows, cols=cols, rhs=1)


def check_noise(suite):
    for dtype in ("f64", "c64"):
        problem = make_on_several(suite, rows=1500, cols=10, rhs=3, dtype=dtype, noise=0.2)
        if problem is not None:
            A, X, B = problem
            noise = B - A @ X
            level = np.linalg.norm(noise, axis=0) / np.linalg.norm(A @ X, axis=0)
            # The standard deviation of a mean of 1500 squares of uniform numbers is 2.3 %, of their root half of that.
            suite.check(np.abs(level / 0.2 - 1).max() < 0.06, "noise level", level, "instead of 0.2", dtype)
            correlation = np.abs(np.corrcoef(noise.T) - np.eye(3)).max()
            suite.check(correlation < 0.15, "columns' noise is correlated:", correlation)


def test(suite, full):
    check_random(suite)
    check_spectra(suite)
    check_condition(suite)
    check_multiples(suite)
    check_waves(suite)
    check_noise(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
