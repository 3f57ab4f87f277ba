#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the files that `gridlops lsm|mdd|poststack|reflectivity --save FOLDER --cost FOLDER/cost.txt` saves.

use_case_picture.py CASE FOLDER [--output FILE.png]: model, data, initial guess, inversion, difference, and the cost of
each iteration. Where the data were your own, there is no model and no difference. Axes have metres and seconds;
--spacing and --interval set the distance between samples, --origin the first position of your own data.
"""
import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

SPACING = {"lsm": 4.0, "mdd": 5.0, "poststack": 12.5, "reflectivity": 12.5}  # metres
INTERVAL = {"lsm": 0.004, "mdd": 0.002, "poststack": 0.004, "reflectivity": 0.004}  # seconds
FIRST_GUESS = {"lsm": "migrated", "mdd": "adjoint", "poststack": "background", "reflectivity": None}


def last_two(array, keep=2):
    """Takes the middle slice of every dimension except the last `keep`."""
    while array.ndim > keep:
        array = array[len(array) // 2]
    return array


class Section:
    """An array of two dimensions as an image whose second axis points down."""

    def __init__(self, array, across, down):
        """across and down describe the axes, each as (name, unit, first, step). The first dimension goes across."""
        self.array, self.across, self.down = array, across, down

    def draw(self, axes, title, limit=None, centred=True):
        limit = np.abs(self.array).max() if limit is None else limit
        low = -limit if centred else np.min(self.array)
        (name, unit, x0, dx), (down_name, down_unit, z0, dz) = self.across, self.down
        columns, rows = self.array.shape
        extent = (x0, x0 + dx * (columns - 1), z0 + dz * (rows - 1), z0)
        image = axes.imshow(self.array.T, aspect="auto", extent=extent, cmap="seismic" if centred else "viridis",
                            vmin=low, vmax=limit, interpolation="none")
        axes.set(title=title, xlabel=f"{name} ({unit})" if unit else name, ylabel=f"{down_name} ({down_unit})")
        axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02)


def sections(case, arrays, spacing, interval, origin):
    """The sections to draw from the saved arrays, by name."""
    made = {}
    for name, array in arrays.items():
        if case == "lsm":
            if name == "data":
                made[name] = Section(last_two(array), ("receiver", "", 0, 1), ("time", "s", 0, interval))
            else:
                made[name] = Section(last_two(array), ("x", "m", origin, spacing), ("z", "m", 0, spacing))
        elif case == "mdd":
            section = (array if array.ndim == 2 else array[..., array.shape[2] // 2]).T  # saved as (time, position)
            first, left = (-(section.shape[1] // 2) * interval, -(section.shape[0] // 2) * spacing) if "model" in arrays else (0, origin)
            across = ("receiver" if name == "data" else "x", "m", left, spacing)
            made[name] = Section(section, across, ("time", "s", first, interval))
        else:
            made[name] = Section(last_two(array), ("x", "m", origin, spacing), ("time", "s", 0, interval))
    return made


def read_costs(path):
    """The numbers and the costs of the iterations. Further columns, if any, are right-hand sides or parts of the
    cost."""
    rows = np.loadtxt(path, ndmin=2)
    return rows[:, 0], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(SPACING))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--spacing", type=float, help="metres between positions")
    parser.add_argument("--origin", type=float, default=0, help="the first position of your own data, in metres [0]")
    parser.add_argument("--interval", type=float, help="seconds between samples")
    arguments = parser.parse_args()
    case, folder = arguments.case, arguments.folder
    names = [name for name in ("model", FIRST_GUESS[case], "data", "inverted") if name and (folder / f"{name}.npy").exists()]
    if "inverted" not in names:
        parser.error(f"{folder} has no inverted.npy; let gridlops {case} --save {folder} make it")
    arrays = {name: np.load(folder / f"{name}.npy") for name in names}
    has_model = "model" in arrays
    if has_model:
        arrays["difference"] = arrays["inverted"] - arrays["model"]
    spacing = arguments.spacing or SPACING[case]
    interval = arguments.interval or INTERVAL[case]
    drawn = sections(case, arrays, spacing, interval, arguments.origin)

    cost = folder / "cost.txt"
    count = len(drawn) + cost.exists()
    figure, grid = plt.subplots(2, (count + 1) // 2, figsize=(5 * ((count + 1) // 2), 9), constrained_layout=True)
    panels = list(grid.flat)
    centred = case != "poststack"  # log impedance is positive
    limit = np.abs(drawn["model" if has_model else "inverted"].array).max()
    for axes, (name, section) in zip(panels, drawn.items()):
        own_scale = name in ("data", "migrated", "adjoint")
        section.draw(axes, name, None if own_scale or name == "difference" else limit,
                     centred or name in ("data", "difference"))
    if cost.exists():
        iterations, costs = read_costs(cost)
        panels[len(drawn)].semilogy(iterations, costs)
        panels[len(drawn)].set(title="convergence", xlabel="iteration", ylabel="objective, and misfit" if case == "reflectivity" else "cost")
        panels[len(drawn)].grid(True, alpha=0.3)
    for axes in panels[count:]:
        axes.set_axis_off()
    output = arguments.output or folder / f"{case}.png"
    figure.savefig(output, dpi=110)
    print(output)
    if has_model:
        error = np.linalg.norm(arrays["difference"]) / np.linalg.norm(arrays["model"])
        print(f"The inversion differs from the model by {100 * error:.1f} %.")


if __name__ == "__main__":
    main()
