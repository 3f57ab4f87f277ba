# SPDX-License-Identifier: BSD-3-Clause
"""Blocks on the host go out by DLPack and come in by it, in place; what NumPy and ctypes read is the truth."""
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
from capsules import COPIED, READ_ONLY, Producer, Taken, name_of
from ranks import COMM, TYPES, block_of, expect_error, integers, whole

import gridlops as gl


ROWS = (COMM.rank + 2) % 3


def space_with_an_empty_part():
    """From two ranks on."""
    return gl.Space(gl.Grid(), gl.Cut("all", [(rank + 2) % 3 for rank in range(COMM.size)]))


def test_numpy_takes_blocks():
    space = space_with_an_empty_part()
    for dtype in TYPES:
        X = gl.zeros(space, 4, dtype).fill(integers(dtype, 1))
        for outside in (np.from_dlpack(X), np.from_dlpack(X.local)):
            assert outside.dtype == dtype and outside.shape == X.local.shape and np.shares_memory(outside, X.local) == (X.local.size > 0)
        outside = np.from_dlpack(X)
        X.local[...] *= 2
        assert (outside == 2 * block_of(X, whole(dtype, 1, space.dimension, 4))).all()
        copied = np.array(X.local)
        del X
        gc.collect()
        assert (outside == copied).all()


def test_capsules():
    space = space_with_an_empty_part()
    rows = ROWS
    for dtype in TYPES:
        memory = np.zeros((rows + 5, 4), dtype, order="F")
        X = gl.from_local(space, memory[2:rows + 2])
        for version, expected in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"), ((2, 3), b"dltensor_versioned")):
            capsule = X.__dlpack__(max_version=version)
            assert name_of(capsule) == expected
            taken = Taken(capsule)
            assert taken.dtype == dtype and taken.shape == (rows, 4) and taken.device == X.__dlpack_device__() == (1, 0)
            assert taken.strides == (1, rows + 5 if rows else 1) and taken.byte_offset == 0
            assert taken.address == (memory[2:].ctypes.data if rows else None)
            assert taken.version == (expected != b"dltensor") and taken.flags in (None, 0)
            taken.free()
    X = gl.zeros(space, 4)
    taken = Taken(X.__dlpack__(max_version=(1, 0), copy=True, dl_device=(1, 0)))
    assert taken.flags == COPIED and taken.shape == (rows, 4) and (taken.address is None or taken.address != X.local.ctypes.data)
    taken.free()


def test_who_keeps_the_memory():
    """The matrix, a capsule that nobody takes, and a tensor that somebody has taken, whatever goes first."""
    grid = gl.Grid(COMM, (COMM.size, 1))
    space = gl.Space(grid, gl.Cut("all", [3] * COMM.size))

    class Memory(np.ndarray):
        """That weak references can follow."""

    memory = np.asfortranarray(np.ones((3, 2))).view(Memory)
    alive = weakref.ref(memory)
    X = gl.from_local(space, memory)
    del memory
    first, second = X.__dlpack__(), X.__dlpack__(max_version=(1, 0))
    taken = Taken(second)
    del X, second
    gc.collect()
    assert alive() is not None
    del first  # nobody took it
    gc.collect()
    assert alive() is not None and (np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * 6).from_address(taken.address)) == 1).all()
    taken.free()
    gc.collect()
    assert alive() is None
    lost = gl.zeros(space, 2).__dlpack__()
    gc.collect()
    del lost


def test_read_only_blocks():
    space = gl.Space(gl.Grid(), gl.Cut("all", [2] * COMM.size))
    frozen = np.ones((2, 3), order="F")
    frozen.flags.writeable = False
    X = gl.from_local(space, frozen)
    taken = Taken(X.__dlpack__(max_version=(1, 0)))
    assert taken.flags == READ_ONLY and taken.address == frozen.ctypes.data
    taken.free()
    expect_error(BufferError, X.__dlpack__, "read-only", "max_version")
    assert np.from_dlpack(X.copy()).shape == (2, 3)
    taken = Taken(X.__dlpack__(copy=True))
    assert taken.address != frozen.ctypes.data
    taken.free()
    memory = np.ones((2, 3), order="F")
    expect_error(ValueError, lambda: gl.from_local(space, Producer.of(memory, flags=READ_ONLY)).fill(lambda i, j: i), "read-only")
    for of in ({"flags": 0}, {"version": (0, 8)}):
        gl.from_local(space, Producer.of(memory, **of)).fill(lambda i, j: 0 * i + 7 + j)
        assert (memory == [[7, 8, 9]] * 2).all()
        memory[...] = 1


def test_what_cannot_be_given():
    X = gl.zeros(gl.Space(gl.Grid(), gl.Cut("all", [2] * COMM.size)))
    expect_error(BufferError, lambda: X.__dlpack__(stream=1), "stream 1", "host")
    expect_error(BufferError, lambda: X.__dlpack__(dl_device=(2, 0)), "(2, 0)", "(1, 0)")


