#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws results of gridlops-bench messages under the roofs of the model fitted to them.

    bench/message-roofline --output messages.png [--way send --way "put, flush" …] messages.json

Draws one picture per way: the size of a message on the x axis, the rate on the y axis, and a line for each number of
messages between two synchronisations. The roof of k messages of n bytes is k n / (L + k g + k n G); the horizontal line
is 1/G."""
import argparse
import json
import math
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "gridlops"  # the same figures give the same file
from matplotlib import pyplot  # noqa: E402


def roof(fit, messages, size):
    """GB/s by the model."""
    seconds = fit["latency_seconds"] + messages * (fit["gap_seconds"] + size * fit["gap_seconds_per_byte"])
    return messages * size / seconds / 1e9


def draw_way(axes, fit, results):
    sizes = sorted({result["bytes"] for result in results})
    across = [sizes[0] * (sizes[-1] / sizes[0]) ** (k / 60) for k in range(61)]
    for color, messages in enumerate(sorted({result["messages"] for result in results})):
        points = sorted((result["bytes"], result["gbs"]) for result in results if result["messages"] == messages)
        axes.plot(*zip(*points), marker="o", markersize=3, linestyle="none", color=f"C{color}", label=f"{messages}")
        axes.plot(across, [roof(fit, messages, size) for size in across], color=f"C{color}", linewidth=0.8)
    if fit["gap_seconds_per_byte"] > 0:
        axes.axhline(1e-9 / fit["gap_seconds_per_byte"], color="black", linewidth=1)
    axes.set(xscale="log", yscale="log", title=fit["way"])
    axes.set_xscale("log", base=2)
    axes.grid(True, which="major", linewidth=0.3)


def draw(document, ways, output):
    columns = min(3, len(ways))
    lines = math.ceil(len(ways) / columns)
    figure, all_axes = pyplot.subplots(lines, columns, figsize=(1 + 3.2 * columns, 0.8 + 2.7 * lines), sharex=True, sharey=True, squeeze=False)
    for axes in all_axes.flat[len(ways):]:
        axes.set_visible(False)
    for axes, way in zip(all_axes.flat, ways):
        draw_way(axes, next(fit for fit in document["fits"] if fit["way"] == way), [result for result in document["results"] if result["way"] == way])
    for k, axes in enumerate(all_axes.flat[:len(ways)]):
        if k % columns == 0:
            axes.set_ylabel("GB/s")
        if k + columns >= len(ways):
            axes.set_xlabel("bytes of a message")
            axes.tick_params(labelbottom=True)
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, title="messages", loc="center right")
    figure.tight_layout(rect=(0, 0, 1 - 0.9 / (1 + 3.2 * columns), 1))
    if output.suffix.lower() != ".svg":
        figure.savefig(output, dpi=110, metadata={"Software": None})
        return
    figure.savefig(output, metadata={"Date": None})
    # The backend leaves white space at the ends of lines.
    text = [line.rstrip() for line in output.read_text(encoding="utf-8").splitlines()]
    output.write_text("\n".join(text) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="bench/message-roofline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="a PNG or SVG file")
    parser.add_argument("--way", action="append", help="a way to draw; repeat the option for more [all]")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    document = json.loads(arguments.file.read_text(encoding="utf-8"))
    known = [fit["way"] for fit in document.get("fits", [])]
    ways = arguments.way or known
    for way in ways:
        if way not in known:
            parser.error(f"{arguments.file} has no messages by '{way}', but by {', '.join(map(repr, known)) or 'nothing'}")
    if not ways:
        parser.error(f"{arguments.file} has no messages")
    draw(document, ways, arguments.output)


if __name__ == "__main__":
    main()
