#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the files that `gridlops lsm|mdd|poststack|reflectivity --save FOLDER --cost FOLDER/cost.txt` saves.

use_case_picture.py CASE FOLDER [--output FILE.png]: model, data, initial guess, inversion, difference, and the cost of
each iteration. Axes have metres and seconds; --spacing and --interval set the distance between samples, --origin the
first position of your own data. Of several shots the picture names the one that it shows.

Where the data were your own, there is no model, and no difference unless FOLDER/response.npy has what an inversion
should find. For mdd, --kernel and --data name the files that mdd read: then there are data, prediction and residual
(not with --time-zero, --weights or --nf). Files of `python3 -m gridlops import` also have positions and intervals.
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


class Sampling:
    """Where samples are: by the options, or by files of `python3 -m gridlops import`."""

    def __init__(self, case, asked):
        self.spacing, self.origin, self.interval = asked.spacing or SPACING[case], asked.origin, asked.interval or INTERVAL[case]
        self.places = {}  # of sources and receivers: the first, and the distance to the next
        self.shots = []
        kernel, data = (opened(name) for name in (asked.kernel, asked.data))
        if hasattr(kernel, "parent") and {"sources", "receivers"} <= set(kernel.parent):
            self.places = {name: places_of(kernel.parent[name]) for name in ("sources", "receivers")}
            self.interval = asked.interval or kernel.attrs.get("interval", self.interval)
        if hasattr(data, "parent") and "sources" in data.parent:
            self.shots = along(data.parent["sources"])

    def across(self, name):
        first, step = self.places.get(name, (self.origin, self.spacing))
        return "receiver" if name == "receivers" else "x", "m", first, step


def along(positions):
    """The coordinate in which positions differ most."""
    positions = np.asarray(positions)
    return positions[:, np.argmax(np.ptp(positions, axis=0))]


def places_of(positions):
    line = along(positions)
    return line[0], (line[-1] - line[0]) / max(len(line) - 1, 1)


def opened(name):
    """A file of NumPy, or FILE.h5:/dataset, of which parts can be read; None without a name."""
    if name is None or ":" not in name:
        return None if name is None else np.load(name, mmap_mode="r")
    import h5py

    file, _, dataset = name.partition(":")
    return h5py.File(file)[dataset]


def predicted(kernel, model):
    """The kernel's convolution with a model (time, source): data (time, receiver). Reads little of the kernel at a time."""
    spectra = np.fft.rfft(model, axis=0)
    data = np.zeros((len(spectra), kernel.shape[1]), complex)
    if kernel.dtype.kind == "c":
        for k in range(len(spectra)):
            data[k] = kernel[k] @ spectra[k]
    else:
        for j in range(kernel.shape[1]):
            data[:, j] = (np.fft.rfft(kernel[:, j], len(model), axis=0) * spectra).sum(axis=1)
    return np.fft.irfft(data, len(model), axis=0)


def of_own_data(folder, asked):
    """What is to be drawn of mdd's own data: arrays of (time, position, shot)."""
    arrays = {"inverted": np.load(folder / "inverted.npy")}
    if asked.kernel and asked.data:
        data = np.asarray(opened(asked.data))
        models = arrays["inverted"].reshape(*arrays["inverted"].shape[:2], -1)
        found = np.stack([predicted(opened(asked.kernel), models[..., k]) for k in range(models.shape[2])], axis=-1).reshape(data.shape)
        arrays = {"data": data, "prediction": found, "residual": data - found, **arrays}
    arrays["adjoint"] = np.load(folder / "adjoint.npy")
    if (folder / "response.npy").exists():
        response = np.load(folder / "response.npy")
        arrays |= {"response": response, "difference": arrays["inverted"] - response}
    return {name: arrays[name] for name in ("data", "prediction", "residual", "response", "adjoint", "inverted", "difference") if name in arrays}


