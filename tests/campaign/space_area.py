# SPDX-License-Identifier: BSD-3-Clause
"""One space for several right-hand sides and dampings, at every scale: its solutions are solved, its curves are those of the
solutions, no error is above its bound, and its files are the same space, for no other A. Or the space is that of every other
right-hand side, and solves them all. A column with NaN, which others do not notice, may be among them."""
import numpy as np

import properties
from problems import Problem
from properties import SOLVED, require, wide
from solve_area import answer, request_of


def check(case, workers):
    problem = Problem(case)
    damps = sorted({*problem.D, *(float(np.ldexp(D, case["scale_A"])) for D in case["more"])}) or [0.0]
    request = {**request_of(problem), "damps": damps, "least": min(problem.T, default=1e-4), "limit": case["limit"], "others": case["others"],
               "saved": case["saved"]}
    request["options"]["damp"] = problem.D
    place = with_nan(problem, request) if case["nan"] else None
    value, facts = answer(workers, request, "space")
    require(value is not None, "space, refused without need", facts)
    X, report = value
    seen = np.arange(request["B"].shape[1])[:: 2 if case["others"] else 1]
    if place is not None:
        X, report = without_nan(place, seen, X, report, facts)
    if case["saved"] == "other rows":
        A = problem.A
        differs = abs(A - A[::-1]).max(initial=0) > 1e-2 * abs(A).max(initial=0)
        require(facts["saved"] == "refused" or not differs, "space, another matrix", "of rows in another order is", facts["saved"])
    elif case["saved"]:
        require(facts["saved"] == "same", "space, saved", case["saved"], "it gives other curves")
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    truth = properties.Truth(problem, X)
    properties.solved(problem, truth, report)
    properties.true_norms(problem, truth, report)
    properties.ends(problem, truth, report)
    properties.orthogonal_data(problem, truth, report)
    width, end = request["B"].shape[1], facts["end"]
    drawn = [what for what, is_drawn in (("scaled", case["scale_A"] or case["scale_B"]), ("NaN", place is not None),
                                         (f"files, {case['saved']}", case["saved"])) if is_drawn]
    drawn += ["bounds compared"] * bounds(problem, damps, [j - (place is not None and j > place) for j in seen if j != place], facts)
    drawn += of_factor(problem, damps, [j - (place is not None and j > place) for j in seen if j != place], facts["of_factor"])
    most = min(problem.A.shape)
    require(facts["dimension"] <= most and facts["products"] <= 2 * facts["dimension"] + 5 * width, "space, size", facts["dimension"],
            facts["products"], "of", most)
    require(case["limit"] == 0 or facts["dimension"] <= case["limit"], "space, limit", facts["dimension"], case["limit"])
    if case["others"]:
        return drawn + [f"others, {reason}" for reason in report["reasons"]] or [end]
    require(len(facts["curves"]) == problem.B.shape[1], "space, curves", facts["curves"])
    for j, curve in enumerate(facts["curves"]):
        at = int(np.flatnonzero(curve["damps"] == problem.D[j])[0])
        # What rounding hides, the small problems do not see.
        visible = problem.T[j] * truth.reference[j] > 10 * (truth.tested_error[j] + truth.reference_error[j])
        if curve["reasons"][at] not in SOLVED or not visible or end == "non_finite":
            continue
        taken = report["column_iterations"][j]
        require(taken == 0 or case["iterations"] == 0, "space, prediction", "column", j, "is called solved, and takes", taken, "iterations")
        for name, true in (("residual_norms", truth.r[j]), ("x_norms", truth.x[j])):
            error = 100 * (truth.r_error[j] if name == "residual_norms" else truth.x[j] * truth.unit)
            require(abs(np.longdouble(curve[name][at]) - true) <= error + 1e-10 * true, f"space, {name}", "column", j, curve[name][at], "is", true)
    return drawn + [f"{end}, {reason}" for reason in report["reasons"]] or [end]


def with_nan(problem, request):
    """Puts a column with NaN among those of the request. Returns its place."""
    B, options = request["B"], request["options"]
    if not B.shape[0]:
        return None
    place = problem.case["rows"] % (B.shape[1] + 1)
    bad = np.where(np.arange(B.shape[0]) == 0, np.nan, 1).astype(B.dtype)
    request["B"] = np.asfortranarray(np.insert(B, place, bad, axis=1))
    options["damp"] = np.insert(problem.D, place, request["damps"][0]).tolist()
    if problem.tolerance_varies:
        options["tolerance"] = np.insert(problem.T, place, 1e-4).tolist()
    return place


