# SPDX-License-Identifier: BSD-3-Clause
"""Checks that datasets in HDF5 files serve wherever .npy files do: what h5py and MATLAB write is read, results are those of .npy
files to the bit, files keep what they have, and damage is refused. Where HDF5 or h5py is missing, that names of datasets are
refused. hdf5_test.py LAUNCH PROGRAM"""
import json
import random
import shutil

import numpy as np

import program

try:
    import h5py
except ImportError:  # then only refusals are tested
    h5py = None

DONE, USAGE, BAD_INPUT, BAD_OUTPUT = 0, 2, 65, 74
ROWS, COLS, NRHS = 12, 8, 3


def solve(**changes):
    options = {"matrix": "A.npy", "rhs": "B.npy", "output": "X.npy", "iterations": "30", "quiet": True, **changes}
    return ["solve", *(word for name, value in options.items() for word in (["--" + name] if value is True else ["--" + name, value]))]


def multiply(matrix, output="Y.npy", given="I.npy", *more):
    return ["multiply", "--matrix", matrix, "--input", given, "--output", output, *more]


def check_without(suite):
    """Without HDF5 the error says what to install; .npy files are read as ever."""
    np.save(suite.folder / "I.npy", np.eye(3))
    for words in (multiply("P.h5:/A"), multiply("I.npy", "P.h5:/Y"), multiply("I.npy", "Y.npy", "P.hdf5")):
        for ranks in (None, 2):
            run = suite.run(*words, ranks=ranks)
            suite.succeeded(run, USAGE)
            suite.check(len(run.error_lines) == 1 and "built without HDF5" in run.errors and "libhdf5-openmpi-dev" in run.errors,
                        "one error, with the way out:", run.errors)
    suite.succeeded(suite.run(*multiply("I.npy")))


def files_of(folder, name, rng):
    """A problem in .npy files, and the same in datasets."""
    arrays = {"A": program.random_matrix(rng, (ROWS, COLS), name), "B": program.random_matrix(rng, (ROWS, NRHS), name),
              "X0": program.random_matrix(rng, (COLS, NRHS), name), "b": program.random_matrix(rng, (ROWS,), name)}
    arrays |= {"D": np.array([0.5, 0.1, 2.0]), "T": np.array([1e-3, 1e-6, 1e-9])}
    with h5py.File(folder / "P.h5", "w") as file:
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array)
            chunked = {"chunks": (5, 3), "compression": "gzip"} if key == "B" else {}
            file.create_dataset(f"problem/{key}", data=array, **chunked)
        file["problem/B"].attrs.update({"units": "Pa", "spacing": np.array([1.5, 2.5]), "depth": 3})


def check_same(suite, rng):
    """Every option that names a matrix takes a dataset. What is written has the bits of the .npy file."""
    outputs = ["X.npy", "V.npy"]
    for number, name in enumerate(program.TYPES):
        files_of(suite.folder, name, rng)
        ways = [({}, ("matrix", "rhs")), ({"initial": "X0.npy", "tolerances": "T.npy"}, ("matrix", "rhs", "initial", "tolerances")),
                ({"solver": "lsqr", "variances": "V.npy"}, ("matrix", "rhs")), ({"rhs": "b.npy", "damps": "D.npy"}, ("rhs", "damps"))]
        for changes, named in ways[number % 2::2] if name != "f64" else ways:
            words = solve(**changes)
            for ranks in ((None,) if name in ("f32", "c64") else (None, 4)):
                suite.succeeded(suite.run(*words, ranks=ranks))
                expected = {file: np.load(suite.folder / file) for file in outputs if file in words}
                renamed = [f"R.h5:/{word[0]}" if word in outputs else f"P.h5:/problem/{word[:-4]}"
                           if option.removeprefix("--") in named else word for option, word in zip(["", *words], words)]
                suite.succeeded(suite.run(*renamed, ranks=ranks))
                with h5py.File(suite.folder / "R.h5", "r") as file:
                    for output, array in expected.items():
                        found = file[output[0]]
                        suite.check(found.dtype == array.dtype and found.shape == array.shape and found[...].tobytes() == array.tobytes(),
                                    "not the bits of", output, name, changes, ranks)
                        units = found.attrs.get("units")
                        suite.check((units == "Pa") == ("b.npy" not in words), "units", units, changes)
                    if "b.npy" not in words:
                        suite.check(list(file["X"].attrs["spacing"]) == [1.5, 2.5] and file["X"].attrs["depth"] == 3, "attributes",
                                    dict(file["X"].attrs))
        suite.check(sorted(path.name for path in suite.folder.glob("*.h5*")) == ["P.h5", "R.h5"], "files", list(suite.folder.iterdir()))


