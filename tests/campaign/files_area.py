# SPDX-License-Identifier: BSD-3-Clause
"""Folders with files of others, which stay as they are, and files of which parts are missing: an error, or every number as written."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from properties import require
from workers import LAUNCH, Lost

#: Outputs that are folders: the words of a command that is ready for the folder's name, and names that it writes there.
FOLDERS = {"make-problem": ("make-problem --rows 6 --cols 5 --rhs 2 --out", ("A.npy", "B.npy", "X_true.npy")),
           "mdd": ("mdd --nx 7 --ny 5 --samples 32 --nf 5 --iterations 2 --quiet --save", ("adjoint.npy", "inverted.npy", "model.npy", "data.npy")),
           "tiles": ("solve --matrix A.npy --rhs B.npy --output X.npy --iterations 1 --quiet --storage disk --tiles", ("row-0-col-0.json", "row-0-col-0.5.tiles")),
           "compress": ("compress --matrix A.npy --tolerance 1e-3 --output", ("manifest.json", "generation-1")),
           "checkpoint": ("solve --matrix A.npy --rhs B.npy --output X.npy --iterations 9 --tolerance 0 --quiet --checkpoint-every 1 --checkpoint",
                          ("manifest.json", "generation-1", "generation-7")),
           "space": ("solve --matrix A.npy --rhs B.npy --output X.npy --damps 1:4:3 --sweep space --choose lcurve --quiet --checkpoint", ("manifest.json", "generation-1", "generation-7"))}
ROWS, COLS = 24, 5
DONE = 0, 1, 3  # 1: a space found no damping to choose


def run(build, folder, ranks, *words):
    """The status and the errors."""
    command = [str(LAUNCH), str(ranks), str(Path(build) / "apps/gridlops"), *map(str, words)]
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", timeout=150, check=False,
                               env={**os.environ, "HWLOC_HIDE_ERRORS": "2", "GRIDLOPS_TIMEOUT": "60", "GRIDLOPS_CALIBRATION": "off"})
    except subprocess.TimeoutExpired as late:
        raise Lost("hang", " ".join(command)) from late
    return ended.returncode, f"status {ended.returncode}: {' '.join(command)}\n{ended.stderr[-1500:]}"


def contents(path):
    """All that is in a folder."""
    return {str(each.relative_to(path)): os.readlink(each) if each.is_symlink() else each.read_bytes() if each.is_file() else None for each in sorted(path.rglob("*"))}


def check(case, workers):
    with tempfile.TemporaryDirectory(prefix="gridlops-campaign-", dir="/var/tmp") as folder:  # tiles go to disks only
        return (folders if case["kind"] in FOLDERS else parts if case["kind"] != "object" else objects)(case, workers.build, Path(folder))


def folders(case, build, place):
    words, names = FOLDERS[case["kind"]]
    rng = np.random.default_rng(case["seed"])
    np.save(place / "A.npy", rng.standard_normal((8, 6)))
    np.save(place / "B.npy", rng.standard_normal((8, 2)))
    out, ranks = place / "out", case["how"]["ranks"]
    if case["own_first"]:
        status, text = run(build, place, ranks, *words.split(), "out")
        require(status in DONE, "files, an output in a new folder", text)
    out.mkdir(exist_ok=True)
    foreign = {}
    for number, (which, what) in enumerate(case["foreign"]):
        name = [*names, "thesis.txt", "notes", "A.npy.tmp.1-1-0", "1.0", ".zarray"][which % (len(names) + 5)]
        path = out / name
        if path.exists() or path.is_symlink():
            continue  # what GridLOps has made
        if what == "file":
            path.write_text(f"years of work {number}", encoding="utf-8")
        elif what == "link":
            (place / f"elsewhere-{number}").write_text("years of work", encoding="utf-8")
            path.symlink_to(f"../elsewhere-{number}")
        else:
            path.mkdir()
            (path / "best.txt").write_text("population", encoding="utf-8")
        foreign.update({key: value for key, value in contents(out).items() if key.split("/")[0] == name})
    status, text = run(build, place, ranks, *words.split(), "out")
    left = contents(out)
    lost = [name for name, value in foreign.items() if name not in left or left[name] != value]
    lost += [path.name for path in place.glob("elsewhere-*") if path.read_text(encoding="utf-8") != "years of work"]
    # In a folder that it has made an output replaces the names that it writes.
    lost = [name for name in lost if not (case["own_first"] and name.split("/")[0] in names)]
    require(not lost, f"files, {case['kind']} loses files of others", lost, text)
    in_the_way = any(name in foreign for name in names)
    require(status in DONE or status == 74 and (in_the_way or case["own_first"]), f"files, {case['kind']} refuses a folder", sorted(foreign), text)
    return ["refused" if status == 74 else "written"]


def parts(case, build, folder):
    """Y = A I for a part of A, whose pieces are in other files, or which has attributes of netCDF."""
    import h5py

    rng, pieces = np.random.default_rng(case["seed"]), case["pieces"]
    A = rng.integers(1, 100, (ROWS, COLS)).astype(case["type"])
    cuts = np.linspace(0, ROWS, pieces + 1).astype(int)
    is_bad = np.zeros(A.shape, bool)
    path = folder / "all.h5"
    if case["kind"] == "virtual":
        with h5py.File(path, "w") as file:
            layout = h5py.VirtualLayout(A.shape, A.dtype)
            for k in range(pieces):
                rows = slice(cuts[k], cuts[k + 1])
                block = A[rows]
                layout[rows] = h5py.VirtualSource(f"part{k}.h5", "S", block.shape)
                damage = case["damage"][k % len(case["damage"])]
                source = folder / f"part{k}.h5"
                with h5py.File(source, "w") as part:
                    if damage == "nested":
                        inner = h5py.VirtualLayout(block.shape, A.dtype)
                        inner[:] = h5py.VirtualSource(f"inner{k}.h5", "S", block.shape)
                        part.create_virtual_dataset("S", inner)
                    else:
                        part["other" if damage == "renamed" else "S"] = block[:-1] if damage == "shorter" else block
                if damage == "gone":
                    source.unlink()
                is_bad[rows] = damage != "none" and block.size > 0
            file.create_virtual_dataset("A", layout, fillvalue=-1)
    elif case["kind"] == "external":
        files = []
        for k in range(pieces):
            block = A[cuts[k]:cuts[k + 1]]
            damage = case["damage"][k % len(case["damage"])]
            name = f"part{k}.raw"
            files.append((name, 0, block.nbytes))
            (folder / name).write_bytes(block.tobytes()[:-1] if damage == "shorter" else block.tobytes())
            if damage in ("gone", "renamed", "nested"):
                (folder / name).unlink()
            is_bad |= damage != "none"
        with h5py.File(path, "w") as file:
            file.create_dataset("A", A.shape, A.dtype, external=[each for each in files if each[2] > 0])
    else:  # netCDF's attributes
        holes = rng.random(A.shape) < case["holes"]
        A[holes] = 250
        is_bad = holes
        with h5py.File(path, "w") as file:
            made = file.create_dataset("A", data=A, chunks=(5, 2) if case["chunked"] else None)
            value = {"_FillValue": A.dtype.type(250), "missing_value": np.array([7.5, 250.0]), "valid_max": 249.0, "valid_range": np.array([0, 200])}
            made.attrs[case["attribute"]] = {**value, "scale_factor": 0.5, "add_offset": 3}[case["attribute"]]
            if case["attribute"] in ("scale_factor", "add_offset"):
                is_bad[:] = True
    first, last = sorted(case["rows"])
    np.save(folder / "I.npy", np.eye(COLS, dtype=A.dtype))
    status, text = run(build, folder, case["how"]["ranks"], "multiply", "--matrix", f"all.h5:/A@{first}:{last + 1}", "--input", "I.npy", "--output", "Y.npy")
    name = f"files, {case['kind']}"
    if is_bad[first:last + 1].any():
        require(status == 65, f"{name}, missing elements become numbers", case["damage"], text)
        return ["missing"]
    require(status == 0, f"{name}, what is there is refused", text)
    require(np.array_equal(np.load(folder / "Y.npy"), A[first:last + 1]), f"{name}, other numbers", text)
    return ["whole"]


OBJECT = """
import sys, numpy as np, gridlops as gl
A, mask = np.load("A.npy"), np.load("mask.npy")
class Variable:
    shape, dtype, attrs = A.shape, A.dtype, {}
    def __getitem__(self, box): return np.ma.masked_array(A, mask)[box] if sys.argv[1] == "masked" else A[box].T if sys.argv[1] == "transposed" else A[box]
