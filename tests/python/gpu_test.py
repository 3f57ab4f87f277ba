# SPDX-License-Identifier: BSD-3-Clause
"""Grids on GPUs from Python: results are those of NumPy, and blocks are shared with libraries that take DLPack or the CUDA array interface."""
import ctypes
import gc
import itertools

import numpy as np
import pytest
from capsules import COPIED, READ_ONLY, Producer, Taken, name_of
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
        assert (X.host_copy() == 7).all()
        assert X.__dlpack_device__() == X.local.__dlpack_device__() == (2, grid.gpu) and grid.gpu == COMM.rank % 2


class Foreign:
    """What another library would give: the memory of a matrix, described in its own way."""

    def __init__(self, matrix, **changes):
        facts = dict(matrix.local.__cuda_array_interface__, stream=None)
        self.__cuda_array_interface__, self.kept = {**facts, **changes}, matrix
        self.shape = self.__cuda_array_interface__["shape"]


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
    untold = Foreign(X, version=2)
    del untold.__cuda_array_interface__["stream"]
    for block, words in ((Foreign(X, stream=1), ("stream 1", "synchronise")), (untold, ("stream unknown", "synchronise")), (Foreign(X, strides=None), ("column-major", "asfortranarray")),
                         (Foreign(X, typestr="<i4"), ("int32",)), (Foreign(X, shape=(3, 2, 2)), ("(3, 2, 2)",)), (Foreign(X, mask=X.local), ("mask",)),
                         (np.zeros((3, 4)), ("(1, 0)", f"GPU {grid.gpu}", "take_local")), ([1.0], ("__cuda_array_interface__", "take_local")), (Foreign(X, shape=(2, 4)), ("2 x 4",))):
        expect_error(gl.UsageError, lambda block=block: gl.from_local(space, block), *words)


class Stream:
    """A stream of another library, on this rank's GPU."""

    def __init__(self, grid):
        self._runtime = ctypes.CDLL("libgridlops_gpu_emulated.so.0.1")  # loaded already
        self("cudaSetDevice", grid.gpu)
        self.address, self._page_locked, self._event = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cudaStreamCreateWithPriority", ctypes.byref(self.address), 1, 0)
        self("cudaMallocHost", ctypes.byref(self._page_locked), ctypes.c_size_t(4096))
        self("cudaEventCreateWithFlags", ctypes.byref(self._event), 2)

    def __call__(self, name, *arguments):
        assert getattr(self._runtime, name)(*arguments) == 0, name

    def read(self, taken):
        """The elements of a tensor whose columns follow each other."""
        array = np.empty(taken.shape, taken.dtype, order="F")
        self("cudaMemcpyAsync", self._page_locked, ctypes.c_void_p(taken.address), ctypes.c_size_t(array.nbytes), 2, self.address)
        self("cudaStreamSynchronize", self.address)
        ctypes.memmove(array.ctypes.data, self._page_locked, array.nbytes)
        return array

    def write_zeros(self, address, size):
        self("cudaMemsetAsync", ctypes.c_void_p(address), 0, ctypes.c_size_t(size), self.address)

    def let_wait(self, stream):
        """The stream waits for what this one was given."""
        self("cudaEventRecord", self._event, self.address)
        self("cudaStreamWaitEvent", ctypes.c_void_p(stream), self._event, 0)

    def close(self):
        self("cudaStreamSynchronize", self.address)
        self("cudaEventDestroy", self._event)
        self("cudaFreeHost", self._page_locked)
        self("cudaStreamDestroy", self.address)


def test_tensors_go_out():
    """Another stream reads what the grid's has not computed yet; the capsule, then the tensor, keeps the memory alive. The emulation sees races."""
    for grid in gpu_grids():
        space = gl.Space(grid, gl.Cut("all", [3] * COMM.size))
        stream = Stream(grid)
        for dtype in TYPES:
            double = 2 * gl.identity(space, dtype=dtype)
            X = gl.zeros(space, 2, dtype).fill(integers(dtype, 1))
            expected = 2 * X.host_copy()
            for of_block, version in itertools.product((False, True), (None, (1, 0))):
                Y = double @ X
                capsule = (Y.local if of_block else Y).__dlpack__(stream=stream.address.value, max_version=version)
                assert name_of(capsule) == (b"dltensor" if version is None else b"dltensor_versioned")
                taken = Taken(capsule)
                assert taken.device == (2, grid.gpu) and taken.shape == (3, 2) and taken.strides == (1, 3) and taken.dtype == dtype
                assert taken.address == Y.native.address and taken.byte_offset == 0 and taken.flags in (None, 0)
                del Y, capsule
                gc.collect()
                assert (stream.read(taken) == expected).all()
                taken.free()
        copied = Taken(X.__dlpack__(stream=stream.address.value, max_version=(1, 0), copy=True))
        assert copied.flags == COPIED and copied.address != X.native.address and (stream.read(copied) == expected / 2).all()
        copied.free()
        for own in (grid.stream, -1):  # nobody waits
            Taken(X.__dlpack__(stream=own)).free()
        X.__dlpack__(stream=1)  # nobody takes it
        on_host = Taken(X.__dlpack__(dl_device=(1, 0)))
        kind = ctypes.c_double * 12
        assert on_host.device == (1, 0) and (np.frombuffer(kind.from_address(on_host.address), dtype).reshape(2, 3).T == expected / 2).all()
        on_host.free()
        nothing = Taken(gl.zeros(gl.Space(grid, gl.Cut("all", [0] * COMM.size)), 2, dtype).__dlpack__(stream=-1))
        assert nothing.address is None and nothing.shape == (0, 2)
        nothing.free()
        expect_error(BufferError, lambda X=X: X.__dlpack__(stream=0), "stream 0", "1")
        expect_error(BufferError, lambda X=X: X.__dlpack__(dl_device=(1, 0), copy=False), "without a copy", "host_copy")
        expect_error(BufferError, lambda X=X: X.__dlpack__(dl_device=(2, 1 - grid.gpu)), f"(2, {1 - grid.gpu})")
        read_only = gl.from_local(space, Producer(X.native.address, (3, 2), (1, 3), dtype, (2, grid.gpu), flags=READ_ONLY, keeps=X))
        taken = Taken(read_only.__dlpack__(stream=-1, max_version=(1, 0)))
        assert taken.flags == READ_ONLY
        taken.free()
        expect_error(BufferError, read_only.__dlpack__, "read-only")
        stream.close()


