# SPDX-License-Identifier: BSD-3-Clause
"""One space for several right-hand sides and dampings: its solutions are solved, and its curves are those of the solutions. Or the
space is that of every other right-hand side, and solves them all."""
import numpy as np

import properties
from problems import Problem
from properties import SOLVED, require
from solve_area import answer, request_of


def check(case, workers):
    problem = Problem(case)
    damps = sorted({*problem.D, *(float(np.ldexp(D, case["scale_A"])) for D in case["more"])}) or [0.0]
    request = {**request_of(problem), "damps": damps, "least": min(problem.T, default=1e-4), "limit": case["limit"], "others": case["others"]}
    request["options"]["damp"] = problem.D
    value, facts = answer(workers, request, "space")
    require(value is not None, "space, refused without need", facts)
    X, report = value
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    truth = properties.Truth(problem, X)
    properties.solved(problem, truth, report)
    properties.true_norms(problem, truth, report)
    properties.ends(problem, truth, report)
    properties.orthogonal_data(problem, truth, report)
    width, end = problem.B.shape[1], facts["end"]
    most = min(problem.A.shape)
    require(facts["dimension"] <= most and facts["products"] <= 2 * facts["dimension"] + 2 * width, "space, size", facts["dimension"],
            facts["products"], "of", most)
    require(case["limit"] == 0 or facts["dimension"] <= case["limit"], "space, limit", facts["dimension"], case["limit"])
    if case["others"]:
        return [f"others, {reason}" for reason in report["reasons"]] or [end]
    require(len(facts["curves"]) == width, "space, curves", facts["curves"])
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
    return [f"{end}, {reason}" for reason in report["reasons"]] or [end]