def write_variants(folder, A):
    """The same matrix in every way; by name, with the way in which the program sees it."""
    seen = {}
    path = folder / "V.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        ways = {"contiguous": {}, "chunked": {"chunks": (5, 3)}, "gzip": {"chunks": (4, 8), "compression": "gzip", "shuffle": True},
                "checked": {"chunks": (3, 3), "fletcher32": True}, "growing": {"chunks": (2, 2), "maxshape": (None, None)},
                "big": {"dtype": ">f8"}, "single": {"dtype": "f4"}, "half": {"dtype": "f2"}, "i16": {"dtype": "i2"}, "u8": {"dtype": "u1"},
                "i32": {"dtype": ">i4", "chunks": (7, 7)}, "complex": {"dtype": "c16"}, "single complex": {"dtype": "c8", "chunks": (6, 2)},
                "big complex": {"dtype": ">c16"}}
        for name, way in ways.items():
            file.create_dataset(f"g/{name}", data=A.astype(way.get("dtype", "f8")), **way)
            seen[f"V.h5:/g/{name}"] = file[f"g/{name}"][...].astype("c16" if "complex" in name else "f8")
        parts = np.zeros(A.shape, [("imag", "<f8"), ("real", "<f8")])
        parts["real"], parts["imag"] = A, 2 * A
        file.create_dataset("swapped", data=parts)
        seen["V.h5:swapped"] = A + 2j * A
        file["soft"] = h5py.SoftLink("/g/gzip")
        seen["V.h5:/soft"] = A
        file["external"] = h5py.ExternalLink("other.h5", "/A")
        seen["V.h5:/external"] = 2 * A
        layout = h5py.VirtualLayout(A.shape, "f8")
        layout[:6], layout[6:] = (h5py.VirtualSource("other.h5", "A", A.shape)[k:k + 6] for k in (0, 6))
        file.create_virtual_dataset("virtual", layout)
        seen["V.h5:/virtual"] = 2 * A
        file.create_dataset("outside", A.shape, "<f8", external=[(str(folder / "outside.bin"), 0, h5py.h5f.UNLIMITED)])
        file["outside"][...] = 3 * A
        seen["V.h5:/outside"] = 3 * A
        file.create_dataset("never written", A.shape, "f8", fillvalue=4)
        seen["V.h5:/never written"] = np.full(A.shape, 4.0)
        file.create_dataset("cube", data=np.stack([A, 5 * A, 6 * A]), chunks=(2, 5, 3))
        seen |= {"V.h5:/cube@1": 5 * A, "V.h5:/cube@-1,:,:": 6 * A, "V.h5:/cube@0,::2,1:": A[::2, 1:]}
    with h5py.File(folder / "other.h5", "w") as file:
        file["A"] = 2 * A
    seen |= write_matlab(folder, A)
    return seen


