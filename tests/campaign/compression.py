# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks do with a compressed matrix: they make it, multiply, save, read it on another grid, and read it damaged."""
import pathlib
import shutil
import tempfile

import gridlops as gl
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD


def together(action):
    """action() on every rank. If it raises on one, it raises there, and the others return nothing."""
    result, error = None, None
    try:
        result = action()
    except gl.Error as raised:
        error = raised
    if COMM.allreduce(error is not None, MPI.LOR):
        if error is not None:
            raise error
        return None
    return result


def product(op, adjoint=False):
    """The matrix of an operator, or its adjoint, on rank 0."""
    space = op.range if adjoint else op.domain
    eye = gl.zeros(space, space.dimension, op.dtype).fill(lambda i, j: (i == j).astype(op.dtype))
    return (op.rmatvec(eye) if adjoint else op.matvec(eye)).gather()


def change(saved, damage):
    """Damages one of the files that count. Returns what was done."""
    files = sorted(path for path in saved.rglob("*") if path.suffix == ".npy" or path == saved / "manifest.json")
    path = files[damage["file"] % len(files)]
    old = path.read_bytes()
    at = max(len(old) - damage["back"], 0)
    new = {"cut": old[:at], "flip": old[:at] + bytes([old[at] ^ 1 << damage["bit"]]) + old[at + 1:], "longer": old + b"\0", "remove": None,
           "zero": old[:at] + bytes(len(old) - at)}[damage["how"]]
    path.unlink() if new is None else path.write_bytes(new)
    return f"{damage['how']} at {at} of {path.name}"


def solutions(original, op, damp):
    """By steps with the original, and with the compressed matrix alone, with the bounds of its errors."""
    B = gl.zeros(op.range, 2, op.dtype).fill(lambda i, j: np.cos(i + 2 * j).astype(op.dtype))
    X, report = gl.solve_refined(original, op, B, damp=damp, max_iterations=60)
    Y, rough = gl.cgls(op, B, damp=damp, max_iterations=60)
    bounds = gl.error_bounds(rough, B, Y, op.report["norm"], damp=damp, difference_norm=op.report["error"] * op.report["norm"])
    return {"refined": X.gather(), "reasons": report["reasons"], "rough": Y.gather(), "bounds": bounds, "B": B.gather()}


def measure(grid, reader, request):
    folder = pathlib.Path(COMM.bcast(tempfile.mkdtemp(prefix="gridlops-campaign-") if COMM.rank == 0 else None))
    try:
        return measured_in(folder, grid, reader, request)
    finally:
        COMM.Barrier()
        if COMM.rank == 0:
            shutil.rmtree(folder)


def measured_in(folder, grid, reader, request):
    A, saved = request["A"], folder / "saved"
    options = {"tolerance": request["tolerance"], "tile": request["tile"], "row_order": request["row_order"], "col_order": request["col_order"],
               "directory": saved}
    if request["from_file"]:
        if COMM.rank == 0:
            np.save(folder / "A.npy", A if request["from_file"] == "F" else np.ascontiguousarray(A))
        COMM.Barrier()
        op = together(lambda: gl.compress(folder / "A.npy", grid=grid, **options))
    else:
        matrix = gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(A if grid.is_member and grid.rank == 0 else None)
        op = together(lambda: gl.compress(matrix, **options))
    if op is None:
        return None
    k = request["columns"]
    X = gl.zeros(op.domain, k, A.dtype).fill(lambda i, j: np.cos(i * 3 + j).astype(A.dtype))
    Y = gl.zeros(op.range, k, A.dtype).fill(lambda i, j: np.sin(i + j * 2).astype(A.dtype))
    found = {"report": op.report, "forward": product(op), "backward": product(op, True), "X": X.gather(), "Y0": Y.gather(),
             "Y": op.apply(X, Y, 2, -1).gather(), "dot": op.dot_test()}
    if request["damp"]:
        found.update(solutions(gl.matrix_mult(gl.Matrix(grid, grid.matrix_layout(*A.shape), A.dtype).scatter(A if grid.is_member and grid.rank == 0 else None)), op, request["damp"]))
    read = gl.read_compressed(saved, reader)
    found.update(again=product(read), report_again=read.report, damaged=None, after=None)
    if request["damage"]:
        found["what"] = COMM.bcast(change(saved, request["damage"]) if COMM.rank == 0 else None)
        error, after = None, None
        try:
            after = gl.read_compressed(saved, reader)
        except gl.Error as raised:
            error = (type(raised).__name__, str(raised))
        found["damaged"] = COMM.allgather(error)
        if after is not None and not any(found["damaged"]):
            found["after"] = product(after)
    return found if COMM.rank == 0 else None
