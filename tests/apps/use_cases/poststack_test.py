# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops poststack`: model, background, data and the four inversions against NumPy and SciPy, and that neither ranks
nor cuts nor device matter. With the section of PyLops' tutorial in the file that POSTSTACK_IMPEDANCE names, also the figures of
PyLops-MPI. poststack_test.py LAUNCH PROGRAM [--full]"""
import os
import sys
from pathlib import Path

import numpy as np
from scipy.signal import filtfilt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from section import derivative_matrix, invert, random_section, relative, wavelet_matrix  # noqa: E402

NAMES = ("model", "background", "data", "inverted")
# Of PyLops-MPI 0.7 on one rank, with 20 lines of every third trace: norms, and costs of CGLS by iteration.
PYLOPS_NORMS = {"model": 1926.3248, "background": 1915.198, "data": 196.01580}
PYLOPS_COSTS = {0: 190.55998746, 1: 75.68966098, 10: 10.66001435}

# Iterations of each inversion, so few that rounding is not amplified beyond the bounds. In exact arithmetic all lines would stay
# alike; how they differ by rounding, CGLS amplifies, by 1e9 in 20 iterations of ADMM's system.
INVERSIONS = {"none": 15, "normal-equations": 10, "stacked": 15, "tv": 3}
INNER = 3
# Those that each of them has a use for, as reports have them.
OPTIONS = {"none": {}, "normal-equations": {"weight": 100}, "stacked": {"weight": 100}, "tv": {"sigma": 0.01, "tau": 0.0825, "inner": INNER}}


class Problem:
    """The problem with its operators, written from their formulas."""

    def __init__(self, model):
        self.model, self.background = model, model
        self.G = wavelet_matrix(model.shape[2]) @ derivative_matrix(model.shape[2])
        for axis, length in enumerate((5, 30, 20)):
            if model.shape[axis] > 3 * length:
                self.background = filtfilt(np.ones(length) / length, 1, self.background, axis=axis)
        self.data = self.forward(model)

    def forward(self, m):
        return m @ self.G.T

    def adjoint(self, d):
        return d @ self.G

    @staticmethod
    def laplacian(m, transposed=False):
        """The sum of centred second derivatives, which are 0 at both ends."""
        y = np.zeros_like(m)
        for axis in range(3):
            x, out = np.moveaxis(m, axis, 0), np.moveaxis(y, axis, 0)
            if transposed:
                inner = x[1:-1]
                out[2:] += inner
                out[1:-1] -= 2 * inner
                out[:-2] += inner
            else:
                out[1:-1] += x[2:] - 2 * x[1:-1] + x[:-2]
        return y

    @staticmethod
    def gradient(m):
        return np.array([np.diff(m, axis=axis, append=np.take(m, [-1], axis)) for axis in range(3)])

    @staticmethod
    def gradient_adjoint(g):
        m = np.zeros(g.shape[1:])
        for axis in range(3):
            x, out = np.moveaxis(g[axis], axis, 0), np.moveaxis(m, axis, 0)
            out[1:] += x[:-1]
            out[:-1] -= x[:-1]
        return m

    def cgls(self, forward, adjoint, data, x, iterations):
        """From x, with the residual norms. Data are lists of arrays."""
        dot = lambda a, b: sum(np.vdot(u, v) for u, v in zip(a, b))
        r = [d - y for d, y in zip(data, forward(x))]
        p = s = adjoint(r)
        gamma, costs = np.vdot(s, s), [np.sqrt(dot(r, r))]
        for _ in range(iterations):
            q = forward(p)
            alpha = gamma / dot(q, q)
            x, r = x + alpha * p, [u - alpha * v for u, v in zip(r, q)]
            s = adjoint(r)
            gamma, before = np.vdot(s, s), gamma
            p = s + gamma / before * p
            costs.append(np.sqrt(dot(r, r)))
        return x, costs

    def none(self, iterations):
        return self.cgls(lambda m: [self.forward(m)], lambda d: self.adjoint(d[0]), [self.data], self.background, iterations)

    def stacked(self, iterations, weight=100):
        root = np.sqrt(weight)
        return self.cgls(lambda m: [self.forward(m), root * self.laplacian(m)],
                         lambda d: self.adjoint(d[0]) + root * self.laplacian(d[1], True),
                         [self.data, 0 * self.data], self.background, iterations)

    def normal_equations(self, iterations, weight=100):
        def normal(m):
            return self.adjoint(self.forward(m)) + weight * self.laplacian(self.laplacian(m), True)
        x = self.background
        p = r = self.adjoint(self.data) - normal(x)
        gamma = np.vdot(r, r)
        costs = [np.sqrt(gamma)]
        for _ in range(iterations):
            q = normal(p)
            alpha = gamma / np.vdot(p, q)
            x, r = x + alpha * p, r - alpha * q
            gamma, before = np.vdot(r, r), gamma
            p = r + gamma / before * p
            costs.append(np.sqrt(gamma))
        return x, costs

    def tv(self, iterations, sigma=0.01, tau=0.99 / 12, inner=INNER):
        x, root = self.background, np.sqrt(tau)
        z = self.gradient(x)
        u = 0 * z
        def objective(x):
            return np.linalg.norm(self.forward(x) - self.data) ** 2 / 2 + sigma * np.abs(self.gradient(x)).sum()
        costs = [objective(x)]
        for _ in range(iterations):
            x, _ = self.cgls(lambda m: [self.forward(m), self.gradient(m) / root],
                             lambda d: self.adjoint(d[0]) + self.gradient_adjoint(d[1]) / root,
                             [self.data, (z - u) / root], x, inner)
            v = self.gradient(x) + u
            z = np.sign(v) * np.maximum(np.abs(v) - tau * sigma, 0)
            u = v - z
            costs.append(objective(x))
        return x, costs


class WeightedProblem(Problem):
    """Data count by their weights."""

    def __init__(self, model, weights):
        self.weights = weights
        super().__init__(model)

    def forward(self, m):
        return self.weights * super().forward(m)

    def adjoint(self, d):
        return super().adjoint(self.weights * d)


def check_against_numpy(suite, shape, cases):
    """A section from a file, of which every second trace is taken. In the larger one all axes are smoothed."""
    lines, traces, samples = shape
    section = random_section(np.random.default_rng(1), samples, 2 * traces - 1)
    np.save(suite.folder / "impedance.npy", np.asfortranarray(section) if lines % 2 else section)
    problem = Problem(np.tile(np.log(section)[:, ::2].T, (lines, 1, 1)))
    expected = {kind: getattr(problem, kind.replace("-", "_"))(iterations) for kind, iterations in INVERSIONS.items()}
    for kind, ranks, words in cases:
        of_kind = ["--inner", INNER] if kind == "tv" else []
        result = invert(suite, "poststack", NAMES, ranks, *words, *of_kind, model="impedance.npy", lines=lines, decimate=2,
                        regularization=kind, iterations=INVERSIONS[kind])
        if result is None:
            continue
        costs, saved, report = result
        inverted, expected_costs = expected[kind]
        bound = 2e-4 if "f32" in words else 1e-11
        about = (kind, ranks, words)
        for name in ("model", "background", "data"):
            suite.check(relative(saved[name], getattr(problem, name)) < bound, name, *about)
            suite.check(abs(report["figures"][f"norm of the {name}"] / np.linalg.norm(getattr(problem, name)) - 1) < bound,
                        "norm of the", name, *about)
        suite.check(relative(costs[:, 0], np.array(expected_costs)) < 10 * bound, "costs", *about,
                    relative(costs[:, 0], np.array(expected_costs)))
        suite.check(relative(saved["inverted"], inverted) < 10 * bound, "inverted", *about, relative(saved["inverted"], inverted))
        suite.check(abs(report["figures"]["relative model error"] - relative(inverted, problem.model)) < 10 * bound,
                    "model error", report["figures"], *about)
        suite.check(report["iterations"] == INVERSIONS[kind], "iterations", report["iterations"], *about)
        options = {name: value for name, value in report["options"].items() if name not in ("iterations", "tolerance")}
        suite.check(options == {"regularization": kind, **OPTIONS[kind]}, "options in the report", options, *about)
        suite.check(report["solver"] == {"tv": "admm", "normal-equations": "cg"}.get(kind, "cgls"), "solver", *about)


def check_generated(suite):
    """The section that is generated varies from line to line, is the same on any ranks, and is found again by the data."""
    first = None
    for ranks, words in [(1, []), (4, ["--grid", "2x2"]), (6, ["--cut", "traces"])]:
        result = invert(suite, "poststack", NAMES, ranks, *words, lines=6, traces=70, samples=120, iterations=15)
        if result is None:
            continue
        costs, saved, report = result
        problem = Problem(saved["model"])
        suite.check(saved["model"].shape == (6, 24, 120), "shape", saved["model"].shape)
        suite.check(relative(saved["background"], problem.background) < 1e-12, "background")
        suite.check(relative(saved["model"][1:], saved["model"][:-1]) > 0.01, "lines are alike")
        suite.check(len(costs) == 16 and (np.diff(costs[:, 0]) < 0).all(), "costs", costs[:3])
        suite.check(relative(saved["inverted"], saved["model"]) < 0.7 * relative(saved["background"], saved["model"]),
                    "the inversion is no better than the background", report["figures"])
        if first is not None:
            suite.check(np.array_equal(saved["model"], first["model"]), "another model on", ranks)
            suite.check(relative(saved["inverted"], first["inverted"]) < 1e-10, "another inversion on", ranks)
        first = first or saved


def check_solvers(suite):
    """In exact arithmetic LSQR makes the iterates of CGLS."""
    results = [invert(suite, "poststack", NAMES, 2, "--solver", solver, "--regularization", "stacked", lines=3, traces=20,
                      samples=70, iterations=6) for solver in ("cgls", "lsqr")]
    if None not in results:
        suite.check(relative(results[1][0], results[0][0]) < 1e-8, "costs of LSQR and CGLS")


def check_reference_figures(suite, full):
    path = os.environ.get("POSTSTACK_IMPEDANCE")
    if not path:
        return
    first = None
    for ranks, words in [(1, []), (2, []), (3, []), (4, []), (6, [])] if full else [(1, []), (3, [])]:
        result = invert(suite, "poststack", NAMES, ranks, *words, model=path, iterations=10)
        if result is None:
            continue
        costs, saved, report = result
        suite.check(saved["model"].shape == (20, 267, 550), "shape", saved["model"].shape)
        for name, norm in PYLOPS_NORMS.items():
            suite.check(abs(report["figures"][f"norm of the {name}"] / norm - 1) < 1e-7, "norm of the", name, report["figures"])
        for k, cost in PYLOPS_COSTS.items():
            suite.check(abs(costs[k, 0] / cost - 1) < 1e-9, "cost", k, costs[k, 0], "on", ranks)
        if first is not None:
            suite.check(relative(saved["inverted"], first) < 1e-10, "inversion on", ranks)
        first = saved["inverted"] if first is None else first


def check_plan(suite):
    """--dry-run of each regularization and solver, also with costs, a file's section, and own data."""
    sizes, few = (["--lines", 12, "--traces", 200, "--samples", 500, "--decimate", 1], ["--lines", 1, "--traces", 3, "--samples", 20])
    rng = np.random.default_rng(6)
    for name, (lines, traces, samples) in {"large": (12, 200, 500), "small": (1, 3, 20)}.items():
        np.save(suite.folder / f"{name}.npy", rng.uniform(1, 2, (lines, traces, samples)))
        np.save(suite.folder / f"{name}_wavelets.npy", rng.standard_normal((lines, traces, 101)))
        np.save(suite.folder / f"{name}_weights.npy", rng.uniform(1, 2, (lines, traces)))
    np.save(suite.folder / "section.npy", rng.uniform(1, 2, (500, 4000)))
    np.save(suite.folder / "one.npy", rng.standard_normal(41))
    own, by_traces = ([["--data", f"{name}.npy", "--background", f"{name}.npy", "--wavelet", wavelet] for name, wavelet in both]
                      for both in ((("large", "one.npy"), ("small", "one.npy")), (("large", "large_wavelets.npy"), ("small", "small_wavelets.npy"))))
    tv = ["--regularization", "tv", "--inner", 1]
    for ranks, words, large, small in [
            (1, [], sizes, few), (3, ["--solver", "lsqr"], sizes, few), (2, ["--solver", "lsmr", "--regularization", "stacked"], sizes, few),
            (2, ["--regularization", "normal-equations", "--cut", "traces"], sizes, few), (1, tv, sizes, few),
            (2, [*tv, "--cost", "costs", "--cut", "samples"], sizes, few), (3, [*tv, "--dtype", "f32"], sizes, few),
            (2, [], ["--model", "section.npy", "--decimate", 1, "--lines", 1], few), (2, ["--regularization", "stacked"], *own),
            (2, [], *by_traces), (1, ["--regularization", "normal-equations"], *by_traces),
            (2, [], *([*words, "--weights", f"{name}_weights.npy"] for name, words in zip(("large", "small"), own)))]:
        suite.check_plan("poststack", [*large, *words, "--iterations", 1], [*small, *words, "--iterations", 1], ranks)


