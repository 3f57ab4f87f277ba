# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops lsm`: model, traces, image and inversion against a reference in NumPy, costs against those of PyLops, and
that neither ranks nor grid nor device matter. lsm_test.py LAUNCH PROGRAM [--full]"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

# Of PyLops-MPI 0.7 with the same operator and CGLS, one rank in double precision: the residual norm by iteration.
PYLOPS_COSTS = {0: 372.252681850208, 1: 202.5071826628793, 2: 140.4950329010714, 10: 38.11847878504238,
                50: 5.425009109824719, 100: 2.8359155480108797}
PYLOPS_MODEL_ERROR = 0.5537


class Survey:
    """The problem with its operator, written from its formulas."""

    def __init__(self, nx=81, nz=60, spacing=4.0, velocity=1000.0, sources=10, receivers=11, first=40.0, last=284.0,
                 source_depth=10.0, receiver_depth=20.0, samples=651, interval=0.004, frequency=20.0, half_wavelet=40):
        self.shape, self.traces = (nx, nz), (sources, receivers, samples)
        z, x = np.meshgrid(spacing * np.arange(nz), spacing * np.arange(nx))
        def times(count, depth):
            return [np.hypot(x - at, z - depth).ravel() / velocity for at in np.linspace(first, last, count)]
        self.arrivals = np.array([[(s + r) / interval for r in times(receivers, receiver_depth)]
                                  for s in times(sources, source_depth)])
        t = interval * np.arange(-half_wavelet, half_wavelet + 1)
        self.wavelet = (1 - 2 * (np.pi * frequency * t) ** 2) * np.exp(-(np.pi * frequency * t) ** 2)
        self.model = np.zeros(self.shape)
        self.model[:, nz // 2], self.model[:, nz * 5 // 6] = -1, 0.5

    def each_trace(self):
        """Number of source and receiver, samples and weights of the points that are heard in time, and which they are."""
        for s, r in np.ndindex(self.traces[:2]):
            t = self.arrivals[s, r]
            heard = np.flatnonzero(np.floor(t) < self.traces[2] - 1)
            it = np.floor(t[heard]).astype(int)
            yield (s, r), it, t[heard] - it, heard

    def same(self, trace, wavelet):
        half = len(wavelet) // 2
        return np.convolve(trace, wavelet, "full")[half:half + len(trace)]

    def forward(self, image):
        data = np.zeros(self.traces)
        m = image.ravel()
        for at, it, w, heard in self.each_trace():
            np.add.at(data[at], it, (1 - w) * m[heard])
            np.add.at(data[at], it + 1, w * m[heard])
            data[at] = self.same(data[at], self.wavelet)
        return data

    def adjoint(self, data):
        m = np.zeros(self.shape).ravel()
        for at, it, w, heard in self.each_trace():
            trace = self.same(data[at], self.wavelet[::-1])
            m[heard] += (1 - w) * trace[it] + w * trace[it + 1]
        return m.reshape(self.shape)

    def cgls(self, data, iterations):
        """The solution and the residual norms."""
        x, r = np.zeros(self.shape), data.copy()
        p = s = self.adjoint(r)
        gamma, costs = np.sum(s * s), [np.linalg.norm(r)]
        for _ in range(iterations):
            q = self.forward(p)
            alpha = gamma / np.sum(q * q)
            x, r = x + alpha * p, r - alpha * q
            s = self.adjoint(r)
            gamma, before = np.sum(s * s), gamma
            p = s + gamma / before * p
            costs.append(np.linalg.norm(r))
        return x, np.array(costs)


class OwnSurvey(Survey):
    """Traces of a list of pairs of a source and a receiver anywhere below an image of two or three dimensions. Arrivals are
    spread over triangles if receivers have a distance."""

    def __init__(self, sizes, origin, sources, receivers, pairs, samples, wavelet, receiver_distance=None, spacing=5.0,
                 velocity=1200.0, interval=0.004):
        super().__init__(nx=2, nz=2)
        self.shape, self.traces, self.wavelet, self.pairs = tuple(sizes), (len(pairs), samples), wavelet, pairs
        axes = [first + spacing * np.arange(n) for first, n in zip(origin, sizes)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        lengths = {True: [np.linalg.norm(points - at, axis=1) for at in sources],
                   False: [np.linalg.norm(points - at, axis=1) for at in receivers]}
        self.arrivals = [(lengths[True][s] + lengths[False][r]) / velocity / interval for s, r in pairs]
        self.half_bases = [np.ones(len(points), int) for _ in pairs]
        if receiver_distance is not None:
            depths = [np.abs(points[:, -1] - at[-1]) for at in receivers]
            sines = [np.sqrt(1 - (depth / length) ** 2) for depth, length in zip(depths, lengths[False])]
            self.half_bases = [np.clip(np.floor(receiver_distance * sines[r] / velocity / interval + 0.5), 1, 8).astype(int)
                               for _, r in pairs]

    def each_triangle(self):
        """Number of the trace, samples, weights and numbers of the points with one triangle, and wavelet * triangle."""
        for at, (t, bases) in enumerate(zip(self.arrivals, self.half_bases)):
            for h in np.unique(bases):
                heard = np.flatnonzero((np.floor(t) < self.traces[1] - 1) & (bases == h))
                it = np.floor(t[heard]).astype(int)
                triangle = (h - np.abs(np.arange(1 - h, h))) / h ** 2
                yield at, it, t[heard] - it, heard, np.convolve(self.wavelet, triangle)

    def forward(self, image):
        data = np.zeros(self.traces)
        for at, it, w, heard, wavelet in self.each_triangle():
            trace, m = np.zeros(self.traces[1]), image.ravel()[heard]
            np.add.at(trace, it, (1 - w) * m)
            np.add.at(trace, it + 1, w * m)
            data[at] += self.same(trace, wavelet)
        return data

    def adjoint(self, data):
        m = np.zeros(self.shape).ravel()
        for at, it, w, heard, wavelet in self.each_triangle():
            trace = self.same(data[at], wavelet[::-1])
            m[heard] += (1 - w) * trace[it] + w * trace[it + 1]
        return m.reshape(self.shape)


def costs_in(path):
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(len(line) == 2 and int(line[0]) == k for k, line in enumerate(lines)), lines[:3]
    return np.array([float(line[1]) for line in lines])


def lsm(suite, ranks, *words, **options):
    """Costs, saved arrays and report."""
    given = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
    folder = suite.folder / "saved"
    run = suite.run("lsm", *given, *words, "--cost", "costs", "--save", folder, "--report", "R.json",
                    ranks=None if ranks == 1 else ranks, timeout=300)
    if not suite.succeeded(run):
        return None
    saved = {name: np.load(folder / f"{name}.npy") for name in ("model", "data", "migrated", "inverted")}
    return costs_in(suite.folder / "costs"), saved, json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def check_against_numpy(suite):
    """A small survey of odd sizes, in which some waves arrive too late."""
    options = {"nx": 13, "nz": 17, "spacing": 6.5, "velocity": 900.0, "sources": 5, "receivers": 3, "first": 7.0, "last": 61.0,
               "source_depth": 3.0, "receiver_depth": 1.5, "samples": 40, "interval": 0.005, "frequency": 15.0, "half_wavelet": 11}
    survey = Survey(**options)
    suite.check((survey.arrivals > 39).any(), "every wave arrives in time")
    data = survey.forward(survey.model)
    inverted, costs = survey.cgls(data, 8)
    for ranks, words in [(1, []), (3, []), (6, []), (4, ["--grid", "2x2"]), (6, ["--grid", "1x6"]),
                         (2, ["--dtype", "f32"])]:
        result = lsm(suite, ranks, *words, iterations=8, **options)
        if result is None:
            continue
        found, saved, report = result
        single = "f32" in words
        bound = 1e-4 if single else 1e-11
        suite.check(np.array_equal(saved["model"], survey.model), "model", ranks, words)
        suite.check(saved["data"].dtype == (np.float32 if single else np.float64), "dtype", saved["data"].dtype)
        suite.check(relative(saved["data"], data) < bound, "data", relative(saved["data"], data), ranks, words)
        suite.check(relative(saved["migrated"], survey.adjoint(data)) < bound, "migrated", ranks, words)
        suite.check(relative(saved["inverted"], inverted) < 100 * bound, "inverted", relative(saved["inverted"], inverted), ranks, words)
        suite.check(relative(found, costs) < 10 * bound, "costs", relative(found, costs), ranks, words)
        error = report["figures"]["relative model error"]
        suite.check(abs(error - relative(inverted, survey.model)) < 100 * bound, "model error", error, ranks, words)
        suite.check(report["command"] == "lsm" and report["iterations"] == 8 and "algorithm" not in report, "report", report)


def check_solvers(suite):
    """In exact arithmetic LSQR makes the iterates of CGLS; LSMR's normal residual falls."""
    options = {"nx": 13, "nz": 17, "sources": 4, "receivers": 3, "last": 80.0, "samples": 120, "iterations": 6}
    results = {solver: lsm(suite, 2, "--solver", solver, **options) for solver in ("cgls", "lsqr", "lsmr")}
    if None in results.values():
        return
    suite.check(relative(results["lsqr"][0], results["cgls"][0]) < 1e-8, "costs of LSQR and CGLS")
    suite.check((np.diff(results["lsmr"][0]) < 0).all(), "costs of LSMR", results["lsmr"][0])
    for solver, (_, _, report) in results.items():
        suite.check(report["solver"] == solver, "solver", report["solver"])


def check_reference_costs(suite, full):
    """Costs of the default survey are those of PyLops, on any ranks. On the double of a GPU few iterations take long."""
    first = None
    iterations = 100 if full or program.DEVICE == "cpu" else 15
    for ranks, words in [(1, []), (2, []), (3, []), (4, ["--grid", "2x2"]), (6, [])] if full else [(1, []), (3, [])]:
        result = lsm(suite, ranks, "--quiet", *words, iterations=iterations)
        if result is None:
            continue
        costs, saved, report = result
        suite.check(len(costs) == iterations + 1, len(costs), "costs")
        for k, expected in PYLOPS_COSTS.items():
            if k < len(costs):
                bound = 1e-6 if k <= 10 else 2e-2
                suite.check(abs(costs[k] - expected) <= bound * expected, "cost", k, costs[k], "instead of", expected, "on", ranks)
        error = report["figures"]["relative model error"]
        suite.check(iterations < 100 or abs(error - PYLOPS_MODEL_ERROR) < 1e-2, "model error", error, "on", ranks)
        if first is None:
            first = costs, saved
            continue
        suite.close(costs[:16], first[0][:16], 1e-10 * first[0][:16], "costs up to iteration 15 on", ranks)
        suite.check(relative(saved["inverted"], first[1]["inverted"]) < 1e-2, "model on", ranks)


def check_errors(suite):
    for words, text in [(["--velocity", "0"], "the velocity of waves is 0"), (["--interval", "0"], "the interval between samples is 0"),
                        (["--sources", "0"], "--sources"), (["--solver", "ista"], "--solver"), (["--dtype", "c64"], "--dtype")]:
        run = suite.run("lsm", *words, ranks=2)
        suite.succeeded(run, 2)
        suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], "error for", words, run.errors)


