# SPDX-License-Identifier: BSD-3-Clause
"""Compressed matrices: the error that was certified, products, files on other grids, and files that were damaged."""
import numpy as np

import properties
from problems import TYPES
from properties import require


def matrix_of(case):
    """Blocks of waves between stations on a line, random numbers, one outer product and zeros, times a power of two."""
    rows, cols, rng = case["rows"], case["cols"], np.random.default_rng(case["seed"])
    is_complex = case["type"].startswith("c")
    x, y = rng.uniform(0, 1, rows), rng.uniform(0, 1, cols)
    distance = np.hypot(x[:, None] - y[None, :], 0.2)
    made = {"waves": np.exp(30j * distance) / distance, "random": rng.standard_normal((rows, cols)) + 1j * rng.standard_normal((rows, cols)),
            "outer": np.outer(rng.standard_normal(rows), rng.standard_normal(cols) * (1 + 1j)), "zero": np.zeros((rows, cols))}
    A = np.zeros((rows, cols), complex)
    for k, kind in enumerate(case["kinds"]):
        part = slice(cols * k // len(case["kinds"]), cols * (k + 1) // len(case["kinds"]))
        A[:, part] = made[kind][:, part]
    A = np.ldexp(A.view(float), case["power"]).view(complex)
    return np.asfortranarray((A if is_complex else A.real).astype(TYPES[case["type"]])), np.argsort(x, kind="stable"), np.argsort(y, kind="stable")


def request_of(case, A, orders):
    return {"how": case["how"], "reader": case["reader"], "A": A, "tolerance": case["tolerance"], "tile": case["tile"], "damage": case["damage"],
            "from_file": case["from_file"], "row_order": orders[0] if case["orders"][0] else None, "col_order": orders[1] if case["orders"][1] else None,
            "columns": case["columns"], "damp": case["damp"] * float(properties.frobenius(properties.wide(A)))}


def tiles_of(case):
    """How many there are: every rank cuts its block."""
    def cuts(count, parts):
        return [-(-(count // parts + (part < count % parts)) // case["tile"]) for part in range(parts)]

    rows, cols = cuts(case["rows"], case["how"]["grid"][0]), cuts(case["cols"], case["how"]["grid"][1])
    return sum(rows) * sum(cols)


def check(case, workers):
    A, *orders = matrix_of(case)
    bad = case["bad"]
    if bad is not None and A.size:
        A[bad["row"] % A.shape[0], bad["col"] % A.shape[1]] = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[bad["value"]]
    reply = workers.call(case["how"]["ranks"], "compressed", request_of(case, A, orders))
    members = int(np.prod(case["how"]["grid"]))
    errors = reply["errors"][:members]
    require(len(set(errors)) == 1 and not any(error and error not in errors for error in reply["errors"]), "compressed, refused on all ranks", reply["errors"])
    if bad is not None and A.size:
        kind = "InputError" if case["from_file"] else "UsageError"
        require(errors[0] is not None and errors[0][0] == kind, "compressed, not finite", errors[0])
        row, col = bad["row"] % A.shape[0], bad["col"] % A.shape[1]
        place = f"at row {row}, column {col} (from 0)" if case["from_file"] else f"element ({row}, {col}) of the matrix is"
        require(place in errors[0][1], "compressed, the place of what is not finite", errors[0], place)
        return ["not finite"]
    require(errors[0] is None, "compressed, refused without need", errors[0])
    found = reply["value"]
    holds(case, A, found)
    return ["holds", "damaged: " + damaged(case, found)] if case["damage"] else ["holds"]


def holds(case, A, found):
    wide, size = properties.wide, properties.frobenius
    eps, report = float(np.finfo(A.dtype).eps), found["report"]
    A, C = wide(A), wide(found["forward"])
    norm = size(A)
    # A product with a column of the identity sums as many products as a tile has vectors, of factors whose norms A's bounds.
    rounding = 20 * eps * np.sqrt(1 + max(A.shape, default=0))
    require(C.shape == A.shape and np.isfinite(C).all(), "compressed, products", C.shape)
    require(abs(report["norm"] - norm) <= 1e-10 * norm, "compressed, norm", report["norm"], norm)
    error = float(size(A - C) / norm) if norm else float(size(C))
    require(report["error"] <= case["tolerance"] and error <= case["tolerance"] + rounding, "compressed, error", error, report["error"], case["tolerance"])
    require(abs(error - report["error"]) <= 1e-8 * error + rounding, "compressed, certified error", error, report["error"])
    require(report["tiles"] == tiles_of(case), "compressed, tiles", report["tiles"], tiles_of(case))
    require(0 <= report["dense_tiles"] and 0 <= report["empty_tiles"] and report["dense_tiles"] + report["empty_tiles"] <= report["tiles"], "compressed, kinds of tiles", report)
    require(report["dense_bytes"] == found["forward"].nbytes, "compressed, bytes of A", report)
    if not norm:
        require(report["error"] == 0 and report["empty_tiles"] == report["tiles"], "compressed, zero", report)
    off = rounding * (norm + np.finfo(found["forward"].dtype).tiny)
    require(abs(wide(found["backward"]) - C.conj().T).max(initial=0) <= off, "compressed, adjoint")
    X, Y0, Y = (wide(found[name]) for name in ("X", "Y0", "Y"))
    expected = 2 * C @ X - Y0
    require(abs(Y - expected).max(initial=0) <= 4 * off * max(size(X), 1) + 4 * eps * size(Y0), "compressed, apply with alpha and beta")
    require(found["dot"][0] or not C.any(), "compressed, dot test", found["dot"])
    if "refined" in found:
        solved(case, A, found, eps)
    again, said = wide(found["again"]), found["report_again"]
    require(again.shape == C.shape and abs(again - C).max(initial=0) <= off, "compressed, read on another grid")
    require(all(said[name] == report[name] for name in ("norm", "error", "tiles", "dense_tiles", "empty_tiles", "dense_bytes")), "compressed, report on another grid", said, report)


def solved(case, A, found, eps):
    """What is solved is solved for the original, and the solution of the compressed matrix is no farther from that than its bound."""
    wide, norms = properties.wide, properties.norms
    scale, norm = np.ldexp(np.longdouble(1), case["power"]), properties.frobenius(A)
    D, B, X, Y = case["damp"] * norm, wide(found["B"]), wide(found["refined"]), wide(found["rough"])
    require(np.isfinite(X).all() and np.isfinite(Y).all(), "compressed, finite solutions")
    gradients, reference = norms(A.conj().T @ (B - A @ X) - D**2 * X), norms(A.conj().T @ B)
    rounding = 20 * eps * np.sqrt(1 + max(A.shape)) * norm * (norms(B) + norm * norms(X))
    T = 1e-4 if eps > 1e-10 else 1e-8
    for j, reason in enumerate(found["reasons"]):
        require(reason in properties.REASONS, "compressed, verdict", reason)
        require(reason != "converged" or gradients[j] <= T * reference[j] + rounding[j], "compressed, solved for the original", gradients[j], T * reference[j])
    plain = (A / scale).astype(np.result_type(found["B"].dtype, np.float64))  # the range of double precision holds its squares
    exact = wide(np.linalg.solve(plain.conj().T @ plain + float(D / scale) ** 2 * np.eye(A.shape[1]), plain.conj().T @ found["B"].astype(plain.dtype))) / scale
    errors = norms(Y - exact)
    # The problem's condition is at most 1 + 1/damp².
    allowed = found["bounds"] * (1 + 1e-3) + (rounding + eps * norm * norms(B)) / D**2 + 1e-12 / case["damp"] ** 2 * norms(exact)
    require((errors <= allowed).all(), "compressed, bounds of errors", errors, found["bounds"])


def damaged(case, found):
    """What is damaged is refused alike on all ranks that read it, or is as it was."""
    errors = [error for error in found["damaged"] if error is not None]
    members = int(np.prod(case["reader"]))
    if not errors:
        same = found["after"] is not None and np.array_equal(found["after"], found["again"])
        require(same, "compressed, damage is not seen", case["damage"], found["what"])
        return "as it was"
    require(all(found["damaged"][:members]) and len(set(errors)) == 1, "compressed, damage on some ranks", found["damaged"], found["what"])
    require(errors[0][0] == "InputError", "compressed, damage is no InputError", errors[0], found["what"])
    return "refused"
