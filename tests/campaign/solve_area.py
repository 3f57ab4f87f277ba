# SPDX-License-Identifier: BSD-3-Clause
"""Solves through the Python package: one problem, and once more in another way that must not change the answer."""
import copy

import numpy as np

import properties
from problems import SPARSE, Problem
from properties import SOLVED, require


def request_of(problem, out_is_B=False):
    case = problem.case
    options = {"max_iterations": case["iterations"], "batch": case["batch"], "column_stable": case["how"]["column_stable"]}
    options["tolerance"] = problem.T if problem.tolerance_varies else case["tolerance"]
    if problem.damp_varies:
        options["damp"] = problem.D
    elif problem.D:
        options["damp"] = problem.D[0]
    if case["solver"] in SPARSE:
        options.update(lambda_=problem.lambdas, backtracking=case["backtracking"], monotone=case["monotone"])
    if case["condition_limit"]:
        options["condition_limit"] = case["condition_limit"]
    if case["one_pass"]:
        options["one_pass"] = True
    if case["error"] and properties.sigma_min(problem) is not None and (any(problem.D) or properties.sigma_min(problem)):
        options["error"] = case["error"]
    if properties.sigma_min(problem) and not case["preconditioner"]:
        options["sigma_min"] = properties.sigma_min(problem)
    return {"solver": case["solver"], "how": case["how"], "A": problem.A, "B": problem.B, "X0": problem.X0, "d": problem.d,
            "options": options, "out_is_B": out_is_B, "variances": case["variances"], "sigma_min": properties.sigma_min(problem)}


def answer(workers, request, task="solve"):
    """X and the report; None if it was refused, which all ranks must have done alike."""
    reply = workers.call(request["how"]["ranks"], task, request)
    errors = {error for error in reply["errors"] if error}
    for error in errors:
        require(error[0] != "Damaged", "operands are intact", error[1])
    members = np.prod(request["how"]["grid"])
    of_members = set(reply["errors"][:members])
    require(len(of_members) == 1 and (not errors or None not in of_members), "refused on all ranks", reply["errors"])
    require(reply["alike"], "ranks know the same")
    if errors:
        name, text = errors.pop()
        require(name in ("UsageError", "ShapeError"), f"refused as {name}", text)
        return None, text
    return reply["value"]


def must_be_refused(case):
    return case["solver"] == "block-cgls" and isinstance(case["damp"], list)


def check(case, workers):
    """Raises a Violation if a property does not hold. Returns the verdicts, to be counted."""
    problem = Problem(case)
    X, report = answer(workers, request_of(problem, case["out_is_B"]))
    require(X is None or not case["out_is_B"] or not X.size, f"X shares memory with B, {case['solver']}", report if X is None else report["reasons"])
    if X is None:
        out_of_range = case["solver"] in SPARSE and properties.is_out_of_penalty_range(problem)
        require(must_be_refused(case) or case["out_is_B"] or out_of_range, f"refused without need, {case['solver']}", report)
        return ["refused"]
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    truth = properties.Truth(problem, X)
    if case["solver"] in SPARSE:
        properties.sparse_solved(problem, truth, X, report)
    else:
        properties.solved(problem, truth, report)
        properties.conditions(problem, truth, report)
    properties.true_norms(problem, truth, report)
    properties.ends(problem, truth, report)
    properties.orthogonal_data(problem, truth, report)
    properties.worse_than_zero(problem, truth, report)
    if case["variances"]:
        properties.variances(problem, report)
    compared = properties.errors(problem, X, report)
    sketches = properties.sketched(problem, report)
    if case["other"] is not None and len(case["rhs"]):
        compare(case, problem, truth, X, report, workers)
    return report["reasons"] + [f"error within its bound, {case['type']}"] * compared + ["sketch"] * sketches


def compare(case, problem, truth, X, report, workers):
    """The same problem in another order, way, batch or scale, and its first column alone."""
    change = case["other"]["change"]
    other_case, columns = copy.deepcopy(case), np.arange(len(case["rhs"]))
    if change == "way":
        other_case["how"] = case["other"]["how"]
    elif change == "batch":
        other_case["batch"] = 2 if case["batch"] != 2 else 0
    elif change == "scale":
        other_case["scale_A"], other_case["scale_B"] = case["other"]["to"]
    other = Problem(other_case)
    request = request_of(other)
    if change in ("order", "alone"):
        columns = columns[::-1] if change == "order" else columns[:1]
        take(request, columns)
    other_X, other_report = answer(workers, request)
    solver = case["solver"]
    require(other_X is not None, f"{change}, refused, {solver}", other_report)
    if change == "scale":
        same_to_the_bit(case, X, report, other_X, other_report)
    else:
        same_to_rounding(change, case, problem, truth, columns, X, report, other_X, other_report)


def take(request, columns):
    """Only these right-hand sides, in this order."""
    request["B"] = np.asfortranarray(request["B"][:, columns])
    if request["X0"] is not None:
        request["X0"] = np.asfortranarray(request["X0"][:, columns])
    for name in ("tolerance", "damp", "lambda_"):
        if isinstance(request["options"].get(name), list):
            request["options"][name] = [request["options"][name][j] for j in columns]


def same_to_the_bit(case, X, report, other_X, other_report):
    """Powers of two change no mantissa, and so no decision."""
    solver = case["solver"]
    p, q = case["other"]["to"]
    if case["one_pass"]:
        return  # where A is scaled, one pass becomes three products, which round otherwise
    require(report["reasons"] == other_report["reasons"], f"scale, verdicts, {solver}", report["reasons"], "and, scaled,", other_report["reasons"])
    require(np.array_equal(report["column_iterations"], other_report["column_iterations"]), f"scale, iterations, {solver}",
            report["column_iterations"], other_report["column_iterations"])
    if case["matrix"]["kind"] == "zero" or min(case["rows"], case["cols"]) <= case["matrix"]["lost_rank"]:
        return  # what scale a guess has to A x is not known
    by = (q - p) - (case["scale_B"] - case["scale_A"])
    expected = np.ldexp(X.real.astype(float), by)
    # What is rounding may lie below the normal numbers of the type.
    require(np.allclose(expected, other_X.real.astype(float), rtol=1e-3 if X.dtype.itemsize == 4 else 1e-6, atol=np.finfo(X.dtype).tiny),
            f"scale, X, {solver}")


def same_to_rounding(change, case, problem, truth, columns, X, report, other_X, other_report):
    """Solutions agree where both are solved and the condition is small, and so do verdicts where the limit of iterations is far."""
    solver = case["solver"]
    for k, j in enumerate(columns):
        reason, other_reason = report["reasons"][j], other_report["reasons"][k]
        taken, other_taken = report["column_iterations"][j], other_report["column_iterations"][k]
        kappa = properties.effective_condition(problem, truth, j)
        if kappa > 30 or case["solver"] in SPARSE:
            continue
        visible = problem.T[j] * truth.reference[j] > 10 * (truth.tested_error[j] + truth.reference_error[j])
        if visible and max(taken, other_taken) + 2 < case["iterations"] * 0.9:
            require((reason in SOLVED) == (other_reason in SOLVED), f"{change}, verdicts, {solver}", "column", j, reason, "and", other_reason)
            # Other columns are part of a block method, whatever the order.
            if solver != "block-cgls":
                require(abs(taken - other_taken) <= max(2, 0.05 * taken), f"{change}, iterations, {solver}", "column", j, taken, "and", other_taken)