def check_own_data(suite):
    """The traces that a generated run saves, with its positions, give its images on any number of ranks."""
    image = ["--nx", 9, "--nz", 8, "--iterations", 10, "--quiet"]
    survey = ["--sources", 4, "--receivers", 3, "--samples", 90, "--first", 5, "--last", 29]
    suite.succeeded(suite.run("lsm", *image, *survey, "--save", "made"))
    positions = [(x, depth) for count, depth in ((4, 10), (3, 20)) for x in np.linspace(5, 29, count)]
    np.save(suite.folder / "positions.npy", np.array(positions))
    a = (np.pi * 20 * 0.004 * np.arange(-40, 41)) ** 2
    np.save(suite.folder / "ricker.npy", (1 - 2 * a) * np.exp(-a))
    own = ["--data", "made/data.npy", "--geometry", "positions.npy"]
    physics = ["--interval", 0.004, "--velocity", 1000]
    for ranks, words in ((1, []), (4, ["--grid", "2x2"]), (3, ["--wavelet", "ricker.npy"])):
        suite.succeeded(suite.run("lsm", *image, *physics, *own, *words, "--save", "own", ranks=ranks))
        for name in ("migrated", "inverted"):
            expected = np.load(suite.folder / "made" / f"{name}.npy")
            suite.close(np.load(suite.folder / "own" / f"{name}.npy"), expected, 1e-7 * abs(expected).max(), name, "on", ranks, words)
    # An image that begins elsewhere sees the same survey, moved.
    np.save(suite.folder / "moved.npy", np.array(positions) + [100, 0])
    suite.succeeded(suite.run("lsm", *image, *physics, *own[:3], "moved.npy", "--origin", 100, "--save", "own", ranks=2))
    suite.close(np.load(suite.folder / "own/inverted.npy"), expected, 1e-6 * abs(expected).max(), "moved")
    wrong = np.load(suite.folder / "made/data.npy")
    wrong[3, 1, 80:] = np.nan
    np.save(suite.folder / "wrong.npy", wrong)
    np.save(suite.folder / "lost.npy", np.array(positions) + [[0, np.inf if k == 4 else 0] for k in range(7)])
    np.save(suite.folder / "far.npy", np.load(suite.folder / "positions.npy") + [1e6, 0])
    for words, status, text in [([*own[:3], "far.npy"], 65, "no sample of these traces comes from the image"), (own[:2], 2, "--data requires --geometry"), (own[2:], 2, "--geometry requires --data"), ([*own[:3], "ricker.npy"], 65, "4 sources and 3 receivers is 7 x 2"),
                                (["--data", "ricker.npy", *own[2:]], 65, "sources x receivers x samples, but is 81"),
                                (["--data", "positions.npy", *own[2:]], 65, "the geometry of 7 traces is 7 x 4: x and depth of the source"),
                                ([*own, "--ny", 2], 65, "is 7 x 3: x, y and depth of each source"), (["--ny", 2], 2, "--ny requires --data"),
                                ([*own, "--sources", 4], 2, "--sources"), (["--data", "none.npy", *own[2:]], 65, "none.npy"),
                                (["--data", "wrong.npy", *own[2:]], 65, "wrong.npy holds nan at (3, 1, 80) (from 0), in the part of rank 1"),
                                ([*own[:3], "lost.npy"], 65, "lost.npy holds inf at row 4, column 1 (from 0)")]:
        run = suite.run("lsm", *physics, *words, "--save", "refused", ranks=2)
        suite.check(run.status == status and len(run.error_lines) == 1 and text in run.error_lines[0], words, run.status, run.errors)
    for given, missing in ((physics[:2], "--velocity"), (physics[2:], "--interval")):
        run = suite.run("lsm", *own, *given, "--save", "refused")
        suite.check(run.status == 2 and f"--data requires {missing}" in run.errors, given, run.status, run.errors)


