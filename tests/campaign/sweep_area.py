# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps of the damping: the curve is that of the solutions, and the choice is the one that its rule defines."""
import numpy as np

import properties
from problems import Problem
from properties import SOLVED, norms, require, same_number, wide
from solve_area import answer, request_of


class Sweep(Problem):
    """One right-hand side, once for each damping; for gcv as many columns of a vector z of ±1 follow."""

    def __init__(self, case):
        self.count = len(case["damp"])
        super().__init__({**case, "rhs": [case["one"]] * self.count})
        if case["rule"] == "gcv":
            z = np.random.default_rng(case["one"]["seed"]).choice([-1.0, 1.0], (case["rows"], 1)).astype(self.B.dtype)
            self.B = np.asfortranarray(np.hstack([self.B, np.repeat(z, self.count, axis=1)]))
            self.D, self.T = 2 * self.D, 2 * self.T
        b = norms(wide(self.B))[: self.count].max(initial=0)
        self.noise = float(np.float64(min(case["noise"] * b, np.longdouble(1e300))))


def check(case, workers):
    problem = Sweep(case)
    request = {**request_of(problem), "rule": case["rule"], "noise": problem.noise, "damps": problem.D[: problem.count]}
    value, curve_or_text = answer(workers, request, "sweep")
    require(value is not None, f"sweep, refused without need, {case['rule']}", curve_or_text)
    (X, report), curve = value, curve_or_text
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    truth = properties.Truth(problem, X)
    properties.solved(problem, truth, report)
    for j in range(problem.count):
        require(curve["damps"][j] == problem.D[j] and curve["reasons"][j] == report["reasons"][j], "sweep, points", curve)
        same_number(curve["residual_norms"][j], truth.r[j], truth.r_error[j], "sweep, residual", "point", j)
        same_number(curve["x_norms"][j], truth.x[j], truth.x[j] * truth.unit, "sweep, norm of x", "point", j)
    chosen = curve["chosen"]
    name = f"sweep, {case['rule']}"
    require(chosen is not None or curve["remark"], name, "chooses nothing, and does not say why", curve)
    if chosen is not None:
        require(0 <= chosen < problem.count and report["reasons"][chosen] in SOLVED, name, "chooses", chosen, "of", report["reasons"])
        require(case["rule"] != "lcurve" or problem.D[chosen] > 0, name, "chooses no damping")
    {"discrepancy": within_noise, "gcv": least_gcv, "lcurve": corner}[case["rule"]](problem, truth, report, curve, name)
    return [f"{case['rule']} chooses {'nothing' if chosen is None else 'one'}"]


def within_noise(problem, truth, report, curve, name):
    """The largest D with ‖b − Ax‖ ≤ the noise."""
    chosen = curve["chosen"]
    for j in range(problem.count):
        if report["reasons"][j] in SOLVED and truth.r[j] + truth.r_error[j] < problem.noise:
            require(chosen is not None and problem.D[chosen] >= problem.D[j], name, "chooses", chosen, "where", j, "is within the noise of",
                    problem.noise, curve)
    if chosen is not None:
        require(truth.r[chosen] - truth.r_error[chosen] <= problem.noise * (1 + 1e-12), name, "chooses", chosen, "which is not within the noise of",
                problem.noise, curve)


def least_gcv(problem, truth, report, curve, name):
    """The smallest ‖b − Ax‖²/(zᴴ(I − A(AᴴA + D²I)⁻¹Aᴴ)z)². The denominator is the minimum of ‖z − Ay‖² + D²‖y‖², which the y found
    exceeds by less than the square of its gradient over D². Without damping it is as good as any that is known."""
    z = wide(problem.B)[:, -1] if problem.count else None
    U, values, _ = np.linalg.svd(problem.A.astype(np.result_type(problem.A, np.float64)), full_matrices=False)
    merits = np.full(problem.count, np.nan)
    for j in range(problem.count):
        k, D = j + problem.count, np.longdouble(problem.D[j])
        earlier = (i for i in range(j) if problem.D[i] == D and report["reasons"][i] in SOLVED)
        if not (report["reasons"][j] in SOLVED and report["reasons"][k] in SOLVED) or any(True for _ in earlier):
            continue  # each damping counts once
        if D == 0:
            merits[j] = curve["merits"][j]
            require(not np.isnan(merits[j]) or "D = 0 was left out" in curve["remark"], name, "does not say that it leaves 0 out", curve)
            continue
        along = U.conj().T @ z
        of_z = (abs(z) ** 2).sum()
        free = of_z - (np.longdouble(values) ** 2 / (np.longdouble(values) ** 2 + D**2) * abs(along) ** 2).sum()
        error = (truth.normal[k] + truth.normal_error[k]) ** 2 / D**2 + truth.unit * of_z
        if free <= 2 * error:
            return  # nothing can be told of this point, which may be the least
        merits[j] = found = curve["merits"][j]
        # Squares of numbers at the ends of the range are none.
        least, most = (max(truth.r[j] - truth.r_error[j], 0) / (free + error)) ** 2, ((truth.r[j] + truth.r_error[j]) / max(free - error, error)) ** 2
        require(least * (1 - 1e-9) <= np.longdouble(found) <= most * (1 + 1e-9) or not 1e-290 < most < 1e290, name, "has", found, "at", j,
                "where it is between", least, "and", most)
    chosen = curve["chosen"]
    known = merits[~np.isnan(merits)]
    require((chosen is not None) == (known.size > 0), name, "chooses", chosen, "of", merits)
    if chosen is not None:
        require(merits[chosen] == known.min(), name, "chooses", chosen, "of", merits)


def corner(problem, truth, report, curve, name):
    """The largest curvature that is known. What the curvature is, sweep_test.py checks."""
    merits = curve["merits"]
    known = merits[~np.isnan(merits)]
    best = known.max(initial=0)
    require((curve["chosen"] is not None) == (best > 0), name, "chooses", curve["chosen"], "of", merits)
    if curve["chosen"] is not None:
        require(merits[curve["chosen"]] == best, name, "chooses", curve["chosen"], "of", merits)
