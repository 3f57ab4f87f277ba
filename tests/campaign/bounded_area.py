# SPDX-License-Identifier: BSD-3-Clause
"""Least squares with bounds: x is in the box, what is called solved meets the conditions of Karush, Kuhn and Tucker, and errors are
within their bounds. The solution is that of an active-set method in long double, which starts from the solver's face, and is taken
only where its own conditions hold without tolerance."""
import numpy as np

import properties
from problems import TYPES, Problem
from properties import SOLVED, norms, require, wide
from solve_area import answer, request_of


def box_of(case, solutions):
    """The bounds, in the type, about numbers of the size of the solutions without bounds."""
    rows, cols = case["cols"], len(case["rhs"])
    rng = np.random.default_rng(case["box"]["seed"])
    size = np.where(np.isfinite(solutions) & (solutions > 0), solutions, 1.0)
    lower, upper = np.zeros((rows, cols)), np.full((rows, cols), np.inf)
    kind = case["box"]["kind"]
    if kind == "box":
        upper = np.ones((rows, cols)) * size / 2
    elif kind in ("mixed", "touching"):
        lower = np.where(rng.random((rows, cols)) < 0.3, -np.inf, rng.standard_normal((rows, cols)) * size)
        upper = np.where(rng.random((rows, cols)) < 0.3, np.inf, np.where(np.isfinite(lower), lower, 0) + abs(rng.standard_normal((rows, cols))) * size)
        if kind == "touching":
            upper = np.where((rng.random((rows, cols)) < 0.3) & np.isfinite(lower), lower, upper)
    elif kind == "fixed":
        lower = rng.standard_normal((rows, cols)) * size
        upper = lower
    elif kind == "tight":
        lower, upper = -1e-9 * size * np.ones((rows, cols)), 1e-9 * size * np.ones((rows, cols))
    lower, upper = (np.asfortranarray(bound.astype(TYPES[case["type"]])) for bound in (lower, upper))
    return lower, np.maximum(lower, upper)


def refined_solution(H, b):
    """H⁻¹b in long double, or None if refinement does not converge."""
    x = np.zeros_like(b)
    for _ in range(12):
        change = np.linalg.solve(H.astype(float), (b - H @ x).astype(float))
        x = x + change
        if np.abs(change).max(initial=0) <= 1e-18 * np.abs(x).max(initial=0):
            return x
    return None


def solution(A, b, lower, upper, D, x):
    """The minimiser in the box, from the face of x; None if rounding hides it."""
    H, c = A.T @ A + np.longdouble(D) ** 2 * np.eye(A.shape[1], dtype=np.longdouble), A.T @ b
    x, fixed = x.copy(), (x <= lower) | (x >= upper)
    for _ in range(60):
        face = np.flatnonzero(~fixed)
        target = x.copy()
        if face.size:
            try:
                found = refined_solution(H[np.ix_(face, face)], c[face] - H[np.ix_(face, np.flatnonzero(fixed))] @ x[fixed])
            except np.linalg.LinAlgError:
                found = None
            if found is None:
                return None
            target[face] = found
        step, meets = np.longdouble(1), None
        for i in face:
            bound = lower[i] if target[i] < lower[i] else upper[i] if target[i] > upper[i] else None
            if bound is not None and (bound - x[i]) / (target[i] - x[i]) < step:
                step, meets = (bound - x[i]) / (target[i] - x[i]), (i, bound)
        x = x + step * (target - x)
        if meets is not None:
            x[meets[0]] = meets[1]
            fixed[meets[0]] = True
            continue
        s = c - H @ x
        leaves = np.where(fixed & (lower < upper) & (((x <= lower) & (s > 0)) | ((x >= upper) & (s < 0))), abs(s), 0)
        if not leaves.any():
            return x
        fixed[leaves.argmax()] = False
    return None


def is_out_of_range(problem, lower, upper):
    """Whether the solver may refuse A, a column of B or its box, but for a few powers of two, since it only estimates ‖A‖: bounded.cpp
    says which squares must be numbers."""
    of_A, of_vectors, few = (44, 100, 4) if problem.case["type"] in ("f32", "c64") else (240, 450, 4)
    power_A = np.log2(float(problem.norm_plain)) + problem.case["scale_A"] if problem.norm_plain else -np.inf
    powers_A = np.array([max(power_A, np.log2(float(D)) if D > 0 else -np.inf) for D in problem.D])
    powers_A[np.isinf(powers_A)] = 0
    largest = [np.abs(sizes).max(axis=0, initial=0).astype(float) for sizes in (problem.B, np.clip(0, lower, upper))]
    with np.errstate(divide="ignore"):
        powers = np.maximum(np.log2(largest[0]), np.log2(largest[1]) + powers_A)
    seen = np.isfinite(powers)
    return bool((abs(powers_A) > of_A - few).any() or
                any((abs(powers + k * powers_A)[seen] > of_vectors - few).any() for k in (-1, 0, 1, 2)))


def check(case, workers):
    problem = Problem(case)
    A = wide(problem.A)
    solutions = norms(wide(problem.B)).astype(float) / ((np.linalg.norm(A.astype(float), 2) if A.size else 0) or 1.0)
    lower, upper = box_of(case, solutions)
    X, report = answer(workers, {**request_of(problem), "lower": lower, "upper": upper})
    if X is None:
        require(is_out_of_range(problem, lower, upper), "refused without need, bounded", report)
        return ["refused"]
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    require((X >= lower).all() and (X <= upper).all(), "x is in its box", report["reasons"])
    compared, epsilon = 0, float(np.finfo(X.dtype).eps)
    for j, reason in enumerate(report["reasons"]):
        x, b, D = wide(X)[:, j], wide(problem.B)[:, j], np.longdouble(problem.D[j])
        s = A.T @ (b - A @ x) - D**2 * x
        held = ((x <= lower[:, j]) & (s <= 0)) | ((x >= upper[:, j]) & (s >= 0))
        tested, norm_A = norms(np.where(held, 0, s)[:, None])[0], np.longdouble(problem.norm_plain) * np.longdouble(2.0) ** case["scale_A"]
        size = norms(x[:, None])[0]
        rounding = epsilon * (norm_A * (norms(b[:, None])[0] + norm_A * size) + D**2 * size)
        many = 20 + 4 * np.sqrt(max(A.shape))
        if reason == "converged" and not case["error"]:
            require(tested <= 1.001 * problem.T[j] * report["reference_norms"][j] + many * rounding, "converged, bounded", "column", j, float(tested))
        require(reason != "stagnated" or tested <= 10 * many * rounding, "stagnated, bounded", "column", j, float(tested))
        if report["error_bounds"] is None or not np.isfinite(report["error_bounds"][j]) or reason not in SOLVED | {"iteration_limit"}:
            continue
        truth = solution(A, b, lower[:, j].astype(np.longdouble), upper[:, j].astype(np.longdouble), D, x)
        if truth is not None:
            compared += 1
            error = norms((truth - x)[:, None])[0]
            require(error <= (1 + 1e-9) * report["error_bounds"][j] + 1e-17 * norms(truth[:, None])[0],
                    "error within its bound, bounded", "column", j, float(error), report["error_bounds"][j])
    return report["reasons"] + [f"error within its bound, {case['type']}"] * compared
