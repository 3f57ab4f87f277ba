# SPDX-License-Identifier: BSD-3-Clause
"""Compares `gridlops mdd` with a NumPy version of its problem, and with figures of PyLops-MPI. mdd_test.py LAUNCH PROGRAM [--full]

The reference is written from the formulas: events t = sqrt(t0^2 + h^2/v^2) between two samples, a Ricker wavelet, Hann tapers,
np.fft.rfft of each trace, and CGLS of Bjorck, Elfving and Strakos on the frequencies.
"""
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

# The wavelet is cut short, so that its frequency 0 counts, too.
SMALL = {"nx": 6, "ny": 11, "ox": -30.0, "dx": 12.0, "oy": -50.0, "dy": 11.0, "samples": 60, "interval": 0.02, "frequency": 9.0,
         "half-wavelet": 2, "nf": 23}
MODEL_EVENTS = [(0.2, 1100, 1)]
KERNEL_EVENTS = [(0.2, 1200, 1), (0.5, 1500, 0.6), (0.7, 2000, 0.5)]


def spikes(offset, events, samples, interval):
    trace = np.zeros(samples)
    for t0, velocity, amplitude in events:
        time = np.sqrt(t0**2 + offset**2 / velocity**2) / interval
        first = int(time)
        if first + 1 < samples:
            trace[first] += amplitude * (first + 1 - time)
            trace[first + 1] += amplitude * (time - first)
    return trace


def ends(n):
    taper = np.ones(n)
    half = np.hanning(9)[:5]
    for k in range(min(5, n)):
        taper[k] = min(taper[k], half[k])
        taper[n - 1 - k] = min(taper[n - 1 - k], half[k])
    return taper


class Reference:
    """The kernel of each frequency, and the models of some sources."""

    def __init__(self, p, sources=1):
        self.samples, self.nf, half = p["samples"], p["nf"], p["half-wavelet"]
        self.both = 2 * self.samples - 1
        x, y = (p["o" + a] + p["d" + a] * np.arange(p["n" + a]) for a in "xy")
        a = (np.pi * p["frequency"] * p["interval"] * np.arange(-half, half + 1)) ** 2
        wavelet = (1 - 2 * a) * np.exp(-a)
        G = np.zeros((len(y), len(x), self.both))
        for i, j in np.ndindex(len(y), len(x)):
            trace = np.convolve(spikes(x[j] - y[i], KERNEL_EVENTS, self.samples + half + 2, p["interval"]), wavelet)
            G[i, j, :self.samples] = trace[half:half + self.samples] * ends(len(y))[i] * ends(len(x))[j]
        unscaled = np.moveaxis(np.fft.rfft(G), -1, 0)[:self.nf]
        self.kernel_norm = np.linalg.norm(unscaled)
        self.G = unscaled * p["interval"] * np.sqrt(self.samples)
        length = x[-1] - x[0]
        places = x[0] + length * (np.arange(sources) + 0.5) / sources
        model = np.zeros((self.both, len(x), sources))
        for j, s in np.ndindex(len(x), sources):
            model[self.samples - 1:, j, s] = spikes(x[j] - places[s], MODEL_EVENTS, self.samples + 2, p["interval"])[:self.samples]
        self.m = self.spectrum(model)
        self.d = self.G @ self.m

    def spectrum(self, traces):
        """Of traces whose time 0 is in the middle, with the norms of the kept band."""
        spectrum = np.fft.rfft(np.fft.ifftshift(traces, axes=0), axis=0, norm="ortho")[:self.nf]
        spectrum[1:] *= np.sqrt(2)
        return spectrum

    def traces(self, spectrum):
        """The traces of this spectrum."""
        whole = np.zeros((self.samples, *spectrum.shape[1:]), complex)
        whole[:self.nf] = spectrum
        whole[1:] /= np.sqrt(2)
        return np.fft.fftshift(np.fft.irfft(whole, self.both, axis=0, norm="ortho"), axes=0)

    def cgls(self, iterations, axes):
        """The inversion, and the norms of the residual before each iteration and after; sums go over these axes."""
        def dot(z):
            return np.sum(np.abs(z) ** 2, axis=axes, keepdims=True)

        GH = self.G.conj().transpose(0, 2, 1)
        x, r = np.zeros_like(self.m), self.d.copy()
        s = GH @ r
        p, gamma = s, dot(s)
        norms = [np.sqrt(np.sum(np.abs(r) ** 2, axis=(0, 1)))]
        for _ in range(iterations):
            q = self.G @ p
            alpha = gamma / dot(q)
            x, r = x + alpha * p, r - alpha * q
            s = GH @ r
            gamma, before = dot(s), gamma
            p = s + gamma / before * p
            norms.append(np.sqrt(np.sum(np.abs(r) ** 2, axis=(0, 1))))
        return x, np.array(norms)


def options_of(p):
    return [word for name, value in p.items() for word in ("--" + name, value)]


