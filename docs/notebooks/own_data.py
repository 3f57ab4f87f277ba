# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # Deconvolution of your own data
#
# Recorded traces are the wanted response, convolved in time and space with a known field: d(t, x) = Σ_y ∫ g(t − t′, x, y)
# m(t′, y) dt′. The example makes a field, a response and data as files of NumPy, then reads them as you would read yours.
# The result is the same on any number of ranks, to within the tolerance.

# %%
import pathlib
import tempfile

import numpy as np
from mpi4py import MPI

import gridlops as gl

comm = MPI.COMM_WORLD
first = comm.rank == 0
folder = pathlib.Path(comm.bcast(tempfile.mkdtemp() if first else None))
nt, receivers, sources, shots = 128, 12, 7, 3
if first:
    rng = np.random.default_rng(5)
    t = np.arange(nt)[:, None, None]
    x, y = np.arange(receivers)[None, :, None], np.arange(sources)[None, None, :]
    arrival = 12 + np.hypot(x - y, 4)
    field = np.exp(-0.2 * (t - arrival) ** 2)                       # (time, receiver, source)
    response = np.zeros((nt, sources, shots))                       # (time, source, shot)
    response[rng.integers(20, 60, 12), rng.integers(0, sources, 12), rng.integers(0, shots, 12)] = 1
    spectra = np.einsum("fxy,fys->fxs", np.fft.rfft(field, axis=0), np.fft.rfft(response, axis=0))
    np.save(folder / "field.npy", field)
    np.save(folder / "response.npy", response)
    np.save(folder / "data.npy", np.fft.irfft(spectra, nt, axis=0))  # (time, receiver, shot)

# %% [markdown]
# From here on it is your data. Rank 0 reads the field and transforms it to frequencies. The slowest dimension is frequency
# or time, and several shots are the last one: the order of PyLops.

# %%
field = np.load(folder / "field.npy") if first else None
G = np.fft.rfft(field, axis=0) if first else None
shape = comm.bcast(G.shape if first else None)

grid = gl.Grid()
slices = gl.Space.array(grid, shape)                                # cut along the frequencies
op = gl.multidimensional_convolution(gl.fredholm(slices, slices.scatter_array(G)), nt)
assert op.dot_test()[0]
if first:
    print(op.domain, op.range, sep="\n")

# %% [markdown]
# Each rank reads its own part of the data; `.npy` could be a dataset in HDF5, `data.h5:/shots`. Each shot is a right-hand
# side. Damping suppresses frequencies that the field does not have.

# %%
D = gl.io.read_array(op.range, folder / "data.npy")
X, report = gl.lsqr(op, D, damp=1e-3, max_iterations=300, tolerance=1e-4)
model = op.domain.gather_array(X)                                   # (time, source, shot) on rank 0
if first:
    print(report)

# %%
if first:
    response = np.load(folder / "response.npy")
    similarity = (model * response).sum() / np.linalg.norm(model) / np.linalg.norm(response)
    print(f"similarity of the model and the truth: {similarity:.3f}")
    assert similarity > 0.6
    data = np.load(folder / "data.npy")
    assert (report.residual_norms <= 1e-2 * np.linalg.norm(data, axis=(0, 1))).all()

# %%
if first:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3), sharey=True)
    for panel, image, title in zip(axes, (data[..., 0], response[..., 0], model[..., 0]), ("data", "true response", "deconvolved")):
        panel.imshow(image, aspect="auto", cmap="gray")
        panel.set(title=title, xlabel="trace")
    axes[0].set(ylabel="time sample")
    pyplot.show()