def check_errors(suite):
    np.save(suite.folder / "zero.npy", np.array([[1.0, 2.0], [3.0, 0.0]]))
    np.save(suite.folder / "complex.npy", np.ones((2, 2), complex))
    np.save(suite.folder / "empty.npy", np.ones((0, 2)))
    np.save(suite.folder / "nan.npy", np.array([[1.0, 2.0], [3.0, np.nan]]))
    for words, status, text in [(["--model", "zero.npy"], 65, "an impedance is 0"), (["--model", "complex.npy"], 65, "must be real"),
                                (["--model", "nan.npy"], 65, "nan.npy holds nan at row 1, column 1 (from 0)"), (["--model", "empty.npy"], 65, "has no elements"), (["--model", "none.npy"], 65, "none.npy"),
                                (["--lines", "0"], 2, "--lines"), (["--decimate", "0"], 2, "--decimate"),
                                (["--regularization", "l2"], 2, "--regularization"), (["--solver", "cg"], 2, "--solver"),
                                (["--regularization", "tv", "--tau", "0"], 2, "tau is 0"), (["--inner", "0"], 2, "--inner"),
                                *[(words, 2, f"{words[0]} is an option of --regularization")
                                  for words in (["--weight", "7"], ["--sigma", "5"], ["--tau", "3"], ["--inner", "2"],
                                                ["--weight", "7", "--regularization", "tv"],
                                                ["--tau", "3", "--regularization", "stacked"])]]:
        run = suite.run("poststack", *words, ranks=3)
        suite.succeeded(run, status)
        suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], "error for", words, run.errors)