def costs(path):
    return np.loadtxt(path, ndmin=2)


def saved(suite, name, sources):
    """Of an array (samples, traces, sources), or for one source (samples, traces)."""
    array = np.load(suite.folder / "saved" / f"{name}.npy")
    return array if sources > 1 else array[..., np.newaxis]


def check_small(suite, ranks, sources, iterations, tolerance, *options, axes=(0, 1)):
    reference = Reference(SMALL, sources)
    run = suite.run("mdd", *options_of(SMALL), "--sources", sources, "--iterations", iterations, "--cost", "C.txt", "--report", "R.json",
                    "--save", "saved", *options, ranks=ranks)
    what = (ranks, sources, *options)
    if not suite.succeeded(run):
        return None
    x, norms = reference.cgls(iterations, axes)
    scale = np.linalg.norm(norms[0])
    found = costs(suite.folder / "C.txt")
    suite.check(np.array_equal(found[:, 0], np.arange(iterations + 1)), "numbers of iterations", found[:, 0], *what)
    suite.close(found[:, 1], np.linalg.norm(norms, axis=1), tolerance * scale, "costs", *what)
    if sources > 1:
        suite.close(found[:, 2:], norms, tolerance * scale, "costs of columns", *what)
    for name, spectrum in {"data": reference.d, "adjoint": reference.G.conj().transpose(0, 2, 1) @ reference.d, "inverted": x}.items():
        traces = reference.traces(spectrum)
        suite.close(saved(suite, name, sources), traces, 10 * tolerance * np.linalg.norm(traces), name, *what)
    report = json.loads((suite.folder / "R.json").read_text())
    for name, value in {"kernel": reference.kernel_norm, "data": np.linalg.norm(reference.d), "inverted": np.linalg.norm(x)}.items():
        suite.check(abs(report["figures"]["norm of " + name] / value - 1) <= 10 * tolerance, "norm of", name, report["figures"], value, *what)
    return report


def test_problem(suite):
    """All figures agree on any number of ranks; iterations in time are those among the frequencies."""
    for ranks in (None, 2, 3, 4, 6):
        for domain in ("frequency", "time"):
            check_small(suite, ranks, 3 if ranks == 3 else 1, 5, 1e-10, "--dtype", "f64", "--domain", domain)
    check_small(suite, 2, 1, 5, 2e-4, "--domain", "time")
    check_small(suite, 4, 2, 5, 2e-4, "--grid", "2x2")


def test_groups(suite):
    """Groups of ranks that share frequencies have the results of ranks with whole frequencies."""
    for ranks in (None, 2, 5):
        for domain in ("frequency", "time"):
            check_small(suite, ranks, 2, 5, 1e-10, "--dtype", "f64", "--groups", "--domain", domain)
    # Small frequencies stay on one rank each. Three of these are fastest if two ranks share them all.
    large = {**SMALL, "nx": 200, "ny": 300, "dx": 0.3, "dy": 0.3, "nf": 3}  # of so few singular values that iteration 5 is rounding
    found = []
    for ranks, *options in ((2,), (2, "--groups"), (5, "--groups"), (4,)):
        suite.succeeded(suite.run("mdd", *options_of(large), "--iterations", 3, "--dtype", "f64", "--save", "large", "--report", f"R{ranks}.json",
                                  "--quiet", *options, ranks=ranks))
        found.append(np.load(suite.folder / "large/inverted.npy"))
        suite.check(np.linalg.norm(found[-1]) > 0, "norm of the model", ranks, options)
        suite.close(found[-1], found[0], 1e-10 * np.linalg.norm(found[0]), "three large frequencies", ranks, options)
    for ranks in (2, 4):  # four ranks share three frequencies unasked
        report = json.loads((suite.folder / f"R{ranks}.json").read_text())
        suite.check(report["options"]["groups"] is True and 1 <= report["figures"]["groups of ranks"] <= (1 if ranks == 2 else 3),
                    ranks, report["figures"], report["options"])


def test_independent(suite):
    """Each frequency of each source has a step of its own, and nothing is sent while they are solved."""
    for ranks in (None, 3, 6):
        check_small(suite, ranks, 2, 2, 1e-10, "--dtype", "f64", "--independent", "--tolerance", "0", axes=1)
    run = suite.run("mdd", *options_of(SMALL), "--dtype", "f64", "--independent", "--iterations", 100, "--sources", 2, "--report", "R.json",
                    ranks=4)
    if suite.succeeded(run):
        report = json.loads((suite.folder / "R.json").read_text())
        suite.check(len(report["columns"]) == 2 * SMALL["nf"], "columns", len(report["columns"]))
        iterations = sorted(column["iterations"] for column in report["columns"])
        suite.check(report["figures"]["least iterations"] == iterations[0] and report["figures"]["most iterations"] == iterations[-1],
                    "iterations", report["figures"], iterations)
        suite.check(iterations[0] < iterations[-1] <= 100, "easy frequencies end early", iterations)
        suite.check(all(column["reference_norm"] > 0 and 0 < column["tested_norm"] <= report["options"]["tolerance"] for column in report["columns"]),
                    "norms of what has converged", report["columns"][0], report["options"])


