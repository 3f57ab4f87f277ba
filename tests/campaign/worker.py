# SPDX-License-Identifier: BSD-3-Clause
"""The ranks that run the campaign's cases in one process each, through the Python package: worker.py SOCKET, under mpirun.

The driver sends (task, request) to rank 0 by the socket, and gets a reply for each: what every rank raised, whether all members of
the grid returned the same, and what rank 0 did. Ranks that wait for the next case sleep."""
import functools
import multiprocessing.connection
import pickle
import shutil
import sys
import tempfile
import time
import traceback

import mpi4py

mpi4py.rc.thread_level = "serialized"  # Open MPI has windows by messages where no two threads call it at once

import compression  # noqa: E402
import gridlops as gl  # noqa: E402
import numpy as np  # noqa: E402
import trees  # noqa: E402
from problems import HERMITIAN, uneven_parts  # noqa: E402
from mpi4py import MPI  # noqa: E402

COMM = MPI.COMM_WORLD


@functools.lru_cache(maxsize=6)
def grid_of(shape, transport):
    return gl.Grid(COMM, shape, transport=transport)


def whole(grid, array):
    """An array for scatter(), which takes it on one rank."""
    return array if grid.is_member and grid.rank == 0 else None


def digest(report):
    """What every rank must know alike. NaN must equal NaN."""
    return pickle.dumps({name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in report.items()
                         if name not in ("history", "variances", "error_bounds", "in_space")})


def matrix_operator(grid, request):
    """The operator of request["A"], and its matrix."""
    how, A = request["how"], request["A"]
    layout = grid.matrix_layout(*A.shape, how["algorithm"])
    matrix = gl.Matrix(grid, layout, A.dtype).scatter(whole(grid, A))
    op = gl.matrix_mult(matrix, how["algorithm"], panel=how["panel"], column_stable=how["column_stable"], storage=how["storage"])
    if request["solver"] in HERMITIAN and op.domain != op.range:
        op = gl.identity(op.domain, op.range, dtype=op.dtype) @ op
    return with_cuts(op, how["cuts"]), matrix


def with_cuts(op, seed):
    """The operator from and to spaces whose rows are cut unevenly, so that ranks may have none; without a seed as it is."""
    if seed is None:
        return op

    def recut(space, seed):
        rows = gl.Cut(space.rows.axis, uneven_parts(space.dimension, len(space.rows.sizes), seed))
        return gl.Space(op.grid, rows, space.columns)

    models = recut(op.domain, seed)
    data = models if op.range == op.domain else recut(op.range, seed + 1)
    return gl.identity(data, op.range, dtype=op.dtype) @ op @ gl.identity(op.domain, models, dtype=op.dtype)


def solve(request):
    how, options = request["how"], dict(request["options"])
    grid = grid_of(tuple(how["grid"]), how["transport"])
    op, matrix = matrix_operator(grid, request)
    given = matrix.local.copy()
    nrhs = request["B"].shape[1]
    B = gl.zeros(op.range, nrhs, op.dtype).scatter(whole(grid, request["B"]))
    data = B.local.copy()
    if request["X0"] is not None:
        options["x0"] = gl.zeros(op.domain, nrhs, op.dtype).scatter(whole(grid, request["X0"]))
    if request["d"] is not None:
        d = gl.Matrix(grid, gl.Space(grid, op.domain.rows).layout(1), op.dtype).scatter(whole(grid, request["d"][:, None]))
        P = gl.diagonal(op.domain, d)
    if "error" in options:
        options["frobenius_norm"] = gl.frobenius_norm(matrix)
    for name in ("lower", "upper"):  # of a box
        if request.get(name) is not None:
            options[name] = request[name]
    solver = request["solver"]
    refused = None
    try:
        if request["out_is_B"]:
            options["out"] = B
        if request["variances"]:
            options["variances"] = gl.zeros(op.domain, nrhs, op.dtype)
        if solver == "pcg":
            X, report = gl.cg(op, B, M=P, **options)
        elif request["d"] is not None:
            X, report = gl.preconditioned_inversion(op, P, B, solver=solver, damps_x=True, **options)
        else:
            X, report = gl.solve(solver, op, B, **options)
    except gl.Error as error:
        refused = error
    intact = np.array_equal(given, matrix.local) and (request["out_is_B"] and not refused or np.array_equal(data, B.local, equal_nan=True))
    if not COMM.allreduce(intact, MPI.LAND):
        raise Damaged("A or B was changed" + (f" by a call that was refused: {refused}" if refused else ""))
    if refused:
        raise refused
    gathered = X.gather()
    report.pop("alarms")
    report = dict(report)  # which the driver reads without the package
    if request["variances"]:
        report["variances"] = options["variances"].gather()
    report["probable_sigma_min"] = op.probable_sigma_min() if op.shape[0] >= 4 * op.shape[1] > 0 else None
    report["error_bounds"] = None
    if request["sigma_min"] is not None:
        report["error_bounds"] = gl.error_bounds(report, B, X, gl.frobenius_norm(matrix), damp=options.get("damp", 0), sigma_min=request["sigma_min"],
                                                 definite=solver in HERMITIAN)
    return (gathered, report) if grid.is_member else None