def write_matlab(folder, A):
    """As MATLAB writes it: the order of the dimensions is reversed, and a block of 512 bytes comes first."""
    with h5py.File(folder / "M.mat", "w", userblock_size=512) as file:
        parts = np.zeros(A.T.shape, [("real", "<f8"), ("imag", "<f8")])
        parts["real"], parts["imag"] = A.T, -A.T
        cube = np.stack([A, 7 * A])  # in MATLAB's words of size 2 x 12 x 8
        file.create_dataset("A", data=A.T)
        file.create_dataset("Z", data=parts, chunks=(3, 5), compression="gzip")
        file.create_dataset("whole", data=A.T.astype("i4"), chunks=(2, 9))
        file.create_dataset("cube", data=cube.transpose(2, 1, 0), chunks=(2, 2, 1), compression="gzip")
        file.create_dataset("text", data=np.array([[72], [105]], "u2"))
        file.create_dataset("none", data=np.array([0, 8], "u8"))
        for name in file:
            kind = {"text": "char", "whole": "int32"}.get(name, "double")
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)
        file["none"].attrs["MATLAB_empty"] = np.uint8(1)
        file.create_group("sparse").attrs["MATLAB_sparse"] = np.uint64(8)
    with open(folder / "M.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")
    return {"M.mat:/A": A, "M.mat:/Z": A - 1j * A, "M.mat:/whole": A, "M.mat:/cube@1": 7 * A, "M.mat:/cube@:,2": np.stack([A, 7 * A])[:, 2]}


def check_variants(suite, rng):
    """Y = A I, where A is stored in every way."""
    A = rng.integers(0, 100, (ROWS, COLS)).astype("f8")
    for number, (name, expected) in enumerate(write_variants(suite.folder, A).items()):
        np.save(suite.folder / "I.npy", np.eye(expected.shape[1]))
        run = suite.run(*multiply(name), ranks=(None, 2, None, 3)[number % 4])
        if suite.succeeded(run):
            suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), expected), name, "is read otherwise than by h5py")


def write_odd(folder):
    with h5py.File(folder / "O.h5", "w") as file:
        file["i64"] = np.ones((3, 3), "i8")
        file["u64"] = np.ones((3, 3), "u8")
        file["bool"] = np.ones((3, 3), "?")
        file["text"] = np.array(["a", "b"], dtype=h5py.string_dtype())
        file["triple"] = np.zeros(3, [("r", "f8"), ("i", "f8"), ("j", "f8")])
        file["other pair"] = np.zeros(3, [("x", "f8"), ("y", "f8")])
        file["whole pair"] = np.zeros(3, [("r", "i4"), ("i", "i8")])
        file["number"] = 3.0
        file["empty"] = h5py.Empty("f8")
        file["six"] = np.zeros((1,) * 6)
        file["wide"] = np.zeros((3, 4))
        file["g/A"] = np.eye(3)
        file["dangling"] = h5py.SoftLink("/nowhere")
        file.create_dataset("lzf", data=np.eye(3), chunks=(2, 2), compression="lzf")
        file.create_dataset("huge", (2**40, 2**40), "f8", chunks=(1024, 1024))


REFUSED = {
    "i64": "integers of 64 bits, which f64 cannot hold exactly; convert them in Python: array.astype('f8')",
    "u64": "unsigned integers of 64 bits", "bool": "an enumeration, such as booleans", "text": "texts; real or complex numbers are needed",
    "triple": "structures of 3 members; complex numbers are pairs", "other pair": "structures of 2 members", "whole pair": "structures of 2",
    "number": "a single number, of which 0 dimensions are wanted; one to five are possible", "empty": "is empty", "six": "one to five are possible",
    "g": "is a group, and not a dataset: it has A; name a dataset, such as O.h5:/g/A", "": "is a group, and not a dataset",
    "nothing": "there is no dataset /nothing in O.h5, whose first level is this: it has ", "dangling": "there is no dataset /dangling",
    "g/A/x": "there is no dataset /g/A/x", "lzf": "is compressed by filter 32000 (lzf", "huge": "is larger than any file can be",
    "wide": "O.h5:/wide is 3 x 4"}


def refused(suite, words, status, *mentions, ranks=None):
    run = suite.run(*words, ranks=ranks)
    suite.succeeded(run, status)
    suite.check(len(run.error_lines) == 1 and all(text in run.errors for text in mentions) and "HDF5-DIAG" not in run.errors,
                "one error line that mentions", mentions, run.errors)