def test_compressed(suite):
    """Kernels that are compressed have the results of dense ones to the tolerance, and the report has the error."""
    for ranks, *words in ((None,), (3,), (4,), (6,), (2, "--domain", "time"), (3, "--independent", "--tolerance", "0"), (6, "--independent", "--tolerance", "0")):
        # Two iterations of singular values of any size make the errors larger.
        how = {"axes": 1} if "--independent" in words else {}
        report = check_small(suite, ranks, 2, 2, 1e-6, "--dtype", "f64", "--compress", 1e-9, *words, **how)
        if report is not None:
            figures = report["figures"]
            suite.check(0 < figures["error of the compressed kernel"] <= figures["largest error of a frequency"] <= 1e-9 and report["options"]["compress"] == 1e-9, figures)
    for with_words in ((), ("--independent", "--tolerance", 0)):
        found = {}
        for words in ((), ("--compress", 0.3)):
            suite.succeeded(suite.run("mdd", *options_of(SMALL), "--dtype", "f64", "--iterations", 2, "--save", "rough", "--report", "R.json", *with_words, *words, ranks=2))
            found[words] = np.load(suite.folder / "rough/inverted.npy")
        off = np.linalg.norm(found[("--compress", 0.3)] - found[()]) / np.linalg.norm(found[()])
        figures = json.loads((suite.folder / "R.json").read_text())["figures"]
        suite.check(1e-3 < off < 1 and 1e-3 < figures["error of the compressed kernel"] <= 0.3, "a rough kernel makes no difference", off, figures)
    for text, *words in (("--dry-run exclude", "--compress", 0.1, "--dry-run"), ("below 1", "--compress", 1), ("below 1", "--compress", 0), ("--compress", "--source-positions", "p.npy")):
        run = suite.run("mdd", *options_of(SMALL), *words)
        suite.succeeded(run, 2)
        suite.check(text in run.errors, text, run.errors)