def test_taking_arrays():
    """Any strides between columns, an offset, vectors, no strides at all, and empty blocks; each deleter is called once, after the matrix."""
    space = space_with_an_empty_part()
    rows = ROWS
    for dtype in TYPES:
        for version in ((0, 8), (1, 0), (1, 7)):
            memory = np.array(whole(dtype, 3, rows + 4, 5), order="F")
            size, stride = memory.itemsize, rows + 4
            block = Producer(memory.ctypes.data, (rows, 5), (1, stride), dtype, byte_offset=2 * size, version=version, keeps=memory)
            X = gl.from_local(space, block)
            assert X.dtype == dtype and X.shape[1] == 5 and (X.local == memory[2:rows + 2]).all()
            memory *= 2
            Y = X.copy()
            assert (Y.local == memory[2:rows + 2]).all() and (block.made, block.freed) == (1, 0) and block.streams == []
            assert name_of(block.capsule) == (b"used_dltensor" if version == (0, 8) else b"used_dltensor_versioned")
            del X
            gc.collect()
            assert (block.made, block.freed) == (1, 1)
            vector = Producer(memory.ctypes.data, (rows,), None, dtype, version=version)
            assert (gl.from_local(space, vector).local[:, 0] == memory[:rows, 0]).all()
            row = gl.Space(space.grid, gl.Cut("all", [1] * COMM.size))
            assert (gl.from_local(row, Producer(memory.ctypes.data, (1, 4), None, dtype, version=version)).local[0] == memory.ravel("F")[:4]).all()
            nothing = Producer(None, (rows, 0), (1, 1), dtype, version=version)
            assert gl.from_local(space, nothing).local.shape == (rows, 0)
            gc.collect()
            assert (vector.freed, nothing.freed) == (1, 1)
    X = gl.zeros(space, 3).fill(integers("float64", 1))
    Y = gl.from_local(space, X)  # a matrix, too
    assert np.shares_memory(X.local, Y.local) == (rows > 0) and (X.local == Y.local).all()
    del X
    gc.collect()
    assert (Y.local == block_of(Y, whole("float64", 1, space.dimension, 3))).all()
    op = gl.matrix_mult(gl.Matrix.from_local(gl.Grid(COMM, (COMM.size, 1)), gl.Layout(gl.Cut("grid_rows", [2] * COMM.size), gl.Cut("grid_cols", [3])),
                                             kept := Producer.of(np.asfortranarray(whole("float64", 1, 2, 3)))))
    gc.collect()
    assert kept.freed == 0 and (op @ gl.zeros(op.domain, 1).fill(lambda i, j: 1 + 0 * i)).shape == (2 * COMM.size, 1)
    del op
    gc.collect()
    assert kept.freed == 1


def test_refusals():
    space = gl.Space(gl.Grid(), gl.Cut("all", [3] * COMM.size))
    memory = np.zeros((3, 4), order="F")
    address = memory.ctypes.data

    def refused(producer, *words):
        expect_error(gl.UsageError, lambda: gl.from_local(space, producer), *words)
        gc.collect()
        assert producer.freed == (0 if producer.consumed else producer.made)

    refused(Producer(address, (3, 4), (1, 3), "float64", (2, 1)), "Producer", "(2, 1)", "GPU 1", "copy it there")
    refused(Producer(address, (3, 4), (1, 3), "float64", (8, 0)), "(8, 0)", "Apple", "copy it there")
    refused(Producer(address, (3, 4), (4, 1), "float64"), "3 x 4", "32 and 8 bytes", "asfortranarray", "contiguous()")
    refused(Producer(address, (3, 4), None, "float64"), "column-major")
    refused(Producer(address, (3, 4), (1, -3), "float64"), "column-major")
    refused(Producer(address, (3, 2, 2), (1, 3, 6), "float64"), "3 dimensions", "reshape")
    refused(Producer(address, (), (), "float64"), "0 dimensions")
    refused(Producer(address, (3, 4), (1, 3), "int32"), "int32", "astype")
    refused(Producer(address, (3, 4), (1, 3), "bfloat16"), "bfloat16", "float64")
    refused(Producer(address, (3, 4), (1, 3), "float32", lanes=2), "2 lanes of float32", "dimension")
    refused(Producer(address, (3, 3), (1, 3), "float64", byte_offset=4), f"{address + 4:#x}", "array.copy()")
    refused(Producer(address, (3, 4), (1, 3), "float64", version=(2, 0)), "version 2")
    refused(Producer(address, (3, 4), (1, 3), "float64", consumed=True), "consumed", "new capsule")
    refused(Producer(address, (3, 4), (1, 3), "float64", version=(0, 8), consumed=True), "consumed")

    class NotACapsule:
        made = freed = consumed = 0

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return 7

    class NotNow(NotACapsule):
        def __dlpack__(self, **_):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    refused(NotACapsule(), "returned 7", "PyTorch")
    refused(NotNow(), "NotNow", "(1, 0)", "tensor.detach()")
    capsule = gl.zeros(space).__dlpack__()
    expect_error(gl.UsageError, lambda: gl.from_local(space, capsule), "PyCapsule", "__dlpack__")
    expect_error(gl.UsageError, lambda: gl.from_local(space, [1.0]), "list", "NumPy")
    expect_error(gl.ShapeError, lambda: gl.from_local(space, Producer.of(np.zeros((4, 1), order="F"))), "4 x 1")


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import numpy as np
import gridlops as gl
from capsules import Taken
space = gl.Space(gl.Grid(), gl.Cut("all", [2]))
X = gl.from_local(space, np.ones((2, 1), order="F"))
kept = [np.from_dlpack(gl.zeros(space)), X.__dlpack__(), Taken(gl.zeros(space).__dlpack__())]
sys.modules["kept until the end"] = kept
print("done")
"""


def test_end_of_the_interpreter():
    """Arrays and capsules may be alive when Python ends."""
    if COMM.size == 1:
        alone = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(path=sys.path)], env=alone, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