def check_refused(suite):
    write_odd(suite.folder)
    np.save(suite.folder / "I.npy", np.eye(3))
    for number, (name, mention) in enumerate(REFUSED.items()):
        refused(suite, multiply(f"O.h5:/{name}"), BAD_INPUT, mention, f"O.h5:/{name}" if name else "O.h5", ranks=3 if number % 5 == 0 else None)
    for name, mention in {"M.mat:/text": "is a text of MATLAB", "M.mat:/none": "is an empty array of MATLAB",
                          "M.mat:/sparse": "is a sparse matrix of MATLAB; save it as full(A)", "none.h5:/A": "No such file",
                          "I.npy.h5:/A": "is no HDF5 file", "old.mat:/A": "save it in MATLAB with '-v7.3'", "V.h5:/cube": "V.h5:/cube@0",
                          "V.h5:/cube@3": "the index 3 is wanted, but the dataset, 3 x 12 x 8, has 3"}.items():
        shutil.copy(suite.folder / "I.npy", suite.folder / "I.npy.h5")
        shutil.copy(suite.folder / "I.npy", suite.folder / "old.mat")
        refused(suite, multiply(name), BAD_INPUT, mention)
    refused(suite, multiply("V.h5:/cube@1:"[:-1] + ":0:0"), USAGE, "V.h5:/cube@1:0:0")
    suite.check(not (suite.folder / "new.h5").exists(), "an output of a refused run")