source = Variable()
if sys.argv[1] == "filled": source.attrs = {"_FillValue": 250.0}
space = gl.Space.array(gl.Grid(), (A.shape[0],))
try: X = gl.io.read_array(space, source)
except gl.Error as error: sys.exit(40 if error.known_to_all_ranks else 41)
whole = space.gather_array(X)
sys.exit(0 if whole is None or np.array_equal(whole, A) else 42)
"""


def objects(case, build, folder):
    """An object that Python indexes, with a mask, a fill value, or parts that are transposed."""
    rng = np.random.default_rng(case["seed"])
    A, mask = rng.integers(1, 100, (ROWS, COLS)).astype(case["type"]), rng.random((ROWS, COLS)) < case["holes"]
    A[mask] = 250
    np.save(folder / "A.npy", A)
    np.save(folder / "mask.npy", mask)
    what = case["what"]
    command = [str(LAUNCH), str(case["how"]["ranks"]), sys.executable, "-c", OBJECT, what]
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=150, check=False,
                               env={**os.environ, "PYTHONPATH": str(Path(build) / "apps/python"), "HWLOC_HIDE_ERRORS": "2"})
    except subprocess.TimeoutExpired as late:
        raise Lost("hang", " ".join(command)) from late
    expected = 40 if what == "transposed" or what != "plain" and mask.any() else 0
    require(ended.returncode == expected, f"files, an object, {what}", ended.returncode, "instead of", expected, ended.stderr[-1500:])
    return ["missing" if expected else "whole"]
