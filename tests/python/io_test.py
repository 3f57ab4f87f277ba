# SPDX-License-Identifier: BSD-3-Clause
"""Files of matrices and arrays from Python: NumPy's, HDF5's, zarr's, and any object that can be indexed."""
import numpy as np
import pytest
from ranks import COMM, TYPES, block_of, expect_error, grids, integers, on_root, whole

import gridlops as gl
from gridlops import _native


def spaces():
    for grid in grids():
        yield gl.Space(grid, gl.Cut("all", [rank % 3 + 1 for rank in range(grid.shape[0] * grid.shape[1])]))
        for cut in range(3):
            yield gl.Space.array(grid, (3, 5, 4), cut)
        yield gl.Space.array(grid, (2, 0), columns="uncut")


ENDINGS = [".npy", *([".h5:/some/group/x"] if "built without" not in _native.hdf5_text() else [])]


@pytest.mark.parametrize("ending", ENDINGS)
def test_arrays_in_files(folder, ending):
    for number, space in enumerate(spaces()):
        sizes = space.sizes or (space.dimension,)
        for nrhs, dtype in ((1, "complex64"), (3, "float64"), (2, "complex128")):
            name = str(folder / f"x{number}{nrhs}{ending}")
            X = gl.zeros(space, nrhs, dtype).fill(integers(dtype, nrhs))
            gl.io.write_array(X, name)
            expected = whole(dtype, nrhs, space.dimension, nrhs).reshape(*sizes, *([nrhs] if nrhs > 1 else []))
            assert gl.io.shape_of(space.grid, name) == (expected.shape, dtype)
            if ending == ".npy":
                found = np.load(name)
            else:
                h5py = pytest.importorskip("h5py")
                with h5py.File(name.split(":")[0], "r") as file:
                    found = file["some/group/x"][...]
            assert found.dtype == dtype and (found == expected).all()
            Y = gl.io.read_array(space, name)
            assert Y.space == space and (Y.local == X.local).all()


def test_matrices_in_files(folder):
    a = whole("float32", 1, 7, 5)
    on_root(lambda: np.save(folder / "a.npy", a))
    on_root(lambda: np.save(folder / "v.npy", a[:, 0]))
    for grid in grids():
        for algorithm in ("stationary-a", "summa", "block"):
            A = gl.io.read_matrix(grid, folder / "a.npy", algorithm)
            assert A.dtype == np.float32 and A.layout == grid.matrix_layout(7, 5, algorithm) and (A.local == block_of(A, a)).all()
        X = gl.io.read_array(gl.matrix_mult(A, algorithm).range, folder / "v.npy")
        assert X.shape == (7, 1) and (X.local == block_of(X, a[:, :1])).all()
        gl.io.write_matrix(A, folder / "b.npy")
        assert (np.load(folder / "b.npy") == a).all()
        COMM.Barrier()