class Damaged(Exception):
    """An operand is no longer what it was."""


def change(request):
    """Products before and after the caller changed A in place, and said so where that can be said."""
    how = request["how"]
    grid = grid_of(tuple(how["grid"]), how["transport"])
    op, matrix = matrix_operator(grid, request)
    X = gl.zeros(op.domain, request["X"].shape[1], op.dtype).scatter(whole(grid, request["X"]))
    first = (op @ X).gather()
    matrix.local[...] = gl.Matrix(grid, matrix.layout, op.dtype).scatter(whole(grid, request["A_new"])).local
    if hasattr(op, "matrix_changed"):
        op.matrix_changed()
    return (first, (op @ X).gather(), hasattr(op, "matrix_changed")) if grid.is_member else None


def tree(request):
    grid = grid_of(tuple(request["grid"]), request["transport"])
    return trees.measure(grid, request)


def compressed(request):
    grid_for = lambda shape: grid_of(tuple(shape), request["how"]["transport"])  # noqa: E731
    return compression.measure(grid_for(request["how"]["grid"]), grid_for(request["reader"]), request)


def sweep(request):
    """The same solve with several dampings, and the choice of one."""
    found = solve(request)
    how = request["how"]
    grid = grid_of(tuple(how["grid"]), how["transport"])
    op, _ = matrix_operator(grid, request)
    X = gl.zeros(op.domain, request["B"].shape[1], op.dtype).scatter(whole(grid, found and found[0]))
    report = found[1] if found else {"residual_norms": np.zeros(0), "reasons": []}
    curve = gl.damping_curve(request["damps"], X, report, request["rule"], request["noise"])
    return (found, dict(curve)) if grid.is_member else None


