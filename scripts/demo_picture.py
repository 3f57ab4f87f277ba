#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows the results of scripts/demo: prints tables, and draws FOLDER/demo.png.

demo_picture.py FOLDER [--tolerance T], where FOLDER holds X_true.npy, X_adjoint.npy, X.npy, report.json, history.csv, space.json,
columns.json.
"""
import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from demo_check import read_models, read_report, relative_error, verdicts

POSITION_SPACING = 10  # metres between positions along the line, and between depth samples
DEPTH_SPACING = 10


def read_history(path, columns):
    """The tested norms, iterations × columns; a column that has ended keeps its last value."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [(int(row["iteration"]), int(row["column"]), float(row["tested_norm"])) for row in csv.DictReader(file)]
    norms = np.full((max(row[0] for row in rows) + 1, columns), np.nan)
    for iteration, column, norm in rows:
        norms[iteration, column] = norm
    for k in range(1, len(norms)):
        norms[k] = np.where(np.isnan(norms[k]), norms[k - 1], norms[k])
    return norms


def print_table(report, errors):
    iterations = [column["iterations"] for column in report["columns"]]
    p, q = report["grid"]
    print()
    print(f"  matrix                  {report['rows']} x {report['cols']} {report['dtype']}, "
          f"{report['nrhs']} right-hand sides")
    print(f"  grid, algorithm         {p} x {q}, {report['algorithm']} over {report['transport']}")
    print(f"  verdicts                {', '.join(f'{count} {reason}' for reason, count in verdicts(report).most_common())}")
    print(f"  iterations              {min(iterations)} to {max(iterations)}")
    print(f"  seconds computing       {report['seconds']['compute']:.2f}")
    for name, error in errors.items():
        print(f"  {'error of ' + name:<24}{100 * error:.1f} % of the true model")
    print()


def print_sweep(folder):
    space, columns = read_report(folder, "space.json"), read_report(folder, "columns.json")
    seconds, of_one = space["seconds"]["compute"], columns["seconds"]["compute"]
    print(f"  {columns['sweep']['dampings']} dampings of {space['nrhs']}, in one space  {seconds:.2f} s")
    print(f"  of the first one, as columns    {of_one:.2f} s: as many seconds for each of the others")
    print()


def draw_model(axes, model, limit, title):
    positions, depths = model.shape
    extent = (0, positions * POSITION_SPACING, depths * DEPTH_SPACING, 0)
    image = axes.imshow(model.real.T, cmap="RdBu_r", vmin=-limit, vmax=limit, extent=extent, aspect="auto")
    axes.set(title=title, xlabel="position along the line (m)", ylabel="depth (m)")
    return image


def draw_convergence(axes, norms, tolerance):
    iterations = np.arange(len(norms))
    lowest, median, highest = norms.min(axis=1), np.median(norms, axis=1), norms.max(axis=1)
    axes.fill_between(iterations, lowest, highest, color="tab:blue", alpha=0.25, linewidth=0,
                      label=f"all {norms.shape[1]} right-hand sides")
    axes.semilogy(iterations, median, color="tab:blue", linewidth=2, label="median")
    if tolerance:
        axes.axhline(tolerance, color="black", linestyle="--", linewidth=1, label="tolerance")
        axes.set_ylim(bottom=tolerance / 5)
    axes.set(title="Convergence of each right-hand side", xlabel="iteration", ylabel="relative normal residual",
             xlim=(0, max(len(norms) - 1, 1)))
    axes.grid(alpha=0.3)
    axes.legend()


def main():
    parser = argparse.ArgumentParser(description="Shows what scripts/demo computed.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float)
    arguments = parser.parse_args()
    folder = arguments.folder

    report = read_report(folder)
    truth, models = read_models(folder)
    errors = {name: relative_error(model, truth) for name, model in models.items()}
    print_table(report, errors)
    print_sweep(folder)

    figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")
    figure.suptitle(f"{report['solver'].upper()} on {report['ranks']} ranks, {report['nrhs']} right-hand sides at once")
    limit = np.percentile(np.abs(truth.real), 99.5) or 1.0  # ignores single spikes
    draw_model(axes[0, 0], truth, limit, "True model")
    draw_model(axes[0, 1], models["the adjoint"], limit, f"Adjoint, best scaled: error {100 * errors['the adjoint']:.1f} %")
    image = draw_model(axes[1, 0], models["the inversion"], limit, f"Inversion: error {100 * errors['the inversion']:.1f} %")
    figure.colorbar(image, ax=axes, label="real part of the model", shrink=0.6)
    draw_convergence(axes[1, 1], read_history(folder / "history.csv", truth.shape[1]), arguments.tolerance)
    picture = folder / "demo.png"
    figure.savefig(picture, dpi=110)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main()