class Recorder:
    """An object that can be indexed, and keeps what it was asked for."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.asked = array, array.shape, array.dtype, []

    def __getitem__(self, box):
        self.asked.append(box)
        return self.array[box]


def test_objects_that_can_be_indexed(folder):
    for dtype in TYPES[:2]:
        a = whole(dtype, 2, 60, 2).reshape(3, 5, 4, 2)
        on_root(lambda a=a: np.save(folder / "map.npy", a))
        for space in spaces():
            if space.sizes != (3, 5, 4):
                continue
            source = Recorder(a)
            X = gl.io.read_array(space, source)
            assert (X.local == gl.zeros(space, 2, dtype).fill(integers(dtype, 2)).local).all()
            assert source.asked == ([(*space.local_box, slice(0, 2))] if X.local.size else [])
            Y = gl.io.read_array(space, np.load(folder / "map.npy", mmap_mode="r"))
            assert (Y.local == X.local).all()
            if COMM.rank == 0:
                np.lib.format.open_memmap(folder / "out.npy", "w+", dtype, a.shape).flush()
            COMM.Barrier()
            target = np.lib.format.open_memmap(folder / "out.npy", "r+")
            gl.io.write_array(X, target)
            target.flush()
            COMM.Barrier()
            assert (np.load(folder / "out.npy") == a).all()
            COMM.Barrier()


def test_zarr(folder):
    pytest.importorskip("zarr")
    for number, space in enumerate(spaces()):
        if space.sizes != (3, 5, 4):
            continue
        for nrhs in (1, 2):
            X = gl.zeros(space, nrhs, "float32").fill(integers("float32", 3))
            path = folder / f"z{number}{nrhs}"
            gl.io.to_zarr(X, path, chunks=[2] * (3 + (nrhs > 1)))
            Y = gl.io.from_zarr(space, path)
            assert Y.dtype == np.float32 and (Y.local == X.local).all()
            whole_array = space.gather_array(Y)
            assert whole_array is None or (whole_array.ravel() == whole("float32", 3, 60, nrhs).ravel()).all()


def test_folders_of_zarr_are_not_emptied(folder):
    zarr = pytest.importorskip("zarr")
    space = gl.Space.array(gl.Grid(), (12,))
    X = gl.zeros(space, 2).fill(integers("float64", 3))

    def make():
        (folder / "results/notes").mkdir(parents=True)
        for name in ("results/notes/n.txt", "file"):
            (folder / name).write_text("years", encoding="utf-8")
        zarr.open_group(str(folder / "survey"), mode="w").create_group("shots")
        for name in ("array", "mixed", "linked"):
            zarr.open(str(folder / name), mode="w", shape=(4, 4), chunks=(2, 2), dtype="f8")[:] = 1
        (folder / "mixed/notes.txt").write_text("years", encoding="utf-8")
        (folder / "linked/0").symlink_to(folder / "results")
        (folder / "empty").mkdir()
    on_root(make)
    for name in ("results", "survey", "mixed", "file"):
        before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        expect_error(gl.OutputError, lambda name=name: gl.io.to_zarr(X, folder / name), name)
        assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
        COMM.Barrier()
    for name in ("array", "empty", "new", "array", "linked"):
        gl.io.to_zarr(X, folder / name)
        assert (gl.io.from_zarr(space, folder / name).local == X.local).all()
    assert (folder / "results/notes/n.txt").read_text(encoding="utf-8") == "years"
    expect_error(gl.InputError, lambda: gl.io.from_zarr(space, folder / "survey"), "is a group of zarr")
    expect_error(gl.InputError, lambda: gl.io.from_zarr(space, folder / "nowhere"), "nowhere", "zarr cannot open it")


def test_missing_chunks(folder):
    zarr = pytest.importorskip("zarr")
    space = gl.Space.array(gl.Grid(), (12,))

    def make():
        for name, fill in (("none", None), ("seven", 7)):
            array = zarr.open(str(folder / name), mode="w", shape=(12, 1), chunks=(3, 1), dtype="f8", fill_value=fill, zarr_format=2) if hasattr(zarr, "create_array") \
                else zarr.open(str(folder / name), mode="w", shape=(12, 1), chunks=(3, 1), dtype="f8", fill_value=fill)
            array[:6] = 1
    on_root(make)
    expect_error(gl.InputError, lambda: gl.io.from_zarr(space, folder / "none"), "2 of the 4 chunks are missing")
    seven = space.gather_array(gl.io.from_zarr(space, folder / "seven"))
    assert seven is None or (seven.ravel() == [1] * 6 + [7] * 6).all()


class Variable(Recorder):
    """Like those of netCDF4, h5py and zarr: it gives what `of` makes of a part, and has attributes."""

    def __init__(self, array, of=lambda part: part, **attributes):
        super().__init__(array)
        self.of, self.attrs = of, attributes

    def __getitem__(self, box):
        return self.of(super().__getitem__(box))


def test_missing_elements_are_no_numbers():
    space = gl.Space.array(gl.Grid(), (12,))
    a = whole("float32", 1, 12, 5)  # no part of which is square
    most = a.max()
    masked = np.ma.masked_array(np.where(a == most, np.float32(9.97e36), a), mask=a == most)
    for source in (masked, Variable(masked)):
        expect_error(gl.UsageError, lambda source=source: gl.io.read_array(space, source), "masked")
    X = gl.zeros(space, 5, "float32").fill(lambda i, j: 1.0 + 0 * i + 0 * j)
    if X.local.size:
        block = np.ma.masked_array(np.ones(X.local.shape), mask=True)
        for call in (lambda: X.take_local(block), lambda: X.fill(lambda i, j: block)):
            with pytest.raises(gl.UsageError, match="are masked"):
                call()
        assert (X.local == 1).all()
    expect_error(gl.ShapeError, lambda: gl.io.read_array(space, Variable(a, np.transpose)), "the part")
    for attributes, words in (({"scale_factor": 0.5}, "scale_factor is 0.5"), ({"add_offset": np.float32(3)}, "add_offset is 3"), ({"_Unsigned": "true"}, "_Unsigned"),
                              ({"_FillValue": most}, "stand for none"), ({"missing_value": [99, most]}, "stand for none"), ({"valid_max": most - 1}, "stand for none"),
                              ({"valid_min": np.float64(a.min() + 1)}, "stand for none"), ({"valid_range": [-1, 1]}, "stand for none"),
                              ({"missing_value": "none"}, "missing_value is 'none'")):
        expect_error(gl.InputError, lambda attributes=attributes: gl.io.read_array(space, Variable(a, **attributes)), words)
    harmless = {"scale_factor": 1.0, "add_offset": 0, "_FillValue": "AAAAAAAA+H8=", "missing_value": -999, "valid_range": np.array([-99.0, 99.0]), "units": "m"}
    assert (gl.io.read_array(space, Variable(a, **harmless)).local == block_of(X, a)).all()


def test_errors_of_the_library_keep_their_types():
    grid = gl.Grid()
    space = gl.Space.array(grid, (40,))

    class Stopped(gl.InputError):
        """One of a user's."""

    for kind, found in ((gl.InputError, gl.InputError), (gl.UsageError, gl.UsageError), (gl.ShapeError, gl.ShapeError), (gl.OutputError, gl.OutputError),
                        (Stopped, gl.InputError), (gl.Error, gl.Error)):
        for everywhere in (True, False):
            def refuse(part, kind=kind, everywhere=everywhere):
                if everywhere or COMM.rank == COMM.size - 1:
                    raise kind("a disk is gone")
                return part

            with pytest.raises(found) as caught:
                gl.io.read_array(space, Variable(np.zeros((40, 6)), refuse))
            assert caught.value.status == kind.status and "a disk is gone" in str(caught.value) and "At:" not in str(caught.value)
            assert (type(caught.value) is gl.Error) == (kind is gl.Error)
    # So it is in what solvers call.
    A = gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(8, 5)).fill(lambda i, j: np.cos(i + 2.0 * j) + 3 * (i == j)))

    def call(_):
        if COMM.rank == COMM.size - 1:
            raise gl.InputError("no such file")
    with pytest.raises(gl.InputError, match="no such file"):
        gl.cgls(A, gl.zeros(A.range, 1).fill(lambda i, j: i + 1.0), callback=call)


