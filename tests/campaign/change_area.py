# SPDX-License-Identifier: BSD-3-Clause
"""The caller changes A in place between two products: every way to compute them follows one rule."""
from problems import TYPES, integers
from properties import require


def check(case, workers):
    kind, name = TYPES[case["type"]], case["type"]
    A, A_new = (integers(case["seed"] + k, (case["rows"], case["cols"]), name).astype(kind, order="F") for k in (0, 1))
    X = integers(case["seed"] + 2, (case["cols"], case["columns"]), name).astype(kind, order="F")
    rules = []
    for how in (case["how"], case["other"]):
        reply = workers.call(how["ranks"], "change", {"solver": "", "how": how, "A": A, "A_new": A_new, "X": X})
        require(not any(reply["errors"]), "change, refused", reply["errors"])
        first, second, told = reply["value"]
        require((first == A @ X).all(), "change, first product", how)
        # Small integers: every product is exact.
        old, new = (second == A @ X).all(), (second == A_new @ X).all()
        if old and new:
            return ["nothing changed"]
        require(new if told else old or new, "change, A after the change is neither old nor new" if not told else "change, A is not the new one", how)
        rules.append("new" if new else "old")
    require(len(set(rules)) == 1, "change, no one rule", rules, case["how"], case["other"])
    return rules