def check_sources(suite):
    """Elements in other files are read if they are there. Where HDF5 would read fill values, or files of another folder, it is an error."""
    A, elsewhere = np.arange(40.0 * 6).reshape(40, 6), suite.folder / "elsewhere"
    np.save(suite.folder / "I.npy", np.eye(6))
    elsewhere.mkdir()
    for part in (0, 1):
        with h5py.File(suite.folder / f"part{part}.h5", "w") as file:
            file["S"] = A[20 * part:20 * part + 20]
    with h5py.File(suite.folder / "all.h5", "w") as file:
        rows, columns = (h5py.VirtualLayout((40, 6), "f8") for _ in range(2))
        for part in (0, 1):
            rows[20 * part:20 * part + 20] = h5py.VirtualSource(f"part{part}.h5", "S", (20, 6))
            columns[20 * part:20 * part + 20, 1:] = h5py.VirtualSource(f"part{part}.h5", "S", (20, 6))[:, 1:]
        columns[:, 0] = h5py.VirtualSource(".", "rows", (40, 6))[:, 0]  # virtual itself
        file.create_virtual_dataset("rows", rows, fillvalue=-1)
        file.create_virtual_dataset("columns", columns, fillvalue=-1)
        for name, source in (("circle", "."), ("by name", "all.h5")):
            layout = h5py.VirtualLayout((40, 6), "f8")
            layout[:] = h5py.VirtualSource(source, name if source == "." else "rows", (40, 6))
            file.create_virtual_dataset(name, layout)
        space = h5py.h5s.create_simple((0, 6), (h5py.h5s.UNLIMITED, 6))
        space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (20, 6), (20, 6))
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_virtual(space, b"part%b.h5", b"S", h5py.h5s.create_simple((20, 6)))
        h5py.h5d.create(file.id, b"counted", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((0, 6), (h5py.h5s.UNLIMITED, 6)), made)
        file.create_dataset("beside", A.shape, "<f8", external=[("beside.raw", 0, A.nbytes)])
    A.tofile(suite.folder / "beside.raw")
    shutil.copy(suite.folder / "all.h5", elsewhere)

    def found(name, ranks=None):
        suite.succeeded(suite.run(*multiply(name), ranks=ranks))
        suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), A), name, "is read otherwise than by h5py")
    for ranks in (None, 3):
        for name in ("rows", "columns", "beside"):
            found(f"all.h5:/{name}", ranks)
    large = np.arange(1200.0 * 600).reshape(1200, 600)  # read in several parts
    with h5py.File(suite.folder / "source.h5", "w") as file:
        file.create_dataset("S", data=large, maxshape=(None, 600), chunks=(100, 600))
    with h5py.File(suite.folder / "large.h5", "w") as file:
        source, layout = h5py.VirtualSource("source.h5", "S", large.shape), h5py.VirtualLayout(large.shape, "f8")
        layout[:600], layout[600:] = source[:600], source[600:]
        file.create_virtual_dataset("halves", layout, fillvalue=-1)
        source, layout = (kind(*name, shape=large.shape, maxshape=(None, 600), **more) for kind, name, more in
                          ((h5py.VirtualSource, ("source.h5", "S"), {}), (h5py.VirtualLayout, (), {"dtype": "f8"})))
        layout[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("endless", layout, fillvalue=-1)
    np.save(suite.folder / "L.npy", np.eye(600))
    for name in ("halves", "endless"):
        suite.succeeded(suite.run("multiply", "--matrix", f"large.h5:/{name}", "--input", "L.npy", "--output", "Y.npy"))
        suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), large), name, "is read otherwise than by h5py")
    away = multiply("elsewhere/all.h5:/beside")
    refused(suite, away, BAD_INPUT, "has elements in the file beside.raw, which is not there, or not in the folder of elsewhere/all.h5", ranks=2)
    suite.succeeded(suite.run(*away, environment={"HDF5_EXTFILE_PREFIX": "${ORIGIN}"}), BAD_INPUT)  # it is not there
    suite.succeeded(suite.run(*away, environment={"HDF5_EXTFILE_PREFIX": str(suite.folder)}))
    suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), A), "storage where the variable says")
    refused(suite, multiply("all.h5:/circle"), BAD_INPUT, "by more than 16 others, one the source of the other")
    refused(suite, multiply("all.h5:/by name"), BAD_INPUT, "which is the file that has it; there its name must be '.'")
    refused(suite, multiply("all.h5:/counted"), BAD_INPUT, "sources whose number or length is not fixed, such as part%b.h5:S")
    (suite.folder / "beside.raw").write_bytes(A.tobytes()[:-8])
    refused(suite, multiply("all.h5:/beside"), BAD_INPUT, "has 1920 bytes of elements in the file beside.raw from byte 0 on, of which 1912 are there")
    found("elsewhere/all.h5:/rows", 2)  # the working directory has the parts
    with h5py.File(suite.folder / "part1.h5", "w") as file:
        file["S"] = A[20:39]
    for name in ("rows", "columns"):
        refused(suite, multiply(f"all.h5:/{name}"), BAD_INPUT, "gets elements from part1.h5:S, which has fewer elements now", ranks=(None, 2)[name == "rows"])
    (suite.folder / "part1.h5").unlink()
    for name in ("all.h5:/rows", "all.h5:/columns", "elsewhere/all.h5:/rows"):
        refused(suite, multiply(name), BAD_INPUT, "gets elements from part1.h5:S, of which there is no such file", "fill values would be read", ranks=2)
    np.save(suite.folder / "I.npy", np.eye(6))
    suite.succeeded(suite.run(*multiply("all.h5:/rows@0:20")))  # of parts that are there
    suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), A[:20]), "a part")
    with h5py.File(suite.folder / "part1.h5", "w") as file:
        file["other"] = A[20:]
    refused(suite, multiply("all.h5:/rows"), BAD_INPUT, "of which there is no such dataset in ./part1.h5")


