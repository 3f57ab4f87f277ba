# SPDX-License-Identifier: BSD-3-Clause
"""Ends of the spectrum of a Hermitian A, and its norm, at every scale. They are estimates from inside, and after as many steps as A has
rows they are near the ends, unless a chance of the start hides one."""
import numpy as np

from problems import Problem
from properties import require


def check(case, workers):
    problem = Problem(case)
    reply = workers.call(case["how"]["ranks"], "spectrum", {"solver": "cg", "how": case["how"], "A": problem.A})
    require(not any(reply["errors"]), "spectrum, refused", reply["errors"])
    require(reply["alike"], "ranks know the same")
    n = len(problem.A)
    if n == 0:
        return ["empty"]
    smallest, largest, norm = (float(np.ldexp(value, -case["scale_A"])) for value in reply["value"][1].values())
    values = np.linalg.eigvalsh(problem.plain)
    unit = problem.norm_plain
    inside = (16 + 4 * np.sqrt(2 * n)) * problem.eps * unit  # as in properties.py
    require(values[0] - inside <= smallest <= values[0] + 1e-2 * unit, "spectrum, smallest", smallest, values[0], unit)
    require(values[-1] - 1e-2 * unit <= largest <= values[-1] + inside, "spectrum, largest", largest, values[-1], unit)
    require(0.9 * unit <= norm <= unit + inside, "spectrum, norm", norm, unit)
    return [case["type"]]