def check_wavelets(suite, made, own):
    """A wavelet for each trace, against CGLS in NumPy with a dense matrix for each."""
    lines, traces, samples = made["data"].shape
    wavelets = np.random.default_rng(5).standard_normal((lines, traces, 7))
    np.save(suite.folder / "wavelets.npy", wavelets)
    derivative = (np.eye(samples, k=1) - np.eye(samples, k=-1)) / 2
    derivative[[0, -1]] = 0
    lags = np.arange(samples)[:, None] - np.arange(samples) + 3
    G = np.where((0 <= lags) & (lags < 7), wavelets[..., np.clip(lags, 0, 6)], 0) @ derivative
    forward, adjoint = (lambda m: (G @ m[..., None])[..., 0]), (lambda d: (np.swapaxes(G, -1, -2) @ d[..., None])[..., 0])
    m = made["background"].copy()
    r = made["data"] - forward(m)
    p = s = adjoint(r)
    for _ in range(8):
        q = forward(p)
        gamma = np.sum(s * s)
        alpha = gamma / np.sum(q * q)
        m, r = m + alpha * p, r - alpha * q
        s = adjoint(r)
        p = s + np.sum(s * s) / gamma * p
    for ranks, words in ((1, []), (3, []), (4, ["--cut", "traces"]), (1, ["--cut", "samples"]), (6, ["--cut", "samples"])):
        suite.succeeded(suite.run("poststack", *own, "--wavelet", "wavelets.npy", *words, "--iterations", 8, "--save", "own", "--quiet",
                                  ranks=ranks))
        suite.close(np.load(suite.folder / "own/inverted.npy"), m, 1e-8, "a wavelet for each trace on", ranks, words)