def test_on_disk(suite):
    """Kernels on disks, compressed or not: the bits of those in memory, in the memory allowed."""
    if program.DEVICE != "cpu":
        return
    rng = np.random.default_rng(4)
    samples, ny, nx, rank = 30, 700, 600, 40

    def noise(*shape):
        return rng.standard_normal((*shape, 2)).astype(np.float32).view(np.complex64)[..., 0]
    G = np.stack([noise(ny, rank) @ noise(rank, nx) for _ in range(samples // 2 + 1)])
    G[0], G[-1] = G[0].real, G[-1].real
    np.save(suite.folder / "large_g.npy", G)
    np.save(suite.folder / "few_g.npy", G[:1])  # two ranks share it
    np.save(suite.folder / "large_d.npy", rng.standard_normal((samples, ny, 3)).astype(np.float32))
    plain_memory = {"MALLOC_PERTURB_": "0"}
    compressed, alone = ("--compress", 1e-4), ("--independent", "--tolerance", 0)
    with tempfile.TemporaryDirectory(dir=program.disk()) as scratch:
        # In memory and in groups, dense frequencies are stored as on disks.
        for ranks, kernel, words, in_memory_words in (
                (1, "large", compressed, ()), (2, "large", compressed, ()), (4, "large", (*compressed, "--domain", "time"), ()), (2, "large", (*compressed, *alone), ()),
                (1, "large", (), ("--groups",)), (2, "large", ("--solver", "lsqr"), ("--groups",)), (2, "few", (), ("--groups",)), (2, "large", ("--domain", "time"), ("--groups",)),
                (2, "large", alone, ())):
            what = (ranks, kernel, *words)

            def run(*more, status=0, ranks=ranks, kernel=kernel, words=words):
                found = suite.run("mdd", "--kernel", f"{kernel}_g.npy", "--data", "large_d.npy", "--iterations", 4, "--save", "large", "--report", "R.json",
                                  *words, *more, ranks=ranks, environment=plain_memory)
                suite.succeeded(found, status)
                return found, {} if status else json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
            _, in_memory = run(*in_memory_words)
            expected, taken = np.load(suite.folder / "large/inverted.npy"), max(in_memory["memory_bytes"]["peak"])
            stored = (G if kernel == "large" else G[:1]).nbytes / in_memory["figures"].get("times smaller", 1)
            refused, _ = run("--storage", "disk", "--memory", 1, "--scratch", scratch, status=2)
            least = re.search(r"a rank takes at least ([\d.]+) MiB with its kernels on a disk", refused.errors)
            if not suite.check(least, "nothing says what memory is the least:", refused.errors):
                continue
            memory = int(1.02 * 2**20 * float(least[1])) + (2 << 20)
            _, report = run("--storage", "disk", "--memory", memory, "--scratch", scratch)
            figures, peak = report["figures"], max(report["memory_bytes"]["peak"])
            suite.check(np.load(suite.folder / "large/inverted.npy").tobytes() == expected.tobytes(), "other bits than in memory", *what)
            suite.check(abs(figures["norm of kernel"] / in_memory["figures"]["norm of kernel"] - 1) < 1e-5, "norm", figures, in_memory["figures"], *what)
            suite.check(0.9 * stored < figures["disk_bytes"] < 1.2 * stored, "on disks", figures, "of", stored, *what)
            suite.check(peak <= 1.05 * memory and (ranks == 4 or kernel == "few" or peak < taken - 0.4 * stored / ranks), "takes", peak, "of", memory, "and in memory", taken, *what)
            suite.check(report["options"]["storage"] == "disk", report["options"])
            if kernel == "large":
                suite.check(figures["disk_bytes_read"] > (1 if "--independent" in words else 3) * stored, "read", figures, *what)
        suite.check(not os.listdir(scratch), "files are left:", os.listdir(scratch))
    for text, *words in (("--storage requires --kernel", "--storage", "disk"), ("--memory requires --storage", "--memory", "1G", "--compress", 0.1),
                         ("must be memory or disk", "--storage", "tape", "--kernel", "large_g.npy", "--data", "large_d.npy"),
                         ("--storage disk and --dry-run", "--storage", "disk", "--dry-run", "--kernel", "large_g.npy", "--data", "large_d.npy")):
        run = suite.run("mdd", *(() if "--kernel" in words else options_of(SMALL)), *words)
        suite.succeeded(run, 2)
        suite.check(text in run.errors, text, run.errors)


def test_solvers(suite):
    """Least squares by other methods: the same solution where all reach it."""
    norms = []
    for solver in ("cgls", "lsqr", "lsmr"):
        run = suite.run("mdd", *options_of(SMALL), "--dtype", "f64", "--iterations", 4, "--solver", solver, "--report", "R.json", ranks=2)
        if suite.succeeded(run):
            report = json.loads((suite.folder / "R.json").read_text())
            suite.check(report["solver"] == {"cgls": "one-pass-cgls"}.get(solver, solver), "solver", report["solver"])
            norms.append(report["figures"]["norm of inverted"])
    suite.check(abs(norms[1] / norms[0] - 1) < 1e-10, "CGLS and LSQR have the same iterates", norms)


def test_pylops(suite):
    """Figures that PyLops-MPI computes for its tutorial on one rank, in single precision: norms, and the residual's after 1 and 10."""
    run = suite.run("mdd", "--iterations", 50, "--cost", "C.txt", "--report", "R.json", ranks=2, timeout=120)
    if not suite.succeeded(run):
        return
    figures = json.loads((suite.folder / "R.json").read_text())["figures"]
    for name, value in {"kernel": 14605.06, "data": 59.70506, "adjoint": 1569.85, "inverted": 4.2121}.items():
        suite.check(abs(figures["norm of " + name] / value - 1) < 1e-3, "norm of", name, figures, "not", value)
    found = costs(suite.folder / "C.txt")
    for iteration, value in {1: 38.528, 10: 6.6674}.items():
        suite.check(abs(found[iteration, 1] / value - 1) < 1e-3, "cost", iteration, found[iteration], "not", value)


def test_refusals(suite):
    for options, text in [(("--nf", 61), "60 frequencies"), (("--nf", 9, "--independent", "--domain", "time"), "exclude each other"),
                          (("--nf", 9, "--independent", "--groups"), "exclude each other"),
                          (("--sources", 0), "--sources")]:
        run = suite.run("mdd", "--samples", 60, *options)
        suite.check(run.status == 2 and any(text in line for line in run.error_lines), run.command, run.status, run.errors)


def test_own_data(suite):
    """Kernels in time and in frequency, and data of several shots, against NumPy: the same model on any number of ranks."""
    rng = np.random.default_rng(4)
    receivers, sources, shots = 5, 4, 3
    g = rng.standard_normal((8, receivers, sources)) * np.exp(-np.arange(8))[:, None, None]
    g[0] += 3 * np.eye(receivers, sources)
    for samples, dtype in ((33, "f8"), (32, "f4")):
        G = np.fft.rfft(g, samples, axis=0)
        model = rng.standard_normal((samples, sources, shots))
        data = np.fft.irfft(G @ np.fft.rfft(model, axis=0), samples, axis=0)
        np.save(suite.folder / "time.npy", g.astype(dtype))
        np.save(suite.folder / "spectra.npy", G.astype(np.result_type(dtype, "c8")))
        np.save(suite.folder / "data.npy", data.astype(dtype))
        np.save(suite.folder / "shot.npy", data[..., 1].astype(dtype))
        for ranks, kernel, of, *options in ((1, "time", "data"), (4, "time", "data"), (6, "spectra", "data", "--independent"), (2, "spectra", "shot"),
                                            (3, "time", "shot", "--domain", "time"), (2, "time", "data", "--groups"),
                                            (6, "time", "data"), (4, "spectra", "data", "--groups"), (3, "spectra", "shot", "--groups", "--domain", "time")):
            run = suite.run("mdd", "--kernel", f"{kernel}.npy", "--data", f"{of}.npy", "--iterations", 300, "--tolerance", 1e-12 if dtype == "f8" else 1e-5,
                            "--save", "own", "--quiet", *options, ranks=ranks)
            suite.check(run.status in (0, 3), ranks, kernel, of, run.status, run.errors)
            found, expected = np.load(suite.folder / "own/inverted.npy"), model if of == "data" else model[..., 1]
            suite.close(found, expected, 1e-9 if dtype == "f8" else 2e-4, "own data", ranks, kernel, of, dtype)
            suite.check(found.dtype == dtype, found.dtype, "instead of", dtype)
    # Time 0 in the middle shifts the model as it shifts the data.
    run = suite.run("mdd", "--kernel", "time.npy", "--data", "shot.npy", "--time-zero", 16, "--iterations", 300, "--save", "own", "--quiet", ranks=2)
    suite.succeeded(run)
    suite.close(np.load(suite.folder / "own/inverted.npy"), expected, 2e-4, "time 0 in the middle")
    np.save(suite.folder / "complex.npy", data + 1j)
    np.save(suite.folder / "none.npy", data[:, :, :0])
    np.save(suite.folder / "four.npy", data[:, :4])
    np.save(suite.folder / "double.npy", g)
    for options, status, words in [(("--kernel", "time.npy"), 2, ["--kernel requires --data"]),
                                   (("--kernel", "shot.npy", "--data", "data.npy"), 65, ["shot.npy", "32 x 5", "--kernel"]),
                                   (("--kernel", "time.npy", "--data", "four.npy"), 65, ["time.npy has 5 receivers", "four.npy has 4"]),
                                   (("--kernel", "spectra.npy", "--data", "complex.npy"), 65, ["complex.npy", "real"]),
                                   (("--kernel", "time.npy", "--data", "none.npy"), 65, ["none.npy", "32 x 5 x 0"]),
                                   (("--kernel", "spectra.npy", "--data", "spectra.npy"), 65, ["spectra.npy"]),
                                   (("--kernel", "spectra.npy", "--data", "data.npy", "--nf", 18), 2, ["--nf 18", "17"]),
                                   (("--kernel", "time.npy", "--data", "data.npy", "--nf", 18), 2, ["--nf 18", "17"]),
                                   (("--kernel", "time.npy", "--data", "data.npy", "--time-zero", 32), 2, ["--time-zero 32", "32 samples"]),
                                   (("--kernel", "time.npy", "--data", "data.npy", "--nx", 4), 2, ["--nx", "--kernel"]),
                                   (("--kernel", "double.npy", "--data", "data.npy"), 65, ["double.npy is f64", "data.npy is f32", "one precision"]),
                                   (("--time-zero", 3), 2, ["--time-zero", "--kernel"]),
                                   (("--kernel", "missing.npy", "--data", "data.npy"), 65, ["missing.npy"])]:
        run = suite.run("mdd", *options, "--save", "refused", ranks=2)
        suite.check(run.status == status and len(run.error_lines) == 1 and all(word in run.errors for word in words), options, run.status, run.errors)
    suite.check(not (suite.folder / "refused").exists(), "a refused run made a folder")


def refused(suite, words, *options, status=65, ranks=2):
    run = suite.run("mdd", *options, "--save", "refused", "--iterations", 2, ranks=ranks)
    suite.check(run.status == status and len(run.error_lines) == 1 and all(word in run.errors for word in words), options, ranks, run.status, run.errors)


def test_one_shot(suite):
    """Data of one shot may count it by a third dimension. Then results do, too."""
    rng = np.random.default_rng(5)
    g, d = rng.standard_normal((16, 5, 4)), rng.standard_normal((16, 5, 1))
    for name, array in {"g": g, "spectra": np.fft.rfft(g, axis=0), "counted": d, "plain": d[..., 0], "turned": np.asfortranarray(d)}.items():
        np.save(suite.folder / f"{name}.npy", array)
    for ranks, kernel, *words in ((1, "g"), (3, "spectra"), (2, "g", "--domain", "time"), (4, "spectra", "--independent", "--tolerance", 0)):
        found = {}
        for data in ("plain", "counted", "turned"):
            suite.succeeded(suite.run("mdd", "--kernel", f"{kernel}.npy", "--data", f"{data}.npy", "--iterations", 3, "--save", "one", "--quiet", *words, ranks=ranks))
            found[data] = np.load(suite.folder / "one/inverted.npy")
        suite.check(found["plain"].shape == (16, 4), found["plain"].shape)
        for data in ("counted", "turned"):
            suite.check(np.array_equal(found[data], found["plain"][..., np.newaxis]), data, found[data].shape, "on", ranks, kernel, words)


def test_spectra_of_other_samples(suite):
    """Frequency 0 of real traces is real, and so is the last of an even number of samples, but of no odd one."""
    rng = np.random.default_rng(1)
    traces = rng.standard_normal((17, 6, 4)) * np.exp(-np.arange(17) / 4)[:, None, None]
    for samples in (16, 17):
        np.save(suite.folder / f"data{samples}.npy", rng.standard_normal((samples, 6, 2)))
        np.save(suite.folder / f"spectra{samples}.npy", np.fft.rfft(traces, samples, axis=0))
    for ranks in (1, 3):
        for options in ((), ("--groups",), ("--compress", 0.1), ("--storage", "disk"), ("--dry-run",), ("--nf", 2)):
            refused(suite, ["spectra17.npy: frequency 8, the last, is not real", "of 16 samples", "data16.npy", "of 17"],
                    "--kernel", "spectra17.npy", "--data", "data16.npy", *options, ranks=ranks)
        refused(suite, ["spectra16.npy: frequency 8, the last, is real", "of 17 samples", "data17.npy", "of 16"],
                "--kernel", "spectra16.npy", "--data", "data17.npy", ranks=ranks)
    G = np.load(suite.folder / "spectra16.npy")
    np.save(suite.folder / "shifted.npy", 1j * G)
    refused(suite, ["shifted.npy: frequency 0 has imaginary parts"], "--kernel", "shifted.npy", "--data", "data16.npy")
    # Fewer frequencies have no last one, rounding is none, and symmetric traces have spectra that are real.
    symmetric = np.fft.rfft(traces + traces[-np.arange(17)], axis=0)
    for array, samples in ((np.fft.rfft(traces, axis=0)[:8], 16), (G * (1 + 4e-15j), 16), (symmetric.real + 0j, 17)):
        np.save(suite.folder / "fits.npy", array)
        suite.succeeded(suite.run("mdd", "--kernel", "fits.npy", "--data", f"data{samples}.npy", "--iterations", 2, "--quiet", ranks=2))


def test_non_finite_files(suite):
    """NaN and infinity are refused with their place, whichever way a file is read."""
    rng = np.random.default_rng(6)
    g, d = rng.standard_normal((16, 6, 4)), rng.standard_normal((16, 6, 2))
    G = np.fft.rfft(g, axis=0)
    np.save(suite.folder / "d.npy", d)
    np.save(suite.folder / "g.npy", g)
    g[9, 5, 1], G[4, 3, 2], d[7, 2, 1] = np.nan, np.inf, np.nan
    for name, array in {"wrong_g": g, "wrong_spectra": G, "wrong_d": d, "wrong_shot": d[..., 1]}.items():
        np.save(suite.folder / f"{name}.npy", array)
    for ranks in (1, 4):
        for words in ((), ("--groups",), ("--domain", "time"), ("--compress", 0.1), ("--independent", "--tolerance", 0)):
            refused(suite, ["wrong_g.npy holds nan at (9, 5, 1) (from 0), in the part of rank"], "--kernel", "wrong_g.npy", "--data", "d.npy", *words, ranks=ranks)
            for more in ((), *([("--storage", "disk")] if program.DEVICE == "cpu" else [])):
                refused(suite, ["wrong_spectra.npy holds inf", "at (4, 3, 2) (from 0), in the part of rank"], "--kernel", "wrong_spectra.npy", "--data", "d.npy", *words, *more, ranks=ranks)
            refused(suite, ["wrong_d.npy holds nan at (7, 2, 1) (from 0)"], "--kernel", "g.npy", "--data", "wrong_d.npy", *words, ranks=ranks)
        refused(suite, ["wrong_shot.npy holds nan at (7, 2) (from 0)"], "--kernel", "g.npy", "--data", "wrong_shot.npy", ranks=ranks)
    np.save(suite.folder / "positions.npy", [[0, 0], [0, 1], [0, np.nan], [0, 3]])
    refused(suite, ["positions.npy holds nan at row 2, column 1"], "--kernel", "g.npy", "--data", "d.npy", "--compress", 0.1, "--source-positions", "positions.npy")


def test_large_kernel(suite):
    """A kernel whose traces are read in parts, and slices that several ranks read together, have the results of whole slices."""
    rng = np.random.default_rng(11)
    samples, receivers, sources, frequencies = 96, 240, 800, 3
    g = rng.standard_normal((samples, receivers, sources), dtype="f4")  # 74 MB: two ranks read it in two parts
    np.save(suite.folder / "large.npy", g)
    G = np.fft.rfft(g, axis=0)[: 2 * frequencies].astype("c8")
    np.save(suite.folder / "spectra.npy", G)
    np.save(suite.folder / "slices.npy", G[:frequencies])
    np.save(suite.folder / "fortran.npy", np.asfortranarray(G[:frequencies]))
    np.save(suite.folder / "traces.npy", rng.standard_normal((samples, receivers)).astype("f4"))
    np.save(suite.folder / "column.npy", np.fft.rfft(g[..., :1], axis=0)[:frequencies].astype("c8"))
    found = {}
    for kernel, ranks, *options in (("slices", None), ("spectra", 2, "--nf", frequencies), ("large", 2, "--nf", frequencies), ("large", 3, "--nf", frequencies), ("slices", 2, "--groups"),
                                    ("slices", 5, "--groups"), ("fortran", 3, "--groups"), ("large", 2, "--nf", frequencies, "--groups"), ("column", None), ("column", 2, "--groups")):
        suite.succeeded(suite.run("mdd", "--kernel", f"{kernel}.npy", "--data", "traces.npy", "--iterations", 2, "--save", "large", "--report", "R.json",
                                  "--quiet", *options, ranks=ranks))
        X, what = np.load(suite.folder / "large/inverted.npy"), (kernel, ranks, *options)
        expected = found.setdefault(X.shape, X)
        suite.check(np.linalg.norm(X) > 0, "norm", *what)
        suite.close(X, expected, 1e-5 * np.linalg.norm(expected), "a large kernel", *what)
        figures = json.loads((suite.folder / "R.json").read_text())["figures"]
        norm = np.linalg.norm(np.load(suite.folder / ("column.npy" if kernel == "column" else "slices.npy")).astype("c16"))
        suite.check(abs(figures["norm of kernel"] / norm - 1) < 1e-5, figures["norm of kernel"], norm, "norm of the kernel", *what)
        if (kernel, ranks) == ("slices", 2):
            suite.check(figures["groups of ranks"] == 1, figures["groups of ranks"], "groups of two ranks")
    # Weights of receivers of which each rank has some, against weighted data and a weighted kernel.
    weights = rng.uniform(0.5, 2, receivers)
    np.save(suite.folder / "weights.npy", weights)
    np.save(suite.folder / "weighted_slices.npy", (weights[:, None] * G[:frequencies]).astype("c8"))
    np.save(suite.folder / "weighted.npy", (weights * np.load(suite.folder / "traces.npy")).astype("f4"))
    found = []
    for ranks, *options in ((None, "--kernel", "weighted_slices.npy", "--data", "weighted.npy"),
                            (2, "--kernel", "slices.npy", "--data", "traces.npy", "--weights", "weights.npy", "--groups")):
        suite.succeeded(suite.run("mdd", *options, "--iterations", 3, "--save", "large", "--quiet", ranks=ranks))
        found.append(np.load(suite.folder / "large/inverted.npy"))
    suite.close(found[1], found[0], 1e-5 * np.linalg.norm(found[0]), "weights of receivers that two ranks share")
    for path in ("large", "spectra", "slices", "fortran", "weighted_slices"):
        (suite.folder / f"{path}.npy").unlink()


def test_weights(suite):
    """Missing and doubtful traces, each shot with its own, against NumPy's least squares of each frequency, on any number of ranks."""
    rng = np.random.default_rng(7)
    samples, receivers, sources, shots = 17, 7, 3, 4
    g = rng.standard_normal((6, receivers, sources)) * np.exp(-np.arange(6))[:, None, None]
    g[0] += 3 * np.eye(receivers, sources)
    G = np.fft.rfft(g, samples, axis=0)
    data = rng.standard_normal((samples, receivers, shots))  # which no model explains, so that weights matter
    weights = np.ones((receivers, shots))
    weights[[0, 4], 1] = 0
    weights[2, 2:] = 0.25
    weights[6, 3] = 0

    def solution(w):
        spectra = np.fft.rfft(data, axis=0)
        found = [[np.linalg.lstsq(w[:, s, None] * G[f], w[:, s] * spectra[f, :, s], rcond=None)[0] for s in range(shots)] for f in range(len(G))]
        return np.fft.irfft(np.moveaxis(found, 1, 2), samples, axis=0)

    def residual_norms(w, model):
        spectra = np.fft.rfft(data, axis=0) - G @ np.fft.rfft(model, axis=0)
        return np.sqrt((np.abs(w[None] * np.fft.irfft(spectra, samples, axis=0)) ** 2).sum(axis=(0, 1)))

    recorded = np.where(weights == 0, np.nan, data)  # nothing is read where nothing was recorded
    np.save(suite.folder / "g.npy", g)
    np.save(suite.folder / "spectra.npy", G)
    np.save(suite.folder / "recorded.npy", recorded)
    np.save(suite.folder / "all.npy", data)
    np.save(suite.folder / "weights.npy", weights.astype("f4"))
    np.save(suite.folder / "of_receivers.npy", weights[:, 2])
    for ranks, kernel, of, named, *options in ((1, "g", "recorded", "weights"), (4, "g", "recorded", "weights"), (4, "g", "recorded", "weights", "--solver", "lsqr"),
                                               (3, "spectra", "recorded", "weights", "--independent"), (4, "spectra", "recorded", "weights", "--independent", "--compress", 1e-13), (4, "spectra", "recorded", "weights", "--compress", 1e-13), (4, "g", "recorded", "weights", "--domain", "time"),
                                               (6, "spectra", "recorded", "weights"), (4, "g", "all", "of_receivers"),
                                               (3, "spectra", "recorded", "weights", "--groups")):
        run = suite.run("mdd", "--kernel", f"{kernel}.npy", "--data", f"{of}.npy", "--weights", f"{named}.npy", "--iterations", 300, "--tolerance", 1e-12,
                        "--save", "weighted", "--cost", "C.txt", "--report", "R.json", "--quiet", *options, ranks=ranks)
        what = (ranks, kernel, named, *options)
        suite.check(run.status in (0, 3), run.status, run.errors, *what)
        w = weights if named == "weights" else np.repeat(weights[:, 2:3], shots, axis=1)
        expected = solution(w)
        suite.close(np.load(suite.folder / "weighted/inverted.npy"), expected, 1e-9, "weighted least squares", *what)
        last, norms = costs(suite.folder / "C.txt")[-1], residual_norms(w, expected)
        suite.close(last[2:], norms, 1e-8, "costs of the shots", *what)
        suite.close(last[1], np.linalg.norm(norms), 1e-8, "costs", *what)
        columns = json.loads((suite.folder / "R.json").read_text())["columns"]
        suite.check(len(columns) == shots * (len(G) if "--independent" in options else 1), "columns", len(columns), *what)
        if "--independent" not in options:
            suite.close(np.array([column["residual_norm"] for column in columns]), norms, 1e-8, "norms of the shots", *what)
    missing = weights.copy()
    missing[:, 2] = 0
    np.save(suite.folder / "missing_shot.npy", missing)
    run = suite.run("mdd", "--kernel", "g.npy", "--data", "all.npy", "--weights", "missing_shot.npy", "--iterations", 300, "--tolerance", 1e-9, "--save", "weighted",
                    ranks=3)
    suite.check("the weights of 1 shot are all 0, so that the model is 0 there: 2" in run.errors and run.status in (0, 3), run.status, run.errors)
    suite.check(not np.load(suite.folder / "weighted/inverted.npy")[..., 2].any(), "a shot without data has a model")
    np.save(suite.folder / "few.npy", weights[:6])
    np.save(suite.folder / "negative.npy", weights - 0.5)
    for options, status, words in [(("--weights", "few.npy"), 65, ["few.npy is 6 x 4", "7 receivers", "4 shots"]),
                                   (("--weights", "negative.npy"), 65, ["negative.npy", "-0.5"]), (("--weights", "missing.npy"), 65, ["missing.npy"])]:
        run = suite.run("mdd", "--kernel", "g.npy", "--data", "all.npy", *options, ranks=2)
        suite.check(run.status == status and len(run.error_lines) == 1 and all(word in run.errors for word in words), options, run.status, run.errors)
    run = suite.run("mdd", "--weights", "weights.npy")
    suite.check(run.status == 2 and "--weights requires --kernel" in run.errors, run.status, run.errors)


def test_plan(suite):
    """--dry-run writes nothing, and says what memory a run takes, beside that of a small run."""
    large = ["--nx", 700, "--ny", 500, "--samples", 200, "--nf", 200, "--iterations", 1]
    for options in (["--sources", 80], ["--sources", 4, "--domain", "time"], ["--solver", "lsqr", "--groups"],
                    ["--sources", 60, "--independent", "--tolerance", 0], ["--independent", "--solver", "lsmr", "--tolerance", 0]):
        suite.check_plan("mdd", [*large, *options], [*options_of(SMALL), "--iterations", 1, *options], 2)
    rng = np.random.default_rng(10)
    for name, sources, shots in (("many", 20, 200), ("few", 3, 2)):
        np.save(suite.folder / f"{name}_g.npy", rng.standard_normal((150, 400, sources)).astype(np.float32))
        np.save(suite.folder / f"{name}.npy", rng.standard_normal((150, 400, shots)).astype(np.float32))
        np.save(suite.folder / f"{name}_weights.npy", np.ones((400, shots)))
    suite.check_plan("mdd", *(["--kernel", f"{name}_g.npy", "--data", f"{name}.npy", "--weights", f"{name}_weights.npy", "--iterations", 1]
                              for name in ("many", "few")), 2)


def test(suite, full):
    test_plan(suite)
    test_problem(suite)
    test_groups(suite)
    test_independent(suite)
    test_compressed(suite)
    test_on_disk(suite)
    test_solvers(suite)
    test_refusals(suite)
    test_own_data(suite)
    test_one_shot(suite)
    test_spectra_of_other_samples(suite)
    test_non_finite_files(suite)
    test_large_kernel(suite)
    test_weights(suite)
    if full or program.DEVICE == "cpu":
        test_pylops(suite)


program.main(test, __doc__)
