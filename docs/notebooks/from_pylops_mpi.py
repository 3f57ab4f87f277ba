# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # From PyLops-MPI
#
# Scripts of PyLops-MPI change one import. Then the same problem gets what a matrix of right-hand sides gives: each column
# its own step and verdict. This page needs `pylops-mpi`.

# %%
import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

import gridlops as gl
from gridlops.pylops_mpi import cgls             # was: from pylops_mpi import cgls

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
A = rng.standard_normal((30, 10))
Op = pylops_mpi.MPIBlockDiag(ops=[pylops.MatrixMult(A)])
x = pylops_mpi.DistributedArray(global_shape=10 * comm.size)
x[:] = 1.0
x0 = pylops_mpi.DistributedArray(global_shape=10 * comm.size)
x0[:] = 0.0
found, istop, iterations, r1norm, r2norm, cost = cgls(Op, Op @ x, x0, niter=100, tol=1e-20)
assert np.allclose(found.local_array, 1)

# %% [markdown]
# The same operator here. `local_matrix` takes each rank's NumPy matrix, SciPy matrix or PyLops operator. How the spaces
# are cut says that these are blocks of a diagonal. Eight right-hand sides are eight columns.

# %%
grid = gl.Grid(comm, (comm.size, 1))
data = gl.Space(grid, gl.Cut("all", [30] * comm.size))
models = gl.Space(grid, gl.Cut("all", [10] * comm.size))
op = gl.local_matrix(data, models, A)
truth = gl.zeros(models, 8).fill(lambda i, j: np.cos(i * j))
X, report = gl.cgls(op, op @ truth, tolerance=1e-10)
assert np.allclose(X.local, truth.local, atol=1e-6)
if comm.rank == 0:
    print(report)

# %% [markdown]
# | PyLops-MPI | here |
# |---|---|
# | `asarray()` | `space.gather_array(X)`, on one rank |
# | `to_dist(x)` | `space.scatter_array(x)` |
# | `niter`, `tol` | `max_iterations`, `tolerance` (relative) |
# | one vector, one step | one step for each column |