def check_packing(suite):
    """Numbers that netCDF's attributes make others, or none, are refused; an output does not inherit the attributes."""
    A = np.arange(30.0).reshape(5, 6)
    np.save(suite.folder / "I.npy", np.eye(6))
    np.save(suite.folder / "E.npy", np.eye(5))
    facts = {"scale": {"scale_factor": 0.5}, "offset": {"add_offset": np.float32(3)}, "unsigned": {"_Unsigned": "true"},
             "fill": {"_FillValue": 8.0}, "holes": {"missing_value": np.array([-1.0, 29.0])}, "range": {"valid_range": np.array([0, 20])},
             "least": {"valid_min": np.float32(0.5)}, "text": {"missing_value": "none"}, "one": {"valid_range": 3.0},
             "plain": {"scale_factor": 1.0, "add_offset": 0, "_FillValue": np.nan, "missing_value": -999.0, "valid_min": 0, "valid_max": 29.0,
                       "actual_range": np.array([0, 29]), "units": "m"}}
    with h5py.File(suite.folder / "N.h5", "w") as file:
        for name, attributes in facts.items():
            file.create_dataset(name, data=A, chunks=(3, 4) if name == "holes" else None).attrs.update(attributes)
        file.create_dataset("single", data=A.astype("f4") / 10).attrs.update({"_FillValue": 0.1, "valid_max": 2.9})
        file.create_dataset("complex", data=A + 1j).attrs["_FillValue"] = 8.0
    for number, (name, mention) in enumerate({
            "scale": "its attribute scale_factor is 0.5", "offset": "its attribute add_offset is 3", "unsigned": "has an attribute _Unsigned",
            "fill": "the element at (1, 2) is missing: it is 8, and of its attributes _FillValue is 8", "holes": "the element at (4, 5) is missing",
            "range": "the element at (3, 3) is missing: it is 21", "least": "the element at (0, 0) is missing: it is 0, and of its attributes valid_min",
            "text": "has an attribute missing_value that is no number", "one": "has an attribute valid_range of 1 numbers",
            "single": "the element at (0, 1) is missing", "complex": "the element at (1, 2) is missing"}.items()):
        refused(suite, multiply(f"N.h5:/{name}"), BAD_INPUT, f"N.h5:/{name}: ", mention, ranks=2 if number % 3 == 0 else None)
    suite.succeeded(suite.run(*multiply("N.h5:/plain")))
    suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), A), "plain numbers with attributes", np.load(suite.folder / "Y.npy"))
    suite.succeeded(suite.run(*multiply("N.h5:/fill@2:", given="I.npy")))  # of which nothing is missing
    suite.succeeded(suite.run(*multiply("E.npy", "R.h5:/Y", "N.h5:/plain")))
    with h5py.File(suite.folder / "R.h5", "r") as file:
        suite.check(list(file["Y"].attrs) == ["units"], "an output has the attributes", dict(file["Y"].attrs))