def without_nan(place, seen, X, report, facts):
    """The answer without the column with NaN, which is called so by everything."""
    require(report["reasons"][place] == "non_finite" and np.isnan(X[:, place]).all(), "space, NaN", report["reasons"][place], X[:, place])
    if place in seen:
        at = int(np.flatnonzero(seen == place)[0])
        curve = facts["curves"].pop(at)
        require(set(curve["reasons"]) == {"non_finite"} and np.isnan(curve["x_norms"]).all(), "space, NaN", "the curve is", curve)
        facts["in_space"] = [np.delete(x, at, axis=1) for x in facts["in_space"]]
        if not isinstance(facts["of_factor"], str):
            curve = facts["of_factor"].pop(at)
            require(set(curve["reasons"]) == {"non_finite"}, "factor, NaN", "the curve is", curve)
    kept = np.arange(X.shape[1]) != place
    short = {name: [value for value, keep in zip(values, kept) if keep] for name, values in report.items()
             if isinstance(values, (list, np.ndarray)) and len(values) == len(kept)}
    report = {**report, **short}
    report["iterations"] = max(report["column_iterations"], default=0)
    return X[:, kept], report


def of_factor(problem, damps, columns, curves):
    """Curves from singular values are those of the solutions, where they are not refused. Returns what was drawn."""
    if isinstance(curves, str):
        # Where A has few rows, or none that can be read.
        require("rounding hides" in curves or "on GPUs" in curves, "factor, refused without need", curves)
        return ["factor, refused"]
    p, drawn = problem.case["scale_A"], []
    A = properties.scaled_down(problem)
    if not problem.values.size:
        return drawn
    sigma, norm = float(problem.values[-1]) if A.shape[0] >= A.shape[1] and not problem.case["matrix"]["lost_rank"] else 0.0, problem.norm_plain or 1
    unit, tiny = np.finfo(problem.A.dtype).eps, np.longdouble(np.finfo(problem.A.dtype).tiny)
    for k, damp in enumerate(damps):
        D = float(np.ldexp(damp, -p))
        least = np.hypot(D, sigma)
        if least < 1e-8 * norm or least < 1e3 * len(A) * unit * norm:
            continue
        for at, j in enumerate(columns):
            b = wide(problem.B[:, j])
            if curves[at]["reasons"][k] not in SOLVED or not b.any():
                continue
            x_star, _ = properties.error_of(A, problem.B[:, j], D, p, np.zeros(A.shape[1], problem.A.dtype))
            close = (1e-4 if A.shape[0] >= A.shape[1] else 3e-2) + 1e3 * max(A.shape) * unit * norm / least
            x, r, size = (properties.norms(each[:, None])[0] for each in (x_star, b - A @ x_star * np.ldexp(np.longdouble(1), p), b))
            found_x, found_r = curves[at]["x_norms"][k], curves[at]["residual_norms"][k]
            of_rounding = 100 * unit * norm * size / np.ldexp(np.longdouble(least), p) / least  # all of x, where b is orthogonal to the range of A
            require(abs(found_x - x) <= close * x + of_rounding + tiny, "factor, x_norms", "column", j, "D", damp, found_x, "is", x)
            require(abs(found_r - r) <= close * size + tiny, "factor, residual_norms", "column", j, "D", damp, found_r, "is", r, "of", size)
            drawn = ["factor, compared"]
    return drawn


def bounds(problem, damps, columns, facts):
    """No x in the space is further from the solution than the curve says. Returns the number of those compared."""
    if not facts["in_space"]:
        return 0
    p, compared = problem.case["scale_A"], 0
    A = properties.scaled_down(problem)
    sigma = float(np.ldexp(properties.sigma_min(problem), -p))
    tiny = np.longdouble(np.finfo(problem.A.dtype).tiny) * np.sqrt(np.longdouble(max(problem.case["cols"], 1)))
    for k, damp in enumerate(damps):
        D = float(np.ldexp(damp, -p))
        if np.hypot(D, sigma) < 1e-8 * (problem.norm_plain or 1):
            continue
        for at, j in enumerate(columns):
            bound = facts["curves"][at]["error_bounds"][k]
            if np.isnan(bound):
                require(not problem.B[:, j].any() or problem.norm_plain == 0, "space, no bound", "column", j)
                continue
            x_star, error = properties.error_of(A, problem.B[:, j], D, p, facts["in_space"][k][:, at])
            require(error <= np.longdouble(bound) * (1 + 1e-12) + tiny, "space, bounds", "column", j, "D", damp, "is off by", error, "where at most",
                    bound, "was said, of", properties.norms(x_star[:, None])[0], facts["curves"][at]["reasons"][k], facts["dimension"])
            compared += 1
    return compared
