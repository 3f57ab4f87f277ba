# SPDX-License-Identifier: BSD-3-Clause
"""What users give instead of what is needed: every refusal is a UsageError, on all ranks, that says what to give."""
import numpy as np
from ranks import COMM, expect_error

import gridlops as gl


def problem(rows=8, cols=5):
    grid = gl.Grid(COMM, (COMM.size, 1))
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(rows, cols)).fill(lambda i, j: np.cos(i + 2.0 * j) + 3 * (i == j)))
    return A, gl.zeros(A.range, 1).fill(lambda i, j: i + 1.0)


def test_operands_that_are_none():
    A, B = problem()
    block = np.array(B.local)
    for call in (lambda: gl.cgls(A, B, out=np.zeros((5, 1))), lambda: gl.lsqr(A, B, variances=block), lambda: A.apply(np.ones((5, 1)), B),
                 lambda: gl.cgls(A, None), lambda: gl.cgls(A, [1.0] * 8)):
        expect_error(gl.UsageError, call, "scatter_array(", "gridlops.from_local(")
    # Which part of the whole an array is, is known on one rank alone.
    for call in (lambda: gl.cgls(A, block), lambda: gl.ista(A, block[:, 0]), lambda: gl.cgls(A, B, np.zeros(5)), lambda: A @ np.ones(5),
                 lambda: np.ones((3, 8)) @ A, lambda: gl.matrix_mult(np.ones((3, 8))), lambda: gl.diagonal(A.domain, np.ones(5)),
                 lambda: np.asarray(B)):
        if COMM.size > 1:
            expect_error(gl.UsageError, call, "array", f"{COMM.size} ranks")
        else:
            call()
    for call in (lambda: gl.cgls(np.ones((8, 5)), B), lambda: gl.cg(B, B)):
        expect_error(gl.UsageError, call, "gridlops.matrix_mult(")
    expect_error(gl.UsageError, lambda: gl.cg(A, B, M=np.eye(5)), "gridlops.matrix_mult(")
    expect_error(gl.ShapeError, lambda: gl.diagonal(A.range, gl.zeros(A.range, 2)), "one uncut column", "a solve, of their own")
    for each in (1, 2):
        expect_error(gl.UsageError, lambda each=each: gl.regularized_inversion(A, B, regularizers=[(A, [0.1] * each)]), "share one", "damp=[")
    expect_error(gl.UsageError, lambda: gl.diagonal(A.range, [1.0] * 8), "diagonal: ", "scatter_array(")
    expect_error(gl.UsageError, lambda: 1j * A, "make it of complex128")
    expect_error(gl.UsageError, lambda: np.complex64(1j) * A, "make it of complex128")
    for factor in (2, 2.0, np.float32(2), np.int64(2)):
        assert ((factor * A @ gl.zeros(A.domain, 1).fill(lambda i, j: i + 1.0)).local == 2 * (A @ gl.zeros(A.domain, 1).fill(lambda i, j: i + 1.0)).local).all()


def test_blocks_that_cannot_be_read_in_place():
    A, B = problem()
    block = np.array(B.local[:, 0])
    masked = np.ma.masked_array(block, mask=np.arange(block.size) == block.size - 1)
    unaligned = np.ndarray(block.shape, "f8", bytearray(8 * block.size + 1), 1)
    for bad, text in ((masked, f"1 of the {block.size} elements"), (block.astype(">f8"), "newbyteorder('=')"), (unaligned, "array.copy()"),
                      (block.reshape(-1, 1, 1), "a block of 3 dimensions"), (block.astype(int), "float64"), ([1.0], "an array of NumPy")):
        expect_error(gl.UsageError, lambda bad=bad: gl.from_local(A.range, bad), text)
    nothing_masked = np.ma.masked_array(block.copy(), mask=False)
    assert (gl.from_local(A.range, nothing_masked).local[:, 0] == block).all()


def test_a_gpu_where_there_is_none():
    expect_error(gl.UsageError, lambda: gl.Grid(device="gpu"), "no GPU can be used")
    assert gl.Grid().device == "cpu"  # ranks still understand each other


def test_options_of_another_type():
    A, B = problem()
    for name, value, text in (("max_iterations", 10.0, "max_iterations is 10.0; it must be a whole number"), ("tolerance", "small", "a number, one for each column, or None"),
                              ("decay", 0.1, "a list of numbers"), ("one_pass", "on", "True or False"), ("damp", "x", "it must be a number")):
        expect_error(gl.UsageError, lambda name=name, value=value: gl.cgls(A, B, **{name: value}), text)
    expect_error(gl.UsageError, lambda: gl.ista(A, B, step="long"), "step is 'long'")
    assert gl.cgls(A, B, max_iterations=np.int64(30), tolerance=np.float32(1e-6), damp=1)[1]["reasons"] == ["converged"]


def shared(first, second, memory):
    """Two matrices in these spaces; on the last rank they share memory."""
    def of(space, own):
        empty = gl.zeros(space, 1).local
        array = memory if COMM.rank == COMM.size - 1 else own
        return gl.from_local(space, array[:empty.size].reshape(empty.shape, order="F"))
    return of(first, np.zeros(100)), of(second, np.zeros(100))


def test_results_in_the_memory_of_operands():
    A, right = problem(8, 8)
    memory = np.zeros(100)
    B, out = shared(A.range, A.domain, memory)
    B.local[...] = right.local
    H = gl.matrix_mult(gl.Matrix(A.grid, A.grid.matrix_layout(8, 8)).fill(lambda i, j: 9.0 * (i == j) + 1)) if COMM.size == 1 else None
    X0 = gl.zeros(A.domain, 1)
    calls = [lambda: gl.cgls(A, B, out=out), lambda: gl.lsqr(A, B, out=out), lambda: gl.lsmr(A, B, out=out), lambda: gl.block_cgls(A, B, out=out),
             lambda: gl.ista(A, B, out=out, lambda_=0.1), lambda: gl.fista(A, B, out=out, lambda_=0.1),
             lambda: gl.lsqr(A, B, variances=out), lambda: gl.cgls(A, B, X0, out=out), lambda: gl.cgls(A, B, out, out=out),
             lambda: gl.regularized_inversion(A, B, out=out)]
    calls += [lambda: gl.cg(H, B, out=B)] if H else []
    for call in calls:
        expect_error(gl.UsageError, call, "memory")
        assert (B.local == right.local).all()
    # A guess that overlaps the result would be lost, too.
    guess, out = shared(A.domain, A.domain, np.zeros(100))
    guess.local[...] = 3
    expect_error(gl.UsageError, lambda: gl.cgls(A, right, guess, out=out), "share memory")
    assert (guess.local == 3).all()
    X, report = gl.cgls(A, right, X0, out=X0)
    assert X is X0 and report["reasons"] == ["converged"]


def test_bounds_that_are_wrong_on_one_rank():
    A, B = problem()
    last = COMM.rank == COMM.size - 1
    for bad, said in ((np.zeros(4), "(4, 1)"), (np.zeros((1, 5)), "(1, 5)"), (np.zeros((5, 2)), "(5, 2)"), ("low", "float64"), (1j, "complex128"),
                      (np.array([None] * 5), "object")):
        expect_error(gl.UsageError, lambda bad=bad: gl.bounded(A, B, lower=bad if last else np.zeros(5)), said)
    two = gl.zeros(A.range, 2)
    expect_error(gl.ShapeError, lambda: gl.bounded(A, two, lower=np.zeros((1, 5))), "(1, 5)")
