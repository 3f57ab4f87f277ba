#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the products of robust misfits against those of least squares, and compares them with statsmodels.

    bench/peers/robust_solve.py build [ROWS COLS NRHS CONDITION DAMP]

One process. A tenth of the numbers of B are wild, and 5 % noise. Prints for each misfit, with the default tolerance, the columns
that are multiplied with A and its adjoint over those of cgls for the same B, the processor seconds over its, and with
statsmodels installed and without damping the largest difference of x, relative to the largest number of x, from RLM with the same
scale, of 4 columns. pcgls has a factor of A as its preconditioner."""
import pathlib
import sys
import time


def main(build, rows=2048, cols=512, nrhs=256, condition=30.0, damp=0.0):
    sys.path.insert(0, str(pathlib.Path(build).resolve() / "apps/python"))
    import gridlops as gl
    import numpy as np

    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.standard_normal((size, cols)))[0] for size in (rows, cols))
    A = (left * np.geomspace(1, 1 / condition, cols)) @ right.T * np.sqrt(rows / cols)
    B = A @ rng.standard_normal((cols, nrhs))
    B += 0.05 * B.std() * rng.standard_normal(B.shape)
    B += np.where(rng.uniform(size=B.shape) < 0.1, 10 * B.std(), 0) * rng.standard_normal(B.shape)
    op = gl.matrix_mult(A)
    factor = gl.factor(op, damp)

    def solve(solver, **how):
        before, start = op.activity, time.process_time()
        X, report = gl.solve(solver, op, B, max_iterations=20000, damp=damp, **how)
        columns = sum(op.activity[kind] - before[kind] for kind in ("forward_columns", "adjoint_columns"))
        return X, report, columns, time.process_time() - start

    def peer(misfit, j, scale):
        from statsmodels.robust import norms
        from statsmodels.robust.robust_linear_model import RLM

        class Fixed(RLM):
            def _estimate_scale(self, resid):
                return scale
        first = Fixed(B[:, j], A, M=norms.HuberT()).fit(maxiter=500, tol=1e-13).params
        return first if misfit == "huber" else Fixed(B[:, j], A, M=norms.TukeyBiweight()).fit(maxiter=500, tol=1e-13, start_params=first).params

    _, plain, products, seconds = solve("cgls")
    print(f"cgls: {products / nrhs:.1f} products of each column, {seconds:.2f} s, {plain['reasons'].count('converged')} converged", flush=True)
    for misfit in ("huber", "tukey"):
        for solver, more in (("cgls", {}), ("pcgls", {"M": factor})):
            X, report, of_misfit, spent = solve(solver, misfit=misfit, **more)
            text = (f"{misfit} by {solver}: {of_misfit / products:.2f} times the products, {spent / seconds:.2f} times the seconds, at most "
                    f"{max(report['misfit_solves'])} solves, {report['reasons'].count('converged')} converged")
            try:
                if damp == 0:
                    far = [np.abs(X[:, j] - peer(misfit, j, report["misfit_scales"][j])).max() / np.abs(X[:, j]).max() for j in range(min(4, nrhs))]
                    text += f"; {max(far):.1e} from statsmodels"
            except ImportError:
                pass
            print(text, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:5]), *map(float, sys.argv[5:]))
