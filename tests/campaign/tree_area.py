# SPDX-License-Identifier: BSD-3-Clause
"""Random trees of operators against dense matrices."""
import numpy as np

import properties
from problems import TYPES
from properties import require


def check(case, workers):
    request = {**case, "dtype": np.dtype(TYPES[case["type"]]).name, "grid": case["how"]["grid"], "transport": case["how"]["transport"]}
    reply = workers.call(case["how"]["ranks"], "tree", request)
    errors = {error for error in reply["errors"] if error}
    members = np.prod(case["how"]["grid"])
    require(len(errors) <= 1 and (not errors or all(reply["errors"][:members])), "refused on all ranks", reply["errors"])
    require(not errors, "trees, refused", *errors)
    compare(case, reply["value"])
    return ["holds"]


def compare(case, found):
    D, wide = found["expected"], properties.wide
    eps = float(np.finfo(TYPES[case["type"]]).eps)
    # Every level rounds once more, by √n·ε of the product of its parts' norms. Sums of parts that cancel lose more, so that the
    # comparison is with the largest of D and the products of parts; trees have at most 8 levels of factors of at most 50.
    size = max(float(np.sqrt((abs(wide(D)) ** 2).sum())), np.ldexp(1.0, case["power"]))
    bound = 1e3 * eps * np.sqrt(max(D.shape, default=0) + 1) * size
    for name, expected in (("forward", D), ("backward", D.conj().T)):
        require(found[name].shape == expected.shape, f"trees, {name}", found[name].shape, expected.shape)
        require(not D.size or abs(found[name] - expected).max() <= bound, f"trees, {name}", "differs by",
                abs(found[name] - expected).max(initial=0), "bound", bound)
    Y, X, Y0 = found["apply"]
    off = abs(Y - (2 * D @ X - Y0)).max(initial=0)
    require(off <= 10 * bound + 10 * eps, "trees, apply with alpha and beta", off)
    passed, mismatch, tolerance = found["dot"]
    # Where a sum cancels to 0, one of both products may be rounding.
    require(passed or not D.any(), "trees, dot test of a right adjoint", mismatch, tolerance)
    norm = float(np.linalg.norm(D, 2)) if D.size else 0.0
    if "wrong" in found and norm > 0:
        require(not found["wrong"][0], "trees, dot test of a wrong adjoint", found["wrong"])
    require(found["norm"] <= norm * 1.0001 + bound, "trees, estimated norm", found["norm"], norm)
    if "power" in found and found["power"][2] and norm > 0:
        value, v, _ = found["power"]
        off = properties.norms(wide(D @ v - value * v)[:, None])[0]
        require(off <= 2e-5 * abs(value) + bound, "trees, power iteration", "Av - lambda v is", off, "lambda", value, "norm of A", norm)
    if "solve" in found:
        B, reasons = found["solve"]
        damp = 0.5
        G = D.conj().T @ (B - D @ found["x"]) - damp**2 * found["x"]
        off, reference = np.linalg.norm(G, axis=0), np.linalg.norm(D.conj().T @ B, axis=0)
        T = 1e-4 if eps > 1e-10 else 1e-8
        # LSQR's own test is relative to the norms of the operator and of the residual.
        frobenius = np.hypot(np.linalg.norm(D), damp * np.sqrt(D.shape[1]))
        allowed = T * np.maximum(reference, frobenius * np.sqrt(20) * (np.linalg.norm(B, axis=0) + frobenius * np.linalg.norm(found["x"], axis=0)))
        for j, reason in enumerate(reasons):
            require(reason not in properties.SOLVED or off[j] <= allowed[j] + 100 * bound * size, f"trees, solved, {case['solve']}",
                    reason, off[j], allowed[j])
