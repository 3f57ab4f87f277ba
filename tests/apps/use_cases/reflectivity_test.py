# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops reflectivity`: model, data and sparse inversions against NumPy, and that neither ranks nor cuts nor device
matter. With the section of PyLops' tutorial in the file that POSTSTACK_IMPEDANCE names, also the figures of PyLops-MPI.
reflectivity_test.py LAUNCH PROGRAM [--full]"""
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)
from section import derivative_matrix, invert, random_section, relative, wavelet_matrix  # noqa: E402

NAMES = ("model", "data", "inverted")
# Of PyLops-MPI 0.7 on one rank, with this step: norms, and by iteration the misfit and with it eps times the absolute values.
PYLOPS_NORMS = {"model": 55.786004336, "data": 196.015796}
PYLOPS_STEP, PYLOPS_COSTS = 2.1513e-2, {1: (3.377e3, 2.862e3), 20: (659.5, 20.35)}


def sparse(solver, A, data, sigma, step, iterations):
    """The solution and the costs, written from the method's definition."""
    x = y = np.zeros_like(data)
    t, eps = 1, sigma if solver == "proximal-gradient" else 2 * sigma
    def cost(x):
        misfit = np.linalg.norm(data - x @ A.T) ** 2 / 2
        return [misfit + eps * np.abs(x).sum(), misfit]
    costs = [cost(x)]
    for _ in range(iterations):
        v = y + step * ((data - y @ A.T) @ A)
        after = np.sign(v) * np.maximum(np.abs(v) - step * sigma, 0)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        y = after if solver == "ista" else after + (before - 1) / t * (after - x)
        x = after
        costs.append(cost(x))
    return x, np.array(costs)


def check_against_numpy(suite):
    lines, traces, samples = 5, 7, 61
    section = random_section(np.random.default_rng(2), samples, 3 * traces)
    np.save(suite.folder / "impedance.npy", section.astype(np.float32))
    m = np.tile(np.log(section.astype(np.float32).astype(float))[:, ::3].T, (lines, 1, 1))
    A = wavelet_matrix(samples)
    model = m @ derivative_matrix(samples).T
    data = model @ A.T
    for solver, ranks, words in [("fista", 1, []), ("fista", 3, []), ("ista", 2, ["--cut", "samples"]), ("fista", 6, ["--cut", "traces"]),
                                 ("proximal-gradient", 4, ["--grid", "2x2"]), ("proximal-gradient", 6, []), ("fista", 2, ["--dtype", "f32"])]:
        about = (solver, ranks, words)
        result = invert(suite, "reflectivity", NAMES, ranks, *words, model="impedance.npy", lines=lines, solver=solver, step=0.02,
                        sigma=0.004, iterations=25)
        if result is None:
            continue
        costs, saved, report = result
        inverted, expected = sparse(solver, A, data, 0.004, 0.02, 25)
        bound = 1e-4 if "f32" in words else 1e-11
        suite.check(relative(saved["model"], model) < bound, "model", *about)
        suite.check(relative(saved["data"], data) < bound, "data", *about)
        suite.check(relative(saved["inverted"], inverted) < 10 * bound, "inverted", relative(saved["inverted"], inverted), *about)
        suite.check(relative(costs, expected) < 10 * bound, "costs", relative(costs, expected), *about)
        suite.check(report["solver"] == solver and report["iterations"] == 25, "report", report["solver"], *about)
        suite.check(abs(report["figures"]["relative model error"] - relative(inverted, model)) < 10 * bound, "model error", *about)


def check_generated(suite):
    """The inversion has few elements, and explains the data."""
    first = None
    for ranks, words in [(1, []), (3, []), (6, ["--cut", "samples"])]:
        result = invert(suite, "reflectivity", NAMES, ranks, *words, lines=6, traces=40, samples=120, step=0.02)
        if result is None:
            continue
        _, saved, report = result
        A = wavelet_matrix(120)
        suite.check(relative(saved["data"], saved["model"] @ A.T) < 1e-12, "data")
        suite.check(relative(saved["inverted"] @ A.T, saved["data"]) < 0.1, "misfit", relative(saved["inverted"] @ A.T, saved["data"]))
        suite.check(report["iterations"] <= 200, "iterations", report["iterations"])
        if first is not None:
            suite.check(relative(saved["inverted"], first) < 1e-10, "another inversion on", ranks)
        first = saved["inverted"] if first is None else first


def check_plan(suite):
    """--dry-run of each solver, also with costs."""
    large, small = (["--lines", 12, "--traces", 200, "--samples", 500, "--decimate", 1], ["--lines", 1, "--traces", 3, "--samples", 20])
    for ranks, words in [(1, []), (2, ["--solver", "ista", "--cut", "samples"]), (3, ["--solver", "proximal-gradient", "--dtype", "f32"]),
                         (2, ["--cost", "costs"])]:
        suite.check_plan("reflectivity", [*large, *words, "--iterations", 1], [*small, *words, "--iterations", 1], ranks)


def check_reference_figures(suite):
    path = os.environ.get("POSTSTACK_IMPEDANCE")
    for ranks in [1, 3] if path else []:
        result = invert(suite, "reflectivity", NAMES, ranks, model=path, step=PYLOPS_STEP, iterations=20)
        if result is None:
            continue
        costs, _, report = result
        for name, norm in PYLOPS_NORMS.items():
            suite.check(abs(report["figures"][f"norm of the {name}"] / norm - 1) < 1e-8, "norm of the", name, report["figures"])
        for k, expected in PYLOPS_COSTS.items():
            suite.check(relative(costs[k], np.array(expected)) < 2e-4, "costs", k, costs[k], "on", ranks)


def check_errors(suite):
    for words, text in [(["--solver", "cgls"], "--solver"), (["--sigma", "-1"], "--sigma"), (["--step", "0"], "the step is 0")]:
        run = suite.run("reflectivity", *words, ranks=2)
        suite.succeeded(run, 2)
        suite.check(len(run.error_lines) == 1 and text in run.error_lines[0], "error for", words, run.errors)


def test(suite, _full):
    check_against_numpy(suite)
    check_generated(suite)
    check_plan(suite)
    check_reference_figures(suite)
    check_errors(suite)


if __name__ == "__main__":
    program.main(test, __doc__, probe=("reflectivity", "--lines", "1", "--traces", "1", "--samples", "2", "--iterations", "0", "--quiet"))
