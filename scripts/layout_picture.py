#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the library's layouts of A, X and Y on a 2 x 3 process grid for the four products.

layout_picture.py FILE.svg, on six ranks; `scripts/pictures layouts build docs/pictures/layouts.svg` starts it.
"""
import sys
from pathlib import Path

from mpi4py import MPI

import gridlops as gl

ALGORITHMS = ("block", "summa", "stationary-a", "stationary-b")
ROWS, COLS, NRHS = 126, 96, 60  # of A and of X, in elements and in pixels
COLOURS = ("#9ecae1", "#a1d99b", "#fdae6b", "#4292c6", "#41ab5d", "#e6550d")  # of the ranks: darker in the second grid row
GAP, TOP, LEFT = 34, 44, 14


def blocks(matrix):
    """Every block of a matrix with the ranks that hold it: {(rows, columns): ranks}, on rank 0."""
    mine = [(part.start, part.stop) for part in (matrix.rows, matrix.cols)]
    held = {}
    for rank, place in enumerate(MPI.COMM_WORLD.gather(tuple(mine)) or []):
        held.setdefault(place, []).append(rank)
    return held


def text(x, y, words, size=11, anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def draw(x, y, held):
    """Draws a matrix with its corner at x, y. A block that several ranks hold has a stripe for each of them."""
    for ((top, bottom), (left, right)), ranks in sorted(held.items()):
        width = (right - left) / len(ranks)
        for k, rank in enumerate(ranks):
            yield (f'<rect x="{x + left + k * width:g}" y="{y + top}" width="{width:g}" height="{bottom - top}" '
                   f'fill="{COLOURS[rank]}"/>')
            yield text(x + left + (k + 0.5) * width, y + (top + bottom) / 2 + 4, rank)
        yield (f'<rect x="{x + left}" y="{y + top}" width="{right - left}" height="{bottom - top}" fill="none" '
               'stroke="black"/>')


def main():
    grid = gl.Grid(MPI.COMM_WORLD, (2, 3))
    step = NRHS + COLS + NRHS + 3 * GAP
    lines = []
    for place, algorithm in enumerate(ALGORITHMS):
        A = gl.Matrix(grid, grid.matrix_layout(ROWS, COLS, algorithm))
        product = gl.matrix_mult(A, algorithm)
        held = [blocks(matrix) for matrix in (gl.zeros(product.range, NRHS), A, gl.zeros(product.domain, NRHS))]
        x, y = LEFT + place % 2 * step, TOP + place // 2 * (ROWS + TOP + 10)
        lines.append(text(x, y - 24, algorithm, 14, "start"))
        for name, width, here, sign in zip("YAX", (NRHS, COLS, NRHS), held, ("=", "·", "")):
            lines.append(text(x + width / 2, y - 6, name))
            lines += draw(x, y, here)
            lines.append(text(x + width + GAP / 2, y + ROWS / 2, sign, 16))
            x += width + GAP
    if MPI.COMM_WORLD.rank == 0:
        width, height = LEFT + 2 * step - GAP, 2 * (TOP + ROWS + 10)
        Path(sys.argv[1]).write_text("\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif">', f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>", ""]),
            encoding="utf-8")


if __name__ == "__main__":
    main()
