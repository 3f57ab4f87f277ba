# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # Dead and wild traces
#
# Of noisy shots some traces are dead, and some are wild: a thousand times too loud. Weights leave both out of a
# least-squares migration, each for itself, and all others count as before. The example makes such shots, with two reflectors.

# %%
import numpy as np
from mpi4py import MPI

import gridlops as gl

first = MPI.COMM_WORLD.rank == 0
grid = gl.Grid()
nx, nz, spacing = 41, 30, 8.0                                        # the image: points, and metres between them
image = gl.Space.array(grid, (nx, nz), axis="uncut")                # whole on every rank
sources = np.stack([np.linspace(40, 280, 6), np.full(6, 10.0)], axis=1)      # x and depth
receivers = np.stack([np.linspace(20, 300, 15), np.full(15, 20.0)], axis=1)
data = gl.Space.array(grid, (6, 15, 220))                           # source, receiver, sample; cut along the sources
t = np.arange(-30, 31) * 0.004
wavelet = (1 - 2 * (np.pi * 20 * t) ** 2) * np.exp(-((np.pi * 20 * t) ** 2))
times = gl.straight_rays((nx, nz), (0, 0), (spacing, spacing), sources, receivers, 1000.0)
op = gl.kirchhoff(data, image, times, interval=0.004, wavelet=wavelet, centre=30)

truth = np.zeros((nx, nz))
truth[:, nz // 2], truth[8:-8, 25] = -1, 0.5
clean = data.gather_array(op @ image.scatter_array(truth if first else None))

# %% [markdown]
# A fifth of the traces is dead, which the file may hold as NaN, and one in ten is wild. Which ones is known here, as from an
# observer's log, or from the energy of each trace.

# %%
recorded = weights = None
if first:
    rng = np.random.default_rng(1)
    noisy = clean + 0.1 * np.abs(clean).max() * rng.standard_normal(clean.shape)
    kind = rng.permutation(np.arange(90) % 10).reshape(6, 15)       # of each trace
    recorded = noisy.copy()
    recorded[kind < 2] = np.nan
    recorded[kind == 2] *= 1000 * rng.standard_normal(recorded[kind == 2].shape)
    weights = np.broadcast_to(np.where(kind > 2, 1.0, 0.0)[..., None], recorded.shape).copy()

# %% [markdown]
# The weights are an array like the data. A damping keeps noise out of what no trace sees.

# %%
def inverted(array, **options):
    X, report = gl.lsqr(op, data.scatter_array(array), damp=2.0, max_iterations=40, **options)
    return image.gather_array(X), report


of_all, _ = inverted(np.nan_to_num(recorded) if first else None)    # dead traces count as silence
of_good, report = inverted(recorded, weights=data.scatter_array(weights))
of_noisy, _ = inverted(noisy if first else None)                    # what could be reached
if first:
    print(report)

# %% [markdown]
# With wild traces there is no image. Without them it is nearly as good as if nothing had been lost.

# %%
if first:
    def error(found):
        return np.linalg.norm(found - truth) / np.linalg.norm(truth)

    print(f"errors: {error(of_all):.3g} of all traces, {error(of_good):.3g} with weights, {error(of_noisy):.3g} if none were lost")
    assert error(of_good) < 1.1 * error(of_noisy) < error(of_all) / 10

# %%
if first:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(11, 3))
    shot = np.nan_to_num(recorded[2]).T
    axes[0].imshow(shot, aspect="auto", cmap="gray", vmin=-np.abs(clean).max(), vmax=np.abs(clean).max(), interpolation="nearest")
    axes[0].set(title="a shot", xlabel="receiver", ylabel="time sample")
    for panel, picture, title in zip(axes[1:], (of_all, of_good, of_noisy), ("of all traces", "with weights", "if none were lost")):
        limit = min(np.abs(picture).max(), 1.2) if picture is not of_all else np.abs(picture).max()
        panel.imshow(picture.T, aspect="auto", cmap="gray", vmin=-limit, vmax=limit, extent=(0, nx * spacing, nz * spacing, 0))
        panel.set(title=title, xlabel="x (m)")
    axes[1].set(ylabel="depth (m)")
    figure.tight_layout()
    pyplot.show()