def space(request):
    """One space for all columns and dampings, and the solutions that cgls makes of it."""
    how = request["how"]
    grid = grid_of(tuple(how["grid"]), how["transport"])
    op, matrix = matrix_operator(grid, request)
    B = gl.zeros(op.range, request["B"].shape[1], op.dtype).scatter(whole(grid, request["B"]))
    seen = B
    if request["others"]:
        seen = gl.zeros(op.range, (B.shape[1] + 1) // 2, op.dtype).scatter(whole(grid, np.asfortranarray(request["B"][:, ::2])))
    made = gl.SolutionSpace(op, seen, request["damps"], tolerance=request["least"], max_dimension=request["limit"])
    options = dict(request["options"])
    X, report = (made.solve_others if request["others"] else made.solve)(B, options.pop("damp"), **options)
    report.pop("alarms")
    known = {} if request["sigma_min"] is None else {"sigma_min": request["sigma_min"], "frobenius_norm": gl.frobenius_norm(matrix)}
    facts = {"curves": made.curves("none", **known), "dimension": made.dimension, "products": made.products, "end": made.end}
    facts["in_space"] = [made.solve(seen, damp, max_iterations=0)[0].gather() for damp in request["damps"]] if known else []
    facts["of_factor"] = curves_of_factor(op, seen, request["damps"])
    if request["saved"]:
        facts["saved"] = saved_space(request, grid, op, made, seen)
    gathered = X.gather()
    return ((gathered, dict(report)), facts) if grid.is_member else None


def curves_of_factor(op, B, damps):
    """The curves from singular values, or why there are none."""
    try:
        return gl.damping_curves(op, B, gl.spectral_factor(op, min(damps)), damps, "none")
    except gl.UsageError as error:
        return str(error)


def saved_space(request, grid, op, made, B):
    """What differs between the curves of a space and those of its files, or whether they are taken for A with other rows."""
    folder = COMM.bcast(tempfile.mkdtemp() if COMM.rank == 0 else None)
    try:
        if request["saved"] == "after the rest":
            made.solve_rest(B, max_iterations=20)
        made.save(folder + "/space")
        COMM.Barrier()
        if request["saved"] == "other rows":
            op, _ = matrix_operator(grid, {**request, "A": np.asfortranarray(request["A"][::-1])})
            try:
                gl.SolutionSpace.load(op, folder + "/space")
            except gl.InputError:
                return "refused"
            return "taken"
        same = [digest(dict(curve)) for curve in made.curves()] == [digest(dict(curve)) for curve in gl.SolutionSpace.load(op, folder + "/space").curves()]
        return "same" if same else "different"
    finally:
        COMM.Barrier()
        if COMM.rank == 0:
            shutil.rmtree(folder)


def spectrum(request):
    grid = grid_of(tuple(request["how"]["grid"]), request["how"]["transport"])
    op, _ = matrix_operator(grid, request)
    steps = max(op.shape[0], 1)
    smallest, largest = op.lanczos_extremes(steps)
    return (None, {"smallest": smallest, "largest": largest, "norm": op.estimate_norm(steps)}) if grid.is_member else None


def splitting(request):
    """ADMM, or the primal-dual method."""
    how, options = request["how"], dict(request["options"])
    grid = grid_of(tuple(how["grid"]), how["transport"])
    op, _ = matrix_operator(grid, request)
    nrhs = request["B"].shape[1]
    B = gl.zeros(op.range, nrhs, op.dtype).scatter(whole(grid, request["B"]))
    if request["X0"] is not None:
        options["x0"] = gl.zeros(op.domain, nrhs, op.dtype).scatter(whole(grid, request["X0"]))
    g = {"soft": lambda: gl.threshold_penalty("soft", request["sigma"], op.dtype), "box": lambda: gl.box(*request["box"], op.dtype),
         "quadratic": lambda: gl.quadratic(request["sigma"], dtype=op.dtype)}[request["penalty"]]()
    if request["solver"] == "admm":
        L, _ = matrix_operator(grid, {**request, "A": request["L"]})
        X, report = gl.admm(op, L, g, B, **options)
    else:
        f = gl.threshold_penalty("soft", 1, op.dtype) if request["misfit"] == "soft" else gl.quadratic(1, dtype=op.dtype)
        X, report = gl.primal_dual(op, f, g, B, **options)
    report.pop("alarms")
    gathered = X.gather()
    return (gathered, dict(report)) if grid.is_member else None


def ridge(request):
    grid = grid_of(tuple(request["how"]["grid"]), request["how"]["transport"])
    op, _ = matrix_operator(grid, request)
    B = gl.zeros(op.range, request["B"].shape[1], op.dtype).scatter(whole(grid, request["B"]))
    X, report = gl.ridge(op, B, request["alphas"], **request["options"])
    gathered = X.gather()
    return (gathered, dict(report)) if grid.is_member else None


TASKS = {"solve": solve, "ridge": ridge, "space": space, "spectrum": spectrum, "sweep": sweep, "splitting": splitting, "change": change, "compressed": compressed, "tree": tree}


def run(task, request):
    """What the driver gets: a reply that every rank has its part in."""
    value, error = None, None
    try:
        value = TASKS[task](request)
    except gl.Error as raised:
        error = (type(raised).__name__, str(raised))
    except Damaged as raised:
        error = ("Damaged", str(raised))
    known = None if value is None else digest(value[1]) if task in ("solve", "space", "spectrum", "sweep", "splitting", "ridge") else b""
    parts = COMM.gather((error, known))
    if COMM.rank != 0:
        return None
    errors = [part[0] for part in parts]
    different = {part[1] for part in parts if part[1] is not None}
    return {"errors": errors, "alike": len(different) <= 1, "value": value}


def next_message(socket):
    """What rank 0 receives, on every rank."""
    message = pickle.loads(socket.recv_bytes()) if COMM.rank == 0 else None
    waiting = COMM.Ibarrier()
    while not waiting.Test():
        time.sleep(0.001)
    return COMM.bcast(message)


def main(address):
    socket = multiprocessing.connection.Client(address) if COMM.rank == 0 else None
    while (message := next_message(socket)) is not None:
        reply = run(*message)
        if COMM.rank == 0:
            socket.send(reply)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        COMM.Abort(70)
