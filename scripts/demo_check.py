#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the results of scripts/demo keep the promises of README.md: demo_check.py FOLDER. Prints a line for each
broken promise; then the status is 1.

FOLDER holds X_true.npy, X_adjoint.npy, X.npy, report.json, space.json and columns.json. demo_picture.py shows the same figures.
"""
import collections
import json
import sys
from pathlib import Path

import numpy as np

# Bounds of the errors, relative to the norm of the true model: "the adjoint gets it about half wrong, the inversion to
# within a few per cent".
PROMISED = {"the adjoint": (0.35, 0.65), "the inversion": (0.0, 0.03)}


def best_multiple(image, truth):
    """The multiple of image that is nearest to truth. The adjoint alone has no scale."""
    return image * (np.vdot(image, truth) / np.vdot(image, image))


def read_models(folder):
    """The true model, and the computed models by name."""
    truth = np.load(folder / "X_true.npy")
    return truth, {"the adjoint": best_multiple(np.load(folder / "X_adjoint.npy"), truth),
                   "the inversion": np.load(folder / "X.npy")}


def read_report(folder, name="report.json"):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def verdicts(report):
    """The number of columns that ended for each reason."""
    return collections.Counter(column["reason"] for column in report["columns"])


def relative_error(model, truth):
    return np.linalg.norm(model - truth) / np.linalg.norm(truth)


def broken_promises(folder):
    report = read_report(folder)
    truth, models = read_models(folder)
    found = verdicts(report)
    if found != {"converged": truth.shape[1]}:
        yield f"not all of {truth.shape[1]} columns converged: {dict(found)}"
    for name, model in models.items():
        error = relative_error(model, truth)
        low, high = PROMISED[name]
        if not low <= error <= high:  # NaN fails, too
            yield f"the error of {name} is {100 * error:.1f} % of the true model, not {100 * low:.0f} to {100 * high:.0f} %"
    space, columns = read_report(folder, "space.json"), read_report(folder, "columns.json")
    if verdicts(space) != {"converged": space["nrhs"]} or space["sweep"]["chosen"][0] != columns["sweep"]["chosen"]:
        yield f"one space chose damping {space['sweep']['chosen'][0]} for the first right-hand side, and columns {columns['sweep']['chosen']}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = list(broken_promises(Path(sys.argv[1])))
    print("\n".join(f"demo: {problem}" for problem in problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
