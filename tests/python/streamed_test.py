# SPDX-License-Identifier: BSD-3-Clause
"""Matrices on disks from Python, against NumPy."""
import sys
from pathlib import Path

import numpy as np
from ranks import COMM, expect_error, grids, on_root

import gridlops as gl

sys.path.append(str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

DISK = program.disk()
SHAPE = (1801, 1203)  # of which ranks that keep little in memory read some slabs


def noise(dtype, seed=1, shape=SHAPE):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape)
    return (A + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else A).astype(dtype)


def data_of(op, columns=3):
    return gl.zeros(op.range, columns, op.dtype).fill(lambda i, j: np.cos(i * (j + 1)).astype(op.dtype))


def test_products_and_solution(folder):
    for dtype in ("float64", "complex64"):
        A = noise(dtype)
        on_root(lambda A=A: np.save(folder / "A.npy", A))
        exact = None
        for grid in grids():
            op = gl.stream_matrix(folder / "A.npy", scratch=DISK, grid=grid)
            assert isinstance(op, gl.Operator) and op.shape == SHAPE and op.dtype == dtype
            Y = data_of(op)
            back, data = (op.H @ Y).gather(), Y.gather()
            X, _ = gl.cgls(op, Y, damp=10.0, tolerance=1e-4, one_pass=True)
            solved = X.gather()
            if grid.is_member:
                all_in_memory = A.nbytes < COMM.size * (4 << 20)  # of so small a block the ring has all
                assert (op.bytes_read > 0 or all_in_memory) and op.seconds_waited >= 0
            if back is not None:
                size = np.abs(A).sum(axis=0)[:, None]
                assert (np.abs(back - A.conj().T @ data) <= 30 * np.finfo(dtype).eps * size).all()
                if exact is None:
                    exact = np.linalg.solve(A.conj().T @ A + 100 * np.eye(SHAPE[1]), A.conj().T @ data)
                assert np.linalg.norm(solved - exact) <= 1e-2 * np.linalg.norm(exact)


def test_memory():
    A = noise("float64")
    for grid in grids():
        matrix = gl.Matrix(grid, grid.matrix_layout(*SHAPE)).scatter(A)
        packed = gl.matrix_mult(matrix, "stationary-a", storage="packed")
        for memory, reads in ((0, True), (1 << 30, False)):
            op = gl.stream_matrix(matrix, scratch=DISK, memory=memory)
            Y = data_of(op)
            found, expected = (op.H @ Y).gather(), (packed.H @ Y).gather()
            if grid.is_member:
                assert (op.bytes_read > 0) == reads
            if found is not None:
                assert np.array_equal(found, expected)


def test_in_place(folder):
    A = noise("complex64")
    on_root(lambda: (np.save(folder / "rows.npy", A), np.save(folder / "columns.npy", np.asfortranarray(A))))
    for grid in grids():
        matrix = gl.Matrix(grid, grid.matrix_layout(*SHAPE), "complex64").scatter(A)
        packed = gl.matrix_mult(matrix, "stationary-a", storage="packed")
        for memory in (0, 1 << 30):
            op = gl.stream_matrix(folder / "rows.npy", memory=memory, in_place=True, grid=grid)
            Y = data_of(op)
            found, expected = (op.H @ Y).gather(), (packed.H @ Y).gather()
            if grid.is_member:
                assert op.bytes_read >= 0.99 * A.nbytes / COMM.size
            if found is not None:
                assert np.array_equal(found, expected)
    expect_error(gl.UsageError, lambda: gl.stream_matrix(folder / "columns.npy", in_place=True), "one column after the other")


def test_compressed(folder):
    A = noise("float64")
    on_root(lambda: np.save(folder / "A.npy", A))
    directory = folder / "compressed"
    gl.compress(folder / "A.npy", 1e-6, tile=64, directory=directory)
    for grid in grids():
        plain = gl.read_compressed(directory, grid)
        for memory, reads in ((0, True), (1 << 30, False)):
            op = gl.read_compressed(directory, grid, memory=memory, scratch=DISK)
            Y = data_of(op)
            found, expected = (op.H @ Y).gather(), (plain.H @ Y).gather()
            if grid.is_member:
                in_memory = A.nbytes < COMM.size * (4 << 20)  # of so small a block the ring has all
                assert (op.bytes_read > 0) == reads or in_memory
                assert plain.bytes_read == 0 and op.report == plain.report
            if found is not None:
                assert np.array_equal(found, expected)
    expect_error(gl.OutputError, lambda: gl.read_compressed(directory, grids()[0], memory=0, scratch=folder / "none"), "cannot make a file there")
    expect_error(gl.UsageError, lambda: gl.read_compressed(directory, grids()[0], memory=-1), "the memory cannot be -1 bytes")


def test_refusals(folder):
    grid = grids()[0]
    A = gl.Matrix(grid, grid.matrix_layout(*SHAPE)).fill(lambda i, j: i + j)
    expect_error(gl.OutputError, lambda: gl.stream_matrix(A, scratch=folder / "none", memory=0), "cannot make a file there")
    expect_error(gl.UsageError, lambda: gl.stream_matrix(A, memory=-1), "the memory cannot be -1 bytes")
    expect_error(gl.UsageError, lambda: gl.matrix_mult(A, "stationary-a", storage="disk"), "stream_matrix")