class Late(Producer):
    """An array whose stream may still work on it."""

    def __init__(self, stream, *facts, **options):
        super().__init__(*facts, **options)
        self.stream = stream

    def __dlpack__(self, **options):
        self.stream.let_wait(options["stream"])
        return super().__dlpack__(**options)


def test_tensors_come_in():
    """In place, with any distance between columns, after the work of their stream. The emulation sees races and leaks."""
    for grid in gpu_grids():
        space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))
        stream = Stream(grid)
        for dtype in TYPES:
            size = np.dtype(dtype).itemsize
            memory = gl.zeros(gl.Space(grid, gl.Cut("all", [5] * COMM.size)), 3, dtype).fill(integers(dtype, 1))
            expected = memory.host_copy()
            for version in ((0, 8), (1, 0)):
                # Rows 1 and 2 of each column; the first of them are overwritten late, on another stream.
                memory.take_local(expected)
                grid.native.synchronize()
                stream.write_zeros(memory.native.address + size, 2 * size)
                block = Late(stream, memory.native.address, (2, 3), (1, 5), dtype, (2, grid.gpu), byte_offset=size, version=version, keeps=memory)
                X = gl.from_local(space, block)
                found = (2 * gl.identity(space, dtype=dtype) @ X).host_copy()
                assert (found[:, 0] == 0).all() and (found[:, 1:] == 2 * expected[1:3, 1:]).all() and block.streams == [grid.stream]
                X.take_local(7)
                changed = memory.host_copy()
                assert (changed[1:3] == 7).all() and (changed[0] == expected[0]).all() and (changed[3:] == expected[3:]).all()
                assert (block.made, block.freed) == (1, 0)
                del X
                gc.collect()
                assert (block.made, block.freed) == (1, 1)
            vector = Producer(memory.native.address, (2,), None, dtype, (2, grid.gpu), keeps=memory)
            assert (gl.from_local(space, vector).host_copy() == memory.host_copy()[:2, :1]).all()
            managed = Producer(memory.native.address, (2,), None, dtype, (13, 0), keeps=memory)
            assert (gl.from_local(space, managed).host_copy() == memory.host_copy()[:2, :1]).all()
        facts = memory.native.address, (2, 3), (1, 5), dtype
        for block, words in ((Producer(*facts, (2, 1 - grid.gpu)), (f"(2, {1 - grid.gpu})", f"the memory of GPU {grid.gpu}", "copy it there")),
                             (Producer(*facts, (1, 0)), ("the memory of the host", f"(2, {grid.gpu})", "take_local")),
                             (Producer(*facts[:2], (3, 1), dtype, (2, grid.gpu)), ("column-major", "asfortranarray")),
                             (Producer(*facts[:3], "int32", (2, grid.gpu)), ("int32",)), (Producer(*facts, (2, grid.gpu), lanes=4), ("4 lanes",)),
                             (Producer(*facts, (2, grid.gpu), byte_offset=2), (f"{memory.native.address + 2:#x}",)),
                             (Producer(*facts, (2, grid.gpu), consumed=True), ("consumed",))):
            expect_error(gl.UsageError, lambda block=block, space=space: gl.from_local(space, block), *words)
            gc.collect()
            assert block.consumed or block.freed == block.made
        stream.close()


def test_what_needs_the_host_says_so():
    grid = gl.Grid(device="gpu")
    space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))
    expect_error(gl.UsageError, lambda: gl.local_operator(space, space, lambda x, y: None, lambda y, x: None), "function_operator")
    expect_error(gl.UsageError, lambda: gl.Grid(device="tpu"), "tpu")
    expect_error((BufferError, RuntimeError), lambda: np.from_dlpack(gl.zeros(space)))  # by NumPy


def test_functions_of_matrices():
    grid = gl.Grid(device="gpu")
    space = gl.Space(grid, gl.Cut("all", [2] * COMM.size))

    def double(X, Y):
        Y.take_local(2 * X.host_copy())

    op = gl.function_operator(space, space, double, double)
    assert op.dot_test()[0] and ((op @ gl.zeros(space, 2).fill(lambda i, j: i + j)).host_copy() == 2 * np.add.outer(
        np.arange(2 * COMM.rank, 2 * COMM.rank + 2), np.arange(2))).all()
