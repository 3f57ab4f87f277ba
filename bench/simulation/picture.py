#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the results of bench/simulation/run: picture.py FIGURES.json PICTURE.png"""
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

PLATFORMS = {"fat-tree": {"marker": "o", "linestyle": "-"}, "dragonfly": {"marker": "s", "linestyle": "--"}}


def series(result):
    if result["grid"] is None:
        return result["algorithm"]
    return f"{result['algorithm']}, {'1-D' if result['grid'][0] == 1 else '2-D'}"


def draw(results, output):
    names = list(dict.fromkeys(result["study"] for result in results))
    colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(map(series, results)))}
    figure, axes_of = pyplot.subplots((len(names) + 1) // 2, 2, figsize=(10, 4 * ((len(names) + 1) // 2)), squeeze=False)
    for axes, name in zip(axes_of.flat, names):
        here = [result for result in results if result["study"] == name]
        for kind, what in dict.fromkeys((result["platform"], series(result)) for result in here):
            line = [result for result in here if (result["platform"], series(result)) == (kind, what)]
            ranks = [result["ranks"] for result in line]
            axes.plot(ranks, [result["efficiency"] for result in line], color=colours[what], label=f"{what}, {kind}", **PLATFORMS[kind])
            if kind == next(iter(PLATFORMS)) and line[0]["predicted_seconds"] is not None:
                axes.plot(ranks, [result["work_seconds"] / result["predicted_seconds"] for result in line], color=colours[what],
                          linestyle=":", label=f"{what}, cost model")
        counts = sorted({result["ranks"] for result in here})
        axes.set(title=name, xlabel="ranks", ylabel="work / time", xscale="log", ylim=(0, 1.05))
        axes.set_xticks(counts, labels=map(str, counts))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="best")
    for axes in axes_of.flat[len(names):]:
        axes.remove()
    figure.tight_layout()
    figure.savefig(output)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["results"], sys.argv[2])
