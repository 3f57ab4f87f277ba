#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the results of `gridlops solve --damps … --report REPORT.json`: the L-curve, which is ‖x‖ over ‖b − Ax‖, and
both norms and the merit of the choice over the damping. Crosses mark columns that were not solved. With --sweep space
the curves of all right-hand sides are in a CSV file, that of --curve: draws their L-curves, and what was chosen.

sweep_picture.py REPORT.json|CURVES.csv [--output FILE.png]
"""
import argparse
import csv
import json
from itertools import groupby
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

SOLVED = {"converged", "stagnated"}


def scatter(axes, x, y, solved, label=None):
    axes.plot(x, y, color="0.7", linewidth=1, zorder=1)
    axes.plot(x[solved], y[solved], "o", markersize=4, label=label)
    axes.plot(x[~solved], y[~solved], "x", color="tab:red", label="not solved" if (~solved).any() else None)


def draw_all(path, output):
    """The L-curves of all right-hand sides, and how many have which damping."""
    with open(path, encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (int(row["column"]), float(row["damp"])))
    figure, (curves, choices) = plt.subplots(1, 2, figsize=(12, 5), constrained_layout=True)
    chosen = [row for row in rows if row["chosen"] == "1"]
    for _, points in groupby(rows, key=lambda row: row["column"]):
        curves.plot(*zip(*((float(row["residual_norm"]), float(row["x_norm"])) for row in points)), color="0.6", linewidth=0.6)
    curves.plot([float(row["residual_norm"]) for row in chosen], [float(row["x_norm"]) for row in chosen], "o", color="tab:red", markersize=4)
    curves.set(xscale="log", yscale="log", xlabel="|b - A x|", ylabel="|x|", title=f"L-curves of {len(set(row['column'] for row in rows))} right-hand sides")
    damps = sorted({float(row["damp"]) for row in rows})
    counts = [sum(float(row["damp"]) == damp for row in chosen) for damp in damps]
    choices.bar(range(len(damps)), counts, color="tab:red")
    marks = np.linspace(0, len(damps) - 1, min(len(damps), 6)).round().astype(int)
    choices.set_xticks(marks, [f"{damps[mark]:.2g}" for mark in marks])
    choices.set(xlabel="damping D", ylabel="right-hand sides", title="chosen")
    for axes in (curves, choices):
        axes.grid(True, which="both", alpha=0.2)
    figure.savefig(output, dpi=110)
    print(f"{output}: {len(damps)} dampings, {len(chosen)} chosen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.report.suffix == ".csv":
        return draw_all(arguments.report, arguments.output or arguments.report.with_suffix(".png"))
    report = json.loads(arguments.report.read_text(encoding="utf-8"))
    sweep = report.get("sweep")
    if sweep is None:
        parser.error(f"{arguments.report} is no report of a sweep; let gridlops solve --damps … --report write it")
    columns, rule = report["columns"], report["options"].get("choose")
    points = sorted(columns[:sweep["dampings"]], key=lambda point: point["damp"])
    damps, residuals, norms = (np.array([point[key] for point in points], dtype=float)
                               for key in ("damp", "residual_norm", "x_norm"))
    solved = np.array([point["reason"] in SOLVED for point in points])
    chosen = None if sweep["chosen"] is None else columns[sweep["chosen"]]

    figure, (curve, over) = plt.subplots(1, 2, figsize=(12, 5), constrained_layout=True)
    scatter(curve, residuals, norms, solved)
    curve.set(xscale="log", yscale="log", xlabel="|b - A x|", ylabel="|x|", title="L-curve")
    scatter(over, damps, residuals, solved, "|b - A x|")
    scatter(over, damps, norms, solved, "|x|")
    for merit in ("curvature", "gcv"):
        if merit in points[0]:
            right = over.twinx()
            right.plot(damps, np.array([point[merit] for point in points], dtype=float), "--", color="tab:green")
            right.set_ylabel(merit, color="tab:green")
            right.set_yscale("log" if merit == "gcv" else "linear")
    over.set(yscale="log", xlabel="damping D", title="norms")
    if (damps > 0).all():
        over.set_xscale("log")
    else:
        over.set_xscale("symlog", linthresh=damps[damps > 0].min(initial=1))
    if chosen:
        curve.plot(chosen["residual_norm"], chosen["x_norm"], "o", color="tab:red", markersize=11, fillstyle="none",
                   label=f"D = {chosen['damp']:.3g}, chosen by {rule}")
        over.axvline(chosen["damp"], color="tab:red", linewidth=1, label=f"D = {chosen['damp']:.3g}")
    for axes in (curve, over):
        axes.grid(True, which="both", alpha=0.2)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    output = arguments.output or arguments.report.with_suffix(".png")
    figure.savefig(output, dpi=110)
    print(f"{output}: {len(points)} dampings" + (f", {chosen['damp']:.4g} chosen by {rule}" if chosen else ""))


if __name__ == "__main__":
    main()