def check_weights(suite):
    """Weights of traces and of samples, with missing data, in all four inversions."""
    rng = np.random.default_rng(9)
    model = np.log(rng.uniform(1, 2, (3, 5, 40)).cumsum(axis=2))
    noise = rng.standard_normal(model.shape)
    of_traces = rng.uniform(0.5, 2, (3, 5))
    of_traces[1, 2] = 0
    of_samples = of_traces[..., None] * rng.uniform(0.5, 1, model.shape)
    of_samples[2, :2, 10:20] = 0
    a = (np.pi * 15 * 0.004 * np.arange(-20, 21)) ** 2
    np.save(suite.folder / "ricker.npy", (1 - 2 * a) * np.exp(-a))
    for name, weights, cases in (("of_traces", of_traces, [("none", 1, []), ("tv", 3, []), ("stacked", 6, ["--cut", "samples"])]),
                                 ("of_samples", of_samples, [("none", 4, ["--cut", "samples"]), ("normal-equations", 3, ["--cut", "traces"]), ("stacked", 2, [])])):
        of_data = np.broadcast_to(weights[..., None] if weights.ndim == 2 else weights, model.shape)
        problem = WeightedProblem(model, of_data)
        problem.data += of_data * noise
        np.save(suite.folder / "weights.npy", weights)
        np.save(suite.folder / "gaps.npy", np.where(of_data == 0, np.nan, Problem(model).data + noise))
        np.save(suite.folder / "smooth.npy", np.exp(problem.background))
        for kind, ranks, words in cases:
            inverted, costs = getattr(problem, kind.replace("-", "_"))(INVERSIONS[kind])
            more = ["--inner", INNER] if kind == "tv" else []
            run = suite.run("poststack", "--data", "gaps.npy", "--background", "smooth.npy", "--wavelet", "ricker.npy", "--weights", "weights.npy", "--regularization", kind,
                            "--iterations", INVERSIONS[kind], *words, *more, "--save", "own", "--cost", "costs", "--quiet", ranks=ranks)
            if not suite.succeeded(run):
                continue
            suite.check(relative(np.load(suite.folder / "own/inverted.npy"), inverted) < 1e-9, "inverted with weights", name, kind, ranks)
            suite.check(relative(np.loadtxt(suite.folder / "costs")[:, 1], np.array(costs)) < 1e-9, "costs with weights", name, kind, ranks)