def check_outputs(suite):
    """What would be lost is refused, before anything is computed; what is beside it is kept."""
    write_odd(suite.folder)
    with h5py.File(suite.folder / "O.h5", "r") as file:
        before = {name: file[name][...] for name in ("g/A", "wide", "i64", "lzf")}
    np.save(suite.folder / "I.npy", np.eye(3))
    (suite.folder / "text.h5").write_text("no HDF5")
    (suite.folder / "to.h5").symlink_to("O.h5")
    for output, status, mentions in [
            ("O.h5:/g/A", USAGE, ["--output O.h5:/g/A would replace --matrix O.h5:/g/A"]),
            ("to.h5:g//A", USAGE, ["would replace --matrix O.h5:/g/A"]), ("O.h5:/g/A/x", USAGE, ["would replace"]),
            ("O.h5:/g", USAGE, ["would replace"]), ("O.h5:/x@0", USAGE, ["is a part of a dataset"]), ("O.h5", USAGE, ["names no dataset"]),
            ("new.h5", USAGE, ["names no dataset", "new.h5:/X"]), ("M2.mat:/X", USAGE, ["files of MATLAB are read, and not written"]),
            ("O.h5:/wide/x", BAD_OUTPUT, ["--output O.h5:/wide/x: /wide in O.h5 is no group", "nothing was computed"]),
            ("O.h5:/dangling", BAD_OUTPUT, ["is a link to another name"]), ("text.h5:/X", BAD_OUTPUT, ["text.h5: is no HDF5 file"]),
            ("nowhere/x.h5:/X", BAD_OUTPUT, ["nowhere/x.h5"]), (".h5:/x/y", BAD_OUTPUT, [".h5:"])]:
        refused(suite, multiply("O.h5:/g/A", output), status, *mentions, ranks=2 if status == BAD_OUTPUT else None)
    for words in (multiply("O.h5:/g/A", "Y.npy", "I.npy", "--report", "O.h5"), solve(matrix="O.h5:/g/A", rhs="I.npy", history="O.h5"),
                  solve(matrix="I.npy", rhs="I.npy", output="R.h5:/x", solver="lsqr", variances="R.h5:/x/y")):
        refused(suite, words, USAGE)
    for output in ("O.h5:/results/Y", "to.h5:/results/Z", "O.h5:/results/Y", "new.h5:/Y", "new.h5:/g/Y"):
        suite.succeeded(suite.run(*multiply("O.h5:/g/A", output, "I.npy", "--report", "R.json", "--hashes"), ranks=2))
        file, name = output.replace("to.h5", "O.h5").split(":")
        with h5py.File(suite.folder / file, "r") as found:
            suite.check(np.array_equal(found[name][...], np.eye(3)), output, found[name][...])
        report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
        entry = report["files"][-1]
        suite.check(entry["path"] == output and entry["bytes"] == (suite.folder / file).stat().st_size and entry["shape"] == [3, 3]
                    and len(entry["xxh3"]) == 16, "entry of the report", entry)
    suite.check((suite.folder / "to.h5").is_symlink(), "a link was replaced")
    with h5py.File(suite.folder / "O.h5", "r") as file:
        suite.check(all(np.array_equal(file[name][...], array) for name, array in before.items()) and sorted(file["results"]) == ["Y", "Z"],
                    "datasets were lost:", list(file), list(file["results"]))
    with h5py.File(suite.folder / "O.h5", "r+"):  # locked by HDF5
        refused(suite, multiply("I.npy", "O.h5:/new"), BAD_OUTPUT, "unable to lock file")


def check_damage(suite, full):
    """A file of which a bit is wrong, or that is cut off, is refused, or read; nothing crashes or hangs."""
    chance = random.Random(7)
    np.save(suite.folder / "I.npy", np.eye(4))
    with h5py.File(suite.folder / "sound.h5", "w") as file:
        file["g/A"] = np.arange(16.0).reshape(4, 4)
        file.create_dataset("C", data=np.arange(16.0).reshape(4, 4) * 1j, chunks=(2, 3), compression="gzip")
    sound = (suite.folder / "sound.h5").read_bytes()
    cuts = [len(sound) * k // 16 for k in range(0, 16, 1 if full else 3)]
    damaged = [sound[:size] for size in cuts]
    for _ in range(2000 if full else 40):
        data = bytearray(sound)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(data))
    for number, data in enumerate(damaged):
        (suite.folder / "D.h5").write_bytes(data)
        (suite.folder / "Y.npy").unlink(missing_ok=True)
        run = suite.run(*multiply(f"D.h5:{('g/A', 'C')[number % 2]}"))
        if run.status != DONE:
            suite.check(run.status in (BAD_INPUT, 71) and len(run.error_lines) == 1 and "D.h5" in run.errors and "HDF5-DIAG" not in run.errors
                        and not (suite.folder / "Y.npy").exists(), "one error:", run.status, run.errors, data.hex()[:0])


def test(suite, full):
    built = suite.run("info")
    suite.check("HDF5" in built.output, "info says nothing of HDF5:", built.output)
    if "built without HDF5" in built.output or h5py is None:
        if "built without HDF5" in built.output:
            check_without(suite)
        print("not tested: HDF5 is not built, or there is no h5py")
        return
    rng = np.random.default_rng(11)
    check_same(suite, rng)
    check_variants(suite, rng)
    check_refused(suite)
    check_sources(suite)
    check_packing(suite)
    check_outputs(suite)
    check_damage(suite, full)


if __name__ == "__main__":
    program.main(test, __doc__)
