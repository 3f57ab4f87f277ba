# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of post-stack and reflectivity inversion share: sections, and the program's results on them."""
import json

import numpy as np

TIMES = 0.004 * np.arange(-20, 21)
WAVELET = (1 - 2 * (np.pi * 15 * TIMES) ** 2) * np.exp(-(np.pi * 15 * TIMES) ** 2)


def wavelet_matrix(samples):
    """The convolution of a trace with the wavelet, as long as the trace."""
    return np.array([np.convolve(unit, WAVELET)[20:20 + samples] for unit in np.eye(samples)]).T


def derivative_matrix(samples):
    """½(mᵢ₊₁ − mᵢ₋₁), and 0 at both ends."""
    D = (np.eye(samples, k=1) - np.eye(samples, k=-1)) / 2
    D[[0, -1]] = 0
    return D


def random_section(rng, samples, traces):
    """Impedance in layers, samples x traces."""
    layers = np.repeat(rng.uniform(2, 5, samples // 7 + 1), 7)[:samples]
    return layers[:, None] * (1 + 0.1 * rng.uniform(-1, 1, (1, traces))) + 0.05 * rng.uniform(size=(samples, traces))


def costs_in(path):
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(int(line[0]) == k for k, line in enumerate(lines)), lines[:3]
    return np.array([[float(cost) for cost in line[1:]] for line in lines])


def invert(suite, command, names, ranks, *words, **options):
    """Costs, saved arrays and report of a run."""
    given = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
    folder = suite.folder / "saved"
    run = suite.run(command, *given, *words, "--cost", "costs", "--save", folder, "--report", "R.json",
                    ranks=None if ranks == 1 else ranks, timeout=600)
    if not suite.succeeded(run):
        return None
    return (costs_in(suite.folder / "costs"), {name: np.load(folder / f"{name}.npy") for name in names},
            json.loads((suite.folder / "R.json").read_text(encoding="utf-8")))


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)
