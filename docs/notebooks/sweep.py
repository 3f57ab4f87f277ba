# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # How much damping?
#
# A smoothing operator forgets detail, so its inverse multiplies noise. Damping D in ‖A x − b‖² + D²‖x‖² trades the misfit
# for the size of x. Thirty dampings are thirty columns of one solve: they share every product with A, so a sweep costs
# little more than one solve.

# %%
import numpy as np
import gridlops as gl

grid = gl.Grid()
first = grid.is_member and grid.rank == 0
n, noise = 80, 1e-2
op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(n, n)).fill(lambda i, j: np.exp(-0.05 * (i - j) ** 2.0)))
rng = np.random.default_rng(3)
truth = np.where((np.arange(n) > 25) & (np.arange(n) < 50), 1.0, 0.0)
errors = noise * rng.standard_normal(n)

# %%
damps = np.geomspace(1e-4, 10, 30)
b = op @ op.domain.scatter_array(truth if first else None)
whole = op.range.gather_array(b)
columns = np.repeat((whole + errors)[:, None], len(damps), axis=1) if first else None
X, report = gl.lsqr(op, op.range.scatter_array(columns), damp=damps, max_iterations=1000, tolerance=1e-10)

# %% [markdown]
# Two rules choose: the corner of the L-curve, and the largest damping that fits the data within their noise.

# %%
corner = gl.damping_curve(damps, X, report, "lcurve")
within = gl.damping_curve(damps, X, report, "discrepancy", noise=1.1 * noise * np.sqrt(n))
model = op.domain.gather_array(X)
if first:
    error = np.linalg.norm(model - truth[:, None], axis=0)
    for curve in (corner, within):
        print(f"{curve['rule']}: D = {damps[curve['chosen']]:.2g}, error {error[curve['chosen']]:.3g}; the least is {error.min():.3g}")
        assert error[curve["chosen"]] < 2 * error.min()
    gl.plot.picks(corner)

# %%
if first:
    from matplotlib import pyplot

    axes = pyplot.subplots()[1]
    axes.plot(truth, "k", label="truth")
    for column, name in ((0, "least damping"), (within["chosen"], "chosen"), (29, "most damping")):
        axes.plot(np.clip(model[:, column], -1, 2), label=f"{name}, D = {damps[column]:.2g}")
    axes.legend()
    pyplot.show()