def test_what_is_wrong_on_one_rank_is_raised_on_all(folder):
    grid = gl.Grid()
    space = gl.Space.array(grid, (4, 3))
    on_root(lambda: np.save(folder / "other.npy", np.zeros((3, 4))))
    on_root(lambda: np.save(folder / "flat.npy", np.zeros(12)))
    on_root(lambda: np.save(folder / "cube.npy", np.zeros((2, 2, 3))))
    on_root(lambda: np.save(folder / "whole.npy", np.zeros((4, 3), int)))
    for name, kind, words in (("none.npy", gl.InputError, ("none.npy",)), ("other.npy", gl.ShapeError, ("(3, 4)", "(4, 3)")),
                              ("flat.npy", gl.ShapeError, ("12", "4 x 3")), ("whole.npy", gl.InputError, ("whole.npy",))):
        expect_error(kind, lambda name=name: gl.io.read_array(space, folder / name), *words)
    expect_error(gl.ShapeError, lambda: gl.io.read_matrix(grid, folder / "cube.npy"), "2 x 2 x 3", "read_array")
    X = gl.zeros(space, 1)
    expect_error(gl.OutputError, lambda: gl.io.write_array(X, folder / "missing" / "x.npy"), "missing")
    expect_error(gl.ShapeError, lambda: gl.io.write_array(X, np.zeros((3, 4))), "(3, 4)", "(4, 3)")
    expect_error(gl.ShapeError, lambda: gl.io.write_array(gl.Matrix(grid, grid.matrix_layout(4, 3)), folder / "x.npy"), "write_matrix")

    class Broken(Recorder):
        def __getitem__(self, box):
            if COMM.rank == COMM.size - 1:
                raise OSError("a worn disk")
            return super().__getitem__(box)

    if COMM.size <= 4:  # every rank has a part
        expect_error((gl.Error, OSError), lambda: gl.io.read_array(space, Broken(np.zeros((4, 3)))), "a worn disk")
    assert (gl.io.read_array(space, np.ones((4, 3))).local == 1).all()  # ranks still understand each other
