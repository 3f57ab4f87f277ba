# SPDX-License-Identifier: BSD-3-Clause
"""ista and fista of gridlops.pylops_mpi against PyLops-MPI's own: costs, iterations, models, errors. peers.py runs it."""
import warnings

import numpy as np
import pylops
import pylops_mpi
from ranks import COMM

import gridlops.pylops_mpi as ours

RNG = np.random.default_rng(10 + COMM.rank)
A = RNG.standard_normal((12, 8))
ALPHA = 0.9 / max(COMM.allgather(np.linalg.norm(A, 2))) ** 2


def array(block):
    result = pylops_mpi.DistributedArray(global_shape=COMM.allreduce(block.size))
    result[:] = block
    return result


OP = pylops_mpi.MPIBlockDiag(ops=[pylops.MatrixMult(A)])
Y, ZERO = array(A @ RNG.standard_normal(8)), array(np.zeros(8))


def both(name, *args, **options):
    """What each returns, or the text of its ValueError; and how often each called back."""
    outcomes = []
    for module in (pylops_mpi, ours):
        models = []
        try:
            x, iterations, costs = getattr(module, name)(*args, callback=lambda x, models=models: models.append(x.local_array.copy()), **options)
            outcomes.append((x.local_array, iterations, np.array(costs), models))
        except ValueError as error:
            outcomes.append(str(error))
    return outcomes


def same(name, *args, **options):
    theirs, mine = both(name, *args, **options)
    assert not isinstance(theirs, str) and not isinstance(mine, str), (name, options, theirs, mine)
    assert theirs[1] == mine[1] == len(theirs[2]) == len(mine[2]) == len(theirs[3]) == len(mine[3]), (name, options, theirs[1:3], mine[1:3])
    scale = max(1e-300, np.abs(theirs[2]).max())
    assert np.abs(theirs[2] - mine[2]).max() <= 1e-12 * scale, (name, options, theirs[2], mine[2])
    for x, z in zip([theirs[0], *theirs[3]], [mine[0], *mine[3]], strict=True):
        assert np.allclose(x, z, rtol=1e-9, atol=1e-12), (name, options, x, z)
    return theirs


def test_costs_iterations_and_models():
    start = array(RNG.standard_normal(8))
    for name in ("ista", "fista"):
        for x0 in (ZERO, start):
            same(name, OP, Y, x0, eps=0.3, alpha=ALPHA, niter=30)
            same(name, OP, Y, x0, eps=0.3, alpha=ALPHA, niter=12, decay=np.geomspace(1, 0.1, 12))
            ended = same(name, OP, Y, x0, eps=0.3, alpha=ALPHA, niter=3000, tol=1e-4)
            assert ended[1] < 3000
        same(name, OP, Y, ZERO, eps=0.3, alpha=ALPHA, niter=1)
        same(name, OP, Y, ZERO, eps=0.3, alpha=ALPHA, niter=20, threshkind="hard")


def test_data_of_zeros():
    for name in ("ista", "fista"):
        assert same(name, OP, array(np.zeros(12)), ZERO, eps=0.3, alpha=ALPHA, niter=5)[1] == 1


def test_rtol_is_of_no_effect_and_says_so():
    for name in ("ista", "fista"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            same(name, OP, Y, ZERO, eps=0.3, alpha=ALPHA, niter=60, rtol=0.5)
        assert any("rtol and rtol1 end no iteration" in str(each.message) for each in caught)


def test_rising_residuals():
    raised = 0
    for name in ("ista", "fista"):
        for factor in (1, 1.3, 20):
            theirs, mine = both(name, OP, Y, ZERO, eps=0.3, alpha=factor * ALPHA, niter=40, monitorres=True)
            assert isinstance(theirs, str) == isinstance(mine, str) and (not isinstance(mine, str) or theirs == mine), (name, factor, theirs, mine)
            raised += isinstance(theirs, str)
    assert raised >= 3