def check_pairs(suite):
    """Traces of any pairs in two and three dimensions, and spread arrivals, against NumPy."""
    rng = np.random.default_rng(3)
    pairs = [(0, 1), (2, 0), (1, 1), (0, 1), (2, 2), (1, 0), (0, 2)]
    wavelet = np.array([0.2, -0.7, 1, -0.4, 0.1])
    np.save(suite.folder / "short.npy", wavelet)
    for sizes, origin, words in [((9, 8), (10, 0), ["--nx", 9, "--nz", 8, "--origin", 10]),
                                 ((5, 4, 6), (-3, 7, 0), ["--nx", 5, "--ny", 4, "--nz", 6, "--origin", -3, "--origin-y", 7])]:
        dimensions = len(sizes)
        low, high = np.array(origin), np.array(origin) + 5.0 * (np.array(sizes) - 1)
        sources, receivers = ([np.append(low[:-1] + (high - low)[:-1] * rng.random(dimensions - 1), depth + rng.random()) for _ in range(3)]
                              for depth in (-3, -6))
        for distance in (None, 30.0):
            survey = OwnSurvey(sizes, origin, sources, receivers, pairs, 40, wavelet, distance)
            suite.check(distance is None or len(np.unique(np.concatenate(survey.half_bases))) > 3, "triangles", survey.half_bases)
            data = survey.forward(rng.standard_normal(sizes)) + 0.1 * rng.standard_normal(survey.traces)
            inverted, _ = survey.cgls(data, 6)
            np.save(suite.folder / "traces.npy", data)
            np.save(suite.folder / "ends.npy", np.array([np.concatenate([sources[s], receivers[r]]) for s, r in pairs]))
            for ranks, grid in ((1, []), (3, []), (6, ["--grid", "2x3"])):
                spread = [] if distance is None else ["--anti-alias", distance]
                suite.succeeded(suite.run("lsm", "--data", "traces.npy", "--geometry", "ends.npy", "--wavelet", "short.npy", "--interval",
                                          0.004, "--velocity", 1200, "--spacing", 5, "--iterations", 6, "--quiet", *words, *spread,
                                          *grid, "--save", "pairs", ranks=ranks))
                migrated, found = (np.load(suite.folder / "pairs" / f"{name}.npy") for name in ("migrated", "inverted"))
                suite.check(relative(migrated, survey.adjoint(data)) < 1e-12, "migrated", sizes, distance, ranks)
                suite.check(relative(found, inverted) < 1e-9, "inverted", relative(found, inverted), sizes, distance, ranks)