def sections(case, arrays, sampling, shot):
    """The sections to draw from the saved arrays, by name."""
    made = {}
    spacing, interval, origin = sampling.spacing, sampling.interval, sampling.origin
    for name, array in arrays.items():
        if case == "lsm":
            if name == "data":
                made[name] = Section(array[shot] if array.ndim == 3 else array, ("receiver", "", 0, 1), ("time", "s", 0, interval))
            else:
                made[name] = Section(last_two(array), ("x", "m", origin, spacing), ("z", "m", 0, spacing))
        elif case == "mdd":
            section = (array if array.ndim == 2 else array[..., shot]).T  # saved as (time, position)
            first, across = 0, sampling.across("receivers" if name in ("data", "prediction", "residual") else "sources")
            if "model" in arrays:
                first, across = -(section.shape[1] // 2) * interval, (across[0], "m", -(section.shape[0] // 2) * spacing, spacing)
            made[name] = Section(section, across, ("time", "s", first, interval))
        else:
            made[name] = Section(last_two(array), ("x", "m", origin, spacing), ("time", "s", 0, interval))
    return made


def read_costs(path):
    """The numbers and the costs of the iterations. Further columns, if any, are right-hand sides or parts of the
    cost."""
    rows = np.loadtxt(path, ndmin=2)
    return rows[:, 0], rows[:, 1:]


def shots_of(case, arrays):
    """How many shots the data have, of which one is drawn; 1 if there is no such dimension."""
    array, axis = {"lsm": (arrays.get("data"), 0), "mdd": (arrays["inverted"], 2)}.get(case, (None, 0))
    return array.shape[axis] if array is not None and array.ndim == 3 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(SPACING))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--spacing", type=float, help="metres between positions")
    parser.add_argument("--origin", type=float, default=0, help="the first position of your own data, in metres [0]")
    parser.add_argument("--interval", type=float, help="seconds between samples")
    parser.add_argument("--kernel", metavar="G", help="mdd: the file of its --kernel")
    parser.add_argument("--data", metavar="D", help="mdd: the file of its --data")
    parser.add_argument("--shot", type=int, metavar="K", help="the shot to draw, from 1 [the one in the middle]")
    arguments = parser.parse_args()
    case, folder = arguments.case, arguments.folder
    if not (folder / "inverted.npy").exists():
        parser.error(f"{folder} has no inverted.npy; let gridlops {case} --save {folder} make it")
    is_own = case == "mdd" and not (folder / "model.npy").exists()
    names = [name for name in ("model", FIRST_GUESS[case], "data", "inverted") if name and (folder / f"{name}.npy").exists()]
    arrays = of_own_data(folder, arguments) if is_own else {name: np.load(folder / f"{name}.npy") for name in names}
    if "model" in arrays:
        arrays["difference"] = arrays["inverted"] - arrays["model"]
    truth = next((name for name in ("model", "response") if name in arrays), None)
    shots = shots_of(case, arrays)
    if arguments.shot is not None and not 1 <= arguments.shot <= shots:
        parser.error(f"--shot {arguments.shot} is none of the shots 1 to {shots}")
    shot = shots // 2 if arguments.shot is None else arguments.shot - 1
    sampling = Sampling(case, arguments)
    drawn = sections(case, arrays, sampling, shot)

    cost = folder / "cost.txt"
    count = len(drawn) + cost.exists()
    figure, grid = plt.subplots(2, (count + 1) // 2, figsize=(5 * ((count + 1) // 2), 9), constrained_layout=True)
    panels = list(grid.flat)
    centred = case != "poststack"  # log impedance is positive
    limits = {name: np.abs(drawn[scale].array).max() for scale, members in ((truth or "inverted", ("model", "response", "inverted")),
                                                                          ("data", ("prediction", "residual"))) for name in members if name in drawn}
    notes = {name: f", {100 * np.linalg.norm(drawn[name].array) / np.linalg.norm(drawn[of].array):.1f} % of {of}"
             for name, of in (("residual", "data"), ("difference", truth)) if name in drawn and of in drawn}
    if case == "lsm" and shots > 1:
        notes["data"] = f" of source {shot + 1} of {shots}"
    for axes, (name, section) in zip(panels, drawn.items()):
        section.draw(axes, name + notes.get(name, ""), limits.get(name), centred or name in ("data", "difference"))
    if cost.exists():
        iterations, costs = read_costs(cost)
        panels[len(drawn)].semilogy(iterations, costs)
        panels[len(drawn)].set(title="convergence", xlabel="iteration", ylabel="objective, and misfit" if case == "reflectivity" else "cost")
        if case in ("lsm", "mdd") and costs.shape[1] > 2:
            panels[len(drawn)].legend(["all shots", *(f"shot {k}" for k in range(1, costs.shape[1]))] if costs.shape[1] < 8 else ["all shots"])
        panels[len(drawn)].grid(True, alpha=0.3)
    for axes in panels[count:]:
        axes.set_axis_off()
    if shots > 1 and case == "mdd":
        place = f" at {sampling.shots[shot]:g} m" if len(sampling.shots) == shots else ""
        figure.suptitle(f"shot {shot + 1} of {shots}{place}")
    output = arguments.output or folder / f"{case}.png"
    figure.savefig(output, dpi=110)
    print(output)
    for name, of, verb in (("difference", truth, f"The inversion differs from the {truth} by"), ("residual", "data", "The residual has")):
        if name in arrays:
            print(f"{verb} {100 * np.linalg.norm(arrays[name]) / np.linalg.norm(arrays[of]):.2g} %{' of the data' if name == 'residual' else ''}.")


if __name__ == "__main__":
    main()
