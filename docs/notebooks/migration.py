# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # Migration of a SEG-Y file
#
# Shots were recorded in a SEG-Y file, one trace for each source and receiver. Least-squares migration finds the image that
# explains them. The example models such a file first, with two reflectors, and then reads it as you would read yours. It
# needs the package `segyio`.

# %%
import pathlib
import tempfile

import numpy as np
import segyio
from mpi4py import MPI

import gridlops as gl

comm = MPI.COMM_WORLD
first = comm.rank == 0
folder = pathlib.Path(comm.bcast(tempfile.mkdtemp() if first else None))
grid = gl.Grid()
nx, nz, spacing, velocity = 41, 30, 8.0, 1000.0                      # the image: points, metres, metres per second
image = gl.Space.array(grid, (nx, nz), axis="uncut")                # whole on every rank

t = np.arange(-30, 31) * 0.004
wavelet = (1 - 2 * (np.pi * 20 * t) ** 2) * np.exp(-((np.pi * 20 * t) ** 2))


def demigration(sources, receivers, samples, interval):
    """The operator from images to traces (source, receiver, time)."""
    times = gl.straight_rays((nx, nz), (0, 0), (spacing, spacing), sources, receivers, velocity)
    data = gl.Space.array(grid, (len(sources), len(receivers), samples))  # cut along the sources
    return gl.kirchhoff(data, image, times, interval=interval, wavelet=wavelet, centre=30, dtype="float32")


truth = np.zeros((nx, nz), np.float32)
truth[:, nz // 2], truth[8:-8, 25] = -1, 0.5
sources = np.stack([np.linspace(40, 280, 6), np.full(6, 10.0)], axis=1)      # x and depth
receivers = np.stack([np.linspace(20, 300, 15), np.full(15, 20.0)], axis=1)
model = demigration(sources, receivers, 220, 0.004)
recorded = model.range.gather_array(model @ image.scatter_array(truth if first else None))
if first:
    spec = segyio.spec()
    spec.samples, spec.format, spec.tracecount = np.arange(220) * 4, 5, 6 * 15
    with segyio.create(folder / "shots.segy", spec) as file:
        file.bin[segyio.BinField.Interval] = 4000                            # microseconds
        for k in range(6 * 15):
            s, r = sources[k // 15], receivers[k % 15]
            file.header[k] = {segyio.TraceField.SourceX: int(s[0]), segyio.TraceField.SourceDepth: int(s[1]),
                              segyio.TraceField.GroupX: int(r[0]), segyio.TraceField.ReceiverGroupElevation: -int(r[1])}
            file.trace[k] = recorded[k // 15, k % 15]

# %% [markdown]
# From here on it is your file. `open_survey` reads the headers, on rank 0: it finds the sources and the receivers by their
# positions, and raises InputError if a pair of them has no trace, or two. `read_array` reads the traces, each rank its part.

# %%
survey = gl.io.open_survey(grid, folder / "shots.segy")
if first:
    print(survey)
op = demigration(survey.sources[:, [0, 2]], survey.receivers[:, [0, 2]], survey.samples, survey.interval)
D = gl.io.read_array(op.range, survey.traces)

migrated = image.gather_array(op.H @ D)
X, report = gl.lsqr(op, D, max_iterations=40)
inverted = image.gather_array(X)
if first:
    print(report)

# %% [markdown]
# Migration blurs the reflectors, and their sizes are not those of the model. The inversion explains the traces.

# %%
if first:
    assert report.residual_norms[0] < 0.05 * np.linalg.norm(recorded)
    depths = np.abs(inverted[8:-8]).sum(axis=0)
    assert set(np.argsort(depths)[-2:]) == {nz // 2, 25}                     # both reflectors, at their depths

# %%
if first:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(11, 3))
    axes[0].imshow(recorded[2].T, aspect="auto", cmap="gray")
    axes[0].set(title="a shot", xlabel="receiver", ylabel="time sample")
    for panel, picture, title in zip(axes[1:], (truth, migrated, inverted), ("true image", "migrated", "inverted")):
        panel.imshow(picture.T, aspect="auto", cmap="gray", extent=(0, nx * spacing, nz * spacing, 0))
        panel.set(title=title, xlabel="x (m)")
    axes[1].set(ylabel="depth (m)")
    pyplot.show()
