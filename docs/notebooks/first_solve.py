# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # A first solve
#
# Least squares for many right-hand sides: each column of B has its own step, its own stopping test and its own verdict.
# This page is a notebook for one process, and a program for any number of them:
# `mpirun -n 4 python3 -m mpi4py first_solve.py`.

# %%
import numpy as np
import gridlops as gl

grid = gl.Grid()              # all ranks; on one rank 1 x 1
first = grid.is_member and grid.rank == 0
rng = np.random.default_rng(1)
A = rng.standard_normal((300, 120)) * np.geomspace(1, 1e-2, 120)   # columns of very different sizes
truth = rng.standard_normal((120, 5))

# %% [markdown]
# A matrix is cut into blocks, one for each rank. `scatter` takes the whole matrix from rank 0; the other ranks may pass
# None. The operator multiplies many columns at once, and never moves A.

# %%
op = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape)).scatter(A if first else None))
if first:
    print(op, op.domain, op.range, sep="\n")

# %% [markdown]
# Before you trust an operator, test its adjoint: ⟨A x, y⟩ = ⟨x, Aᴴ y⟩ for random columns.

# %%
passed, mismatch, tolerance = op.dot_test()
assert passed, (mismatch, tolerance)

# %%
B = op @ op.domain.scatter_array(truth if first else None)
X, report = gl.cgls(op, B, tolerance=1e-10, max_iterations=500)
if first:
    print(report)

# %% [markdown]
# The report's numbers are computed from their definitions when a column ends, not taken from the recurrence. As a
# dictionary it goes through `json.dumps`; its attributes are arrays.

# %%
found = op.domain.gather_array(X)
if first:
    assert report.reasons == ["converged"] * 5
    assert np.allclose(found, truth, atol=1e-6)
    assert (report.tested_norms <= 1e-10).all()

# %% [markdown]
# The tested norm of each column over the iterations:

# %%
if first:
    gl.plot.history(report)