def check_own_data(suite):
    """The files that a generated run saves, inverted as the user's own, give its result on any number of ranks."""
    sizes = ["--lines", 3, "--traces", 13, "--samples", 40]
    suite.succeeded(suite.run("poststack", *sizes, "--iterations", 20, "--save", "made", "--quiet"))
    made = {name: np.load(suite.folder / "made" / f"{name}.npy") for name in ("data", "background", "inverted")}
    np.save(suite.folder / "smooth.npy", np.exp(made["background"]))
    a = (np.pi * 15 * 0.004 * np.arange(-20, 21)) ** 2
    np.save(suite.folder / "ricker.npy", (1 - 2 * a) * np.exp(-a))
    own = ["--data", "made/data.npy", "--background", "smooth.npy"]
    wavelet = ["--wavelet", "ricker.npy"]
    for ranks, words in ((1, []), (4, ["--cut", "samples"]), (3, []), (2, ["--cut", "traces"])):
        suite.succeeded(suite.run("poststack", *own, *wavelet, *words, "--iterations", 20, "--save", "own", "--quiet", ranks=ranks))
        suite.close(np.load(suite.folder / "own/inverted.npy"), made["inverted"], 1e-9, "own data on", ranks, words)
    check_wavelets(suite, made, own)
    np.save(suite.folder / "flat.npy", np.zeros_like(made["data"]))
    np.save(suite.folder / "even.npy", np.ones(4))
    np.save(suite.folder / "section.npy", made["data"][0])
    places = {"data": (2, 3, 7), "smooth": (1, 0, 39), "wavelets": (0, 4, 2)}
    arrays = {"data": made["data"], "smooth": np.exp(made["background"]), "wavelets": np.ones((3, 5, 3))}
    for name, place in places.items():
        arrays[name][place] = -np.inf if name == "data" else np.nan
        np.save(suite.folder / f"wrong_{name}.npy", arrays[name])
    for words, status, text in [([*own[:2], *wavelet], 2, "--data requires --background"), ([*own[2:], *wavelet], 2, "--background requires --data"),
                                ([*own, "--wavelet", "made/data.npy"], 65, "wavelets of the traces of made/data.npy are 3 x 5 of f64"),
                                (own, 2, "--data requires --wavelet"), ([*own[:3], "flat.npy", *wavelet], 65, "an impedance is 0"),
                                ([*own[:3], "section.npy", *wavelet], 65, "lines x traces x samples, but is 5 x 40"),
                                ([*own, "--wavelet", "even.npy"], 65, "odd length"), ([*own, *wavelet, "--lines", 3], 2, "--lines"),
                                ([*own[:3], "ricker.npy", *wavelet], 65, "ricker.npy"),
                                (["--data", "wrong_data.npy", *own[2:], *wavelet], 65, "wrong_data.npy holds -inf at (2, 3, 7) (from 0), in the part of rank 2"),
                                ([*own[:3], "wrong_smooth.npy", *wavelet, "--cut", "samples"], 65, "wrong_smooth.npy holds nan at (1, 0, 39) (from 0), in the part of rank 2"),
                                ([*own, "--wavelet", "wrong_wavelets.npy"], 65, "wrong_wavelets.npy holds nan at (0, 4, 2)")]:
        run = suite.run("poststack", *words, "--save", "refused", ranks=3)
        suite.check(run.status == status and len(run.error_lines) == 1 and text in run.error_lines[0], words, run.status, run.errors)


def test(suite, full):
    every = [(kind, ranks, words) for kind in INVERSIONS
             for ranks, words in [(1, []), (2, ["--cut", "samples"]), (3, ["--cut", "traces"]), (6, [])]]
    check_against_numpy(suite, (5, 7, 62), every + [(kind, 4, ["--grid", "2x2"]) for kind in INVERSIONS]
                        + [("none", 2, ["--dtype", "f32"])])
    check_against_numpy(suite, (16, 92, 62), every if full else
                        [("none", 3, []), ("tv", 4, []), ("stacked", 2, ["--cut", "samples"])])
    check_generated(suite)
    check_plan(suite)
    check_own_data(suite)
    check_weights(suite)
    check_solvers(suite)
    check_reference_figures(suite, full)
    check_errors(suite)


if __name__ == "__main__":
    program.main(test, __doc__, probe=("poststack", "--lines", "1", "--traces", "1", "--samples", "2", "--iterations", "0", "--quiet"))
