# SPDX-License-Identifier: BSD-3-Clause
"""Grids on GPUs from Python: results are those of NumPy, and blocks are shared with libraries that take the CUDA array interface."""
import itertools

import numpy as np
import pytest
from ranks import COMM, TYPES, expect_error, integers, whole

import gridlops as gl


def gpu_grids():
    for transport, shape in (("mpi", (1, COMM.size)), ("nccl", None)):
        yield gl.Grid(COMM, shape, transport=transport, device="gpu")


def on_root(grid, array):
    return array if grid.is_member and grid.rank == 0 else None


@pytest.mark.parametrize("dtype", TYPES)
def test_products_and_solvers(dtype):
    a, x = whole(dtype, 1, 23, 9), whole(dtype, 2, 9, 3)
    a += 9 * np.eye(23, 9, dtype=dtype)
    for grid, algorithm in itertools.product(gpu_grids(), ("stationary-a", "summa")):
        A = gl.Matrix(grid, grid.matrix_layout(23, 9, algorithm), dtype).scatter(on_root(grid, a))
        op = gl.matrix_mult(A, algorithm)
        B = op @ op.domain.scatter_array(on_root(grid, x))
        found = op.range.gather_array(B)
        assert found is None or (found == a @ x).all()
        assert op.dot_test()[0]
        single = dtype in ("float32", "complex64")
        X, report = gl.cgls(op, B, tolerance=1e-5 if single else 1e-11)
        found = op.domain.gather_array(X)
        assert report["reasons"] == ["converged"] * 3
        assert found is None or np.allclose(found, x, atol=1e-3 if single else 1e-9)
        found = op.domain.gather_array(op.T @ B)
        assert found is None or np.allclose(found, a.T @ (a @ x), rtol=1e-5)


def test_filling_and_copying():
    for grid in gpu_grids():
        X = gl.Matrix(grid, grid.blocks_2d(7, 5)).fill(integers("float64", 3))
        expected = whole("float64", 3, 7, 5)[X.rows, X.cols]
        assert (X.host_copy() == expected).all() and (X.copy().host_copy() == expected).all()
        assert (X.take_local(2 * expected).host_copy() == 2 * expected).all()


def test_arrays():
    """A kernel in PyLops' order, which is transposed on the way."""
    g, m = whole("complex64", 5, 6, 12).reshape(6, 4, 3), whole("complex64", 6, 6, 6).reshape(6, 3, 2)
    for grid in gpu_grids():
        slices = gl.Space.array(grid, g.shape)
        op = gl.fredholm(slices, slices.scatter_array(on_root(grid, g)))
        found = op.range.gather_array(op @ op.domain.scatter_array(on_root(grid, m)))
        assert found is None or (found == g @ m).all()


def test_blocks_are_shared():
    for grid in gpu_grids():
        space = gl.Space(grid, gl.Cut("all", [rank + 1 for rank in range(COMM.size)]))
        X = gl.zeros(space, 2, "float32").fill(integers("float32", 1))
        facts = X.local.__cuda_array_interface__
        assert facts["shape"] == (COMM.rank + 1, 2) and facts["typestr"] == "<f4" and facts["stream"] == grid.stream != 0
        assert facts["data"] == (X.native.address, False) and facts["strides"][0] == 4 and facts["version"] == 3
        Y = gl.from_local(space, X.local)
        assert (Y.host_copy() == X.host_copy()).all()
        Y.take_local(7)
        assert (X.host_copy() == 7).all() and X.__dlpack_device__() == (2, 0)


class Foreign:
    """What another library would give: the memory of a matrix, described in its own way."""

    def __init__(self, matrix, **changes):
        facts = dict(matrix.local.__cuda_array_interface__, stream=None)
        self.__cuda_array_interface__, self.kept, self.waiting = {**facts, **changes}, matrix, []
        self.shape = self.__cuda_array_interface__["shape"]


class Waiting(Foreign):
    def __dlpack__(self, *, stream):
        self.waiting.append(stream)


def test_foreign_blocks():
    grid = gl.Grid(device="gpu")
    space = gl.Space(grid, gl.Cut("all", [3] * COMM.size))
    X = gl.zeros(space, 4, "float64").fill(integers("float64", 2))
    assert (gl.from_local(space, Foreign(X)).host_copy() == X.host_copy()).all()
    # The first column, as a vector in C order; and rows that are contiguous, where there is one.
    assert (gl.from_local(space, Foreign(X, shape=(3,), strides=None)).host_copy() == X.host_copy()[:, :1]).all()
    one = gl.Space(grid, gl.Cut("all", [1] * COMM.size))
    assert gl.from_local(one, Foreign(X, shape=(1, 3), strides=None)).shape == (COMM.size, 3)
    read_only = gl.from_local(space, Foreign(X, data=(X.native.address, True)))
    expect_error(gl.UsageError, lambda: read_only.take_local(1), "read-only")
    late = Waiting(X, stream=1)
    gl.from_local(space, late)
    assert late.waiting == [grid.stream]
    untold = Waiting(X, version=2)
    del untold.__cuda_array_interface__["stream"]
    gl.from_local(space, untold)
    assert untold.waiting == [grid.stream]
    for block, words in ((Foreign(X, stream=1), ("stream 1", "synchronise")), (Foreign(X, strides=None), ("column-major", "asfortranarray")),
                         (Foreign(X, typestr="<i4"), ("int32",)), (Foreign(X, shape=(3, 2, 2)), ("(3, 2, 2)",)), (Foreign(X, mask=X.local), ("mask",)),
                         (np.zeros((3, 4)), ("__cuda_array_interface__", "take_local")), (Foreign(X, shape=(2, 4)), ("2 x 4",))):
        expect_error(gl.UsageError, lambda block=block: gl.from_local(space, block), *words)


def test_what_needs_the_host_says_so():
    grid = gl.Grid(device="gpu")
    space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))
    expect_error(gl.UsageError, lambda: gl.local_operator(space, space, lambda x, y: None, lambda y, x: None), "function_operator")
    expect_error(gl.UsageError, lambda: gl.Grid(device="tpu"), "tpu")
    expect_error(BufferError, lambda: np.from_dlpack(gl.zeros(space)), "GPU")


def test_functions_of_matrices():
    grid = gl.Grid(device="gpu")
    space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))

    def double(X, Y):
        Y.take_local(2 * X.host_copy())

    op = gl.function_operator(space, space, double, double)
    assert op.dot_test()[0] and ((op @ gl.zeros(space, 2).fill(lambda i, j: i + j)).host_copy() == 2 * np.add.outer(
        np.arange(2 * COMM.rank, 2 * COMM.rank + 2), np.arange(2))).all()
