#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times the use cases of `gridlops lsm`, `mdd` and `poststack` as PyLops-MPI solves them.

    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py lsm [NX NZ SOURCES RECEIVERS SAMPLES ITERATIONS]
    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py mdd [NX NY SAMPLES FREQUENCIES SOURCES ITERATIONS]
    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py mdd_files FOLDER [ITERATIONS]
    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py poststack FOLDER
    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py wavelets FOLDER
    mpirun -n 2 python3 bench/peers/pylops_mpi_use_cases.py tv FOLDER

Without sizes they are those of the use cases. As in `gridlops mdd`, SAMPLES of a trace are those of times from 0 on.
FOLDER holds model.npy and background.npy, as `gridlops poststack --save FOLDER` writes them, and for `wavelets`, which
has a wavelet for each trace, also wavelets.npy (lines x traces x samples). `mdd` has the sizes of
`gridlops mdd` but random numbers: compare only its times. For `mdd_files` FOLDER holds kernel.npy and data.npy, as
compressed_mdd.py --keep FOLDER leaves them. Needs pylops-mpi with pylops, pyproximal and numba. The
number of ranks must divide the sources and the lines. The first solve of a process compiles code: the script prints its
time but does not count it.
"""
import resource
import statistics
import sys
import time

import numpy as np
import pylops_mpi
from mpi4py import MPI
from pylops.basicoperators import Transpose
from pylops.utils.wavelets import ricker
from pylops_mpi import DistributedArray, Partition
from pylops_mpi.optimization.basic import cgls

world = MPI.COMM_WORLD


def distributed(local, size, partition=Partition.SCATTER):
    array = DistributedArray(global_shape=size, partition=partition, dtype=local.dtype)
    array[:] = local.ravel()
    return array


def time_solves(solve, repetitions=4):
    """solve() returns the costs; all ranks begin together. Long solves are repeated once."""
    seconds = []
    for _ in range(repetitions):
        world.barrier()
        begin = time.perf_counter()
        costs = solve()
        world.barrier()
        seconds.append(time.perf_counter() - begin)
        if world.bcast(sum(seconds)) > 100 and len(seconds) > 1:
            break
    if world.rank == 0:
        for k in sorted({0, 1, 2, 10, len(costs) - 1} & set(range(len(costs)))):
            print("cost", k, costs[k])
        print("memory of a rank, GiB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
        print("seconds", *(f"{s:.3f}" for s in seconds), "median", f"{statistics.median(seconds[1:] or seconds):.3f}")


def lsm(nx=81, nz=60, ns=10, nr=11, samples=651, iterations=100):
    from pylops.waveeqprocessing import LSM

    nx, nz, ns, nr, samples, iterations = map(int, (nx, nz, ns, nr, samples, iterations))
    x, z, last = np.arange(nx) * 4.0, np.arange(nz) * 4.0, (nx - 10) * 4.0
    receivers = np.vstack((np.linspace(40, last, nr), np.full(nr, 20.0)))
    own = np.array_split(np.linspace(40, last, ns), world.size)[world.rank]
    sources = np.vstack((own, np.full(own.size, 10.0)))
    t = np.arange(samples) * 0.004
    wavelet, _, centre = ricker(t[:41], f0=20)
    migration = LSM(z, x, t, sources, receivers, 1000, wavelet, centre, mode="analytic", engine="numba")
    A = pylops_mpi.MPIVStack(ops=[migration.Demop])
    reflectivity = np.zeros((nx, nz))
    reflectivity[:, nz // 2], reflectivity[:, nz * 5 // 6] = -1, 0.5
    d = A @ distributed(reflectivity, reflectivity.size, Partition.BROADCAST)
    zero = np.zeros(reflectivity.size)
    time_solves(lambda: cgls(A, d, x0=distributed(zero, zero.size, Partition.BROADCAST), niter=iterations, tol=0)[-1])


def mdd(nx=121, ny=201, samples=800, frequencies=400, virtual=1, iterations=50):
    from pylops_mpi.waveeqprocessing import MPIMDC

    sources, receivers, samples, frequencies, virtual, iterations = map(int, (nx, ny, samples, frequencies, virtual, iterations))
    samples = 2 * samples - 1
    own = len(np.array_split(np.arange(frequencies), world.size)[world.rank])
    numbers = np.random.default_rng(world.rank)
    shape = (own, receivers, sources)
    G = (numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)).astype(np.complex64)
    A = MPIMDC(G, nt=samples, nv=virtual, nfreq=frequencies, dt=0.002, dr=1.0, twosided=True, fftengine="scipy",
               prescaled=True)
    model = np.random.default_rng(0).standard_normal(samples * sources * virtual).astype(np.float32)
    d = A @ distributed(model, model.size, Partition.BROADCAST)
    zero = np.zeros(model.size, np.complex64)
    time_solves(lambda: cgls(A, d, x0=distributed(zero, zero.size, Partition.BROADCAST), niter=iterations, tol=0)[-1])


def mdd_files(folder, iterations=30):
    from pylops_mpi.waveeqprocessing import MPIMDC

    kernel, data = np.load(f"{folder}/kernel.npy", mmap_mode="r"), np.load(f"{folder}/data.npy")
    own = np.array_split(np.arange(len(kernel)), world.size)[world.rank]
    G = np.array(kernel[own[0]:own[-1] + 1])
    samples, _, virtual = data.shape
    A = MPIMDC(G, nt=samples, nv=virtual, nfreq=len(kernel), twosided=False, fftengine="scipy", prescaled=True)
    d = distributed(data, data.size, Partition.BROADCAST)
    zero = np.zeros(samples * kernel.shape[2] * virtual, np.complex64)
    time_solves(lambda: cgls(A, d, x0=distributed(zero, zero.size, Partition.BROADCAST), niter=int(iterations), tol=0)[-1])


def poststack_problem(folder):
    from pylops.avo.poststack import PoststackLinearModelling

    model, background = (np.load(f"{folder}/{name}.npy") for name in ("model", "background"))
    lines, nx, nz = model.shape
    own = slice(world.rank * lines // world.size, (world.rank + 1) * lines // world.size)
    shape = model[own].shape
    wavelet, _, _ = ricker(np.arange(21) * 0.004, 15)
    samples_first = Transpose(shape, (2, 0, 1))
    G = pylops_mpi.MPIBlockDiag(
        ops=[samples_first.H @ PoststackLinearModelling(wavelet, nt0=nz, spatdims=shape[:2]) @ samples_first])
    true = distributed(model[own], model.size)
    return model.shape, G, true, G @ true, lambda: distributed(background[own], model.size)


def poststack(folder):
    _, G, _, d, start = poststack_problem(folder)
    time_solves(lambda: cgls(G, d, x0=start(), niter=100, tol=0)[-1], repetitions=2)


def wavelets(folder, iterations=100):
    import pylops
    from pylops.avo.poststack import PoststackLinearModelling

    model, background, each = (np.load(f"{folder}/{name}.npy") for name in ("model", "background", "wavelets"))
    own = slice(world.rank * len(model) // world.size, (world.rank + 1) * len(model) // world.size)
    traces = [PoststackLinearModelling(wavelet, nt0=model.shape[2]) for wavelet in each[own].reshape(-1, each.shape[2])]
    G = pylops_mpi.MPIBlockDiag(ops=[pylops.BlockDiag(traces)])
    d = G @ distributed(model[own], model.size)
    time_solves(lambda: cgls(G, d, x0=distributed(background[own], model.size), niter=int(iterations), tol=0)[-1], repetitions=2)


def tv(folder):
    import pyproximal
    from pylops_mpi.proximal import MPIProxOperator
    from pylops_mpi.proximal.optimization.primal import ADMML2

    dims, G, true, d, start = poststack_problem(folder)
    gradient = pylops_mpi.MPIGradient(dims=dims, kind="forward", dtype=np.float64)

    def solve(callback=None):
        return ADMML2(MPIProxOperator(pyproximal.L1(sigma=1e-2)), G, d, gradient, start(), tau=0.99 / 12, niter=40,
                      callback=callback, kwargs_solver={"niter": 20, "tol": 0})[0]

    costs = []

    def objective(x):
        variation = sum(np.abs(part.asarray()).sum() for part in (gradient @ x).distarrays)
        costs.append(float((G @ x - d).norm() ** 2 / 2 + 1e-2 * variation))

    def timed():
        solve()
        return costs

    # Costs need extra products, so a separate run computes them. That run also compiles the code.
    objective(start())
    x = solve(objective)
    time_solves(timed, repetitions=2)
    error = (x - true).norm() / true.norm()
    if world.rank == 0:
        print("relative model error", error)


if __name__ == "__main__":
    cases = {case.__name__: case for case in (lsm, mdd, mdd_files, poststack, wavelets, tv)}
    if len(sys.argv) < 2 or sys.argv[1] not in cases:
        sys.exit(__doc__)
    cases[sys.argv[1]](*sys.argv[2:])
