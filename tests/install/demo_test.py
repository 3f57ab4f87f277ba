# SPDX-License-Identifier: BSD-3-Clause
"""Checks that scripts/demo fails where a figure is not as promised. demo_test.py SCRIPT, where SCRIPT is scripts/demo_check.py"""
import contextlib
import importlib.util
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

COLUMNS = 4


def result(inversion_error=0.014, adjoint_error=0.47, reasons=("converged",) * COLUMNS, chosen=(7, 7)):
    """chosen: the first damping of one space, and that of columns. Makes the files that the demo leaves, with known errors: what is added is orthogonal to the truth."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=(30, COLUMNS)) + 1j * rng.normal(size=(30, COLUMNS))
    other = rng.normal(size=truth.shape)
    other = other - truth * (np.vdot(truth, other) / np.vdot(truth, truth))
    other *= np.linalg.norm(truth) / np.linalg.norm(other)
    # The error of the best multiple of truth + t other is t / sqrt(1 + t^2). The adjoint's scale and phase do not count.
    t = adjoint_error / np.sqrt(1 - adjoint_error**2)
    return {"X_true": truth, "X": truth + inversion_error * other, "X_adjoint": (3e4 - 1e4j) * (truth + t * other)}, reasons, chosen


def spoilt():
    arrays, *rest = result()
    arrays["X"][3, 2] = np.nan
    return arrays, *rest


CASES = [
    ("as promised", result(), None),
    ("an inversion that is 5 % off", result(inversion_error=0.05), "the error of the inversion is 5.0 %"),
    ("an adjoint that is as good as the inversion", result(adjoint_error=0.02), "the error of the adjoint is 2.0 %"),
    ("an adjoint that has nothing of the model", result(adjoint_error=0.9), "the error of the adjoint is 90.0 %"),
    ("a NaN", spoilt(), "the error of the inversion is nan %"),
    ("a column that did not converge", result(reasons=("converged",) * 3 + ("iteration_limit",)), "not all of 4 columns converged"),
    ("a column without a verdict", result(reasons=("converged",) * 3), "not all of 4 columns converged"),
    ("another damping in one space than by columns", result(chosen=(7, 8)), "one space chose damping 7"),
]


def main(script):
    spec = importlib.util.spec_from_file_location("demo_check", script)
    demo_check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo_check)
    failures = 0
    for what, (arrays, reasons, chosen), expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, array in arrays.items():
                np.save(Path(folder) / f"{name}.npy", array)
            reports = {"report": {"columns": [{"reason": reason} for reason in reasons]},
                       "space": {"nrhs": 2, "columns": [{"reason": "converged"}] * 2, "sweep": {"chosen": [chosen[0], 3]}},
                       "columns": {"sweep": {"chosen": chosen[1]}}}
            for name, report in reports.items():
                (Path(folder) / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
            sys.argv[1:] = [folder]
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                status = demo_check.main()
        text = errors.getvalue()
        if (status, len(text.splitlines())) != ((0, 0) if expected is None else (1, 1)) or (expected or "") not in text:
            failures += 1
            print(f"FAILED: {what}: status {status}, {text!r}, not {expected!r}")
    print(f"{len(CASES)} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