class Weighted(Survey):
    """The traces of a survey times weights."""

    def __init__(self, survey, weights):
        self.shape, self.survey, self.weights = survey.shape, survey, weights

    def forward(self, image):
        return self.weights * self.survey.forward(image)

    def adjoint(self, data):
        return self.survey.adjoint(self.weights * data)


def check_weights(suite):
    """Weights of traces and of samples, with dead and wild traces, against CGLS in NumPy."""
    rng = np.random.default_rng(8)
    survey = Survey(nx=9, nz=8, sources=5, receivers=3, first=5, last=29, samples=90)
    data = survey.forward(rng.standard_normal(survey.shape)) + 0.1 * rng.standard_normal(survey.traces)
    of_traces = rng.uniform(0.5, 2, survey.traces[:2])
    of_traces[1, 0] = of_traces[4, 2] = 0
    of_samples = of_traces[..., None] * rng.uniform(0, 1, survey.traces)
    of_samples[2, 1, 30:60] = 0
    recorded = np.where(of_samples == 0, np.nan, data)
    recorded[4, 2] = 1e9
    np.save(suite.folder / "traces.npy", np.where(of_traces[..., None] == 0, np.nan, data))
    np.save(suite.folder / "recorded.npy", recorded)
    np.save(suite.folder / "of_traces.npy", of_traces.astype(np.float32))
    np.save(suite.folder / "of_samples.npy", np.asfortranarray(of_samples))
    np.save(suite.folder / "positions.npy", np.array([(x, depth) for count, depth in ((5, 10), (3, 20)) for x in np.linspace(5, 29, count)]))
    own = ["lsm", "--geometry", "positions.npy", "--interval", 0.004, "--velocity", 1000, "--nx", 9, "--nz", 8, "--iterations", 6, "--quiet"]
    for name, weights, words in (("traces", np.float32(of_traces)[..., None], ["--weights", "of_traces.npy"]),
                                 ("recorded", of_samples, ["--weights", "of_samples.npy"])):
        weighted = Weighted(survey, weights.astype(float))
        inverted, costs = weighted.cgls(weighted.weights * data, 6)
        for ranks, grid in ((1, []), (4, ["--grid", "2x2"]), (6, [])):
            run = suite.run(*own, "--data", f"{name}.npy", *words, *grid, "--save", "weighted", "--cost", "costs", ranks=ranks)
            if not suite.succeeded(run):
                continue
            migrated, found = (np.load(suite.folder / "weighted" / f"{each}.npy") for each in ("migrated", "inverted"))
            suite.check(relative(migrated, weighted.adjoint(weighted.weights * data)) < 1e-12, "migrated", name, ranks)
            suite.check(relative(found, inverted) < 1e-9, "inverted", relative(found, inverted), name, ranks)
            suite.check(relative(costs_in(suite.folder / "costs"), costs) < 1e-10, "costs", name, ranks)
    np.save(suite.folder / "negative.npy", np.where(of_traces == of_traces[2, 2], -2.5, of_traces))
    np.save(suite.folder / "zeros.npy", np.zeros((5, 3)))
    for words, status, text in [(["--weights", "negative.npy"], 65, "negative.npy: a weight is -2.5, but must not be negative"),
                                (["--weights", "zeros.npy"], 65, "zeros.npy: all weights are 0"),
                                (["--weights", "positions.npy"], 65, "positions.npy is 8 x 2, but weights of these data are 5 x 3 x 90, or 5 x 3, one for each trace"),
                                (["--weights", "recorded.npy"], 65, "recorded.npy holds nan at (1, 0, 0)"),
                                ([], 65, "recorded.npy holds nan at (1, 0, 0)")]:
        run = suite.run(*own, "--data", "recorded.npy", *words, "--save", "refused", ranks=2)
        suite.check(run.status == status and len(run.error_lines) == 1 and text in run.error_lines[0], words, run.status, run.errors)
    run = suite.run("lsm", "--weights", "of_traces.npy")
    suite.check(run.status == 2 and "--weights requires --data" in run.errors, run.errors)


def check_plan(suite):
    """--dry-run writes nothing, and says what memory a run takes, beside that of a small run."""
    large = ["--nx", 700, "--nz", 500, "--sources", 30, "--receivers", 30, "--samples", 1000, "--last", 2500, "--iterations", 1]
    for ranks, grid in ((1, []), (2, ["--grid", "1x2"]), (3, ["--grid", "2x1"])):
        suite.check_plan("lsm", [*large, *grid], ["--iterations", 1, *grid], ranks)


def test(suite, full):
    check_pairs(suite)
    check_plan(suite)
    check_against_numpy(suite)
    check_solvers(suite)
    check_own_data(suite)
    check_weights(suite)
    check_reference_costs(suite, full)
    check_errors(suite)


if __name__ == "__main__":
    program.main(test, __doc__, probe=("lsm", "--nx", "2", "--nz", "2", "--samples", "2", "--iterations", "0", "--quiet"))
