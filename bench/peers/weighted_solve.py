#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares CGLS of columns with a mask each with the same without masks, and with a solve for each column.

    bench/peers/weighted_solve.py build [ROWS COLS NRHS ROUNDS ITERATIONS]

One process, one thread. Prints for each round, and as the median of all, the times of an iteration: without weights, with
a mask for each column that leaves out 10 or 50 per cent, and their ratio. Both are solved in turn. Then the same for
solves of single columns, of which it makes 4, times the number of columns. Seconds are of the processor, so that
other work on the machine counts less."""
import os
import pathlib
import statistics
import sys
import time


def main(build, rows=16384, cols=3072, nrhs=64, rounds=5, iterations=4):
    os.environ["GRIDLOPS_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(pathlib.Path(build).resolve() / "apps/python"))
    import gridlops as gl
    import numpy as np

    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((rows, cols)), rng.standard_normal((rows, nrhs))
    op = gl.matrix_mult(A)

    def seconds(op, b, **how):
        """Of an iteration, without the start and the end."""
        times = []
        gl.cgls(op, b, max_iterations=iterations, tolerance=0, callback=lambda _: times.append(time.process_time()), **how)
        return statistics.median(np.diff(times))

    for missing in (0.1, 0.5):
        W = (rng.uniform(size=B.shape) >= missing).astype(float)
        pairs = []
        for k in range(rounds):
            pairs.append((seconds(op, B), seconds(op, B, weights=W)))
            print(f"round {k}: {pairs[-1][0]:.4f} s, with masks {pairs[-1][1]:.4f} s, {pairs[-1][1] / pairs[-1][0]:.3f} times as long", flush=True)
        ratio = statistics.median(weighted / plain for plain, weighted in pairs)
        alone = []
        for j in range(4):
            mask = gl.diagonal(op.range, gl.zeros(op.range).fill(lambda i, k, w=W[:, j]: w[i] + 0 * k))
            alone.append(seconds(mask @ op, W[:, j] * B[:, j]))
        all_alone = nrhs * statistics.median(alone)
        print(f"{missing:.0%} missing: {ratio:.3f} times as long as without masks; {nrhs} single columns {all_alone:.2f} s, "
              f"{all_alone / statistics.median(weighted for _, weighted in pairs):.1f} times as long as together", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
