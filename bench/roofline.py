#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws results of gridlops-bench, and of peers, under the roof that their runs measured.

    bench/roofline --output roofline.svg products.json scalapack.json …

Each product is a point: real operations per byte of A on the x axis, the rate on the y axis. Triangles point up for A X
and down for A^H Y. The roof is the median of the limits in all files. It holds for one type of elements: choose it with
--dtype (default f64)."""
import argparse
import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "gridlops"  # the same figures give the same file
from matplotlib import pyplot  # noqa: E402

BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}


def intensity(result):
    """Real operations per byte of A."""
    operations = (8 if result["dtype"].startswith("c") else 2) * result["nrhs"]
    return operations / BYTES[result["dtype"]]


def series_of(result):
    if "series" in result:
        return result["series"]
    if result["algorithm"] == "p?gemm":
        return "ScaLAPACK"
    return f"{result['algorithm']}, {result['transport']}"


def spread(results):
    """How far the rates of the repetitions lie below and above the typical rate. Older files have no samples."""
    ends = []
    for result in results:
        samples = result.get("samples") or [1]
        rates = [result["gflops"] * statistics.median(samples) / seconds for seconds in samples]
        ends.append((result["gflops"] - min(rates), max(rates) - result["gflops"]))
    return list(zip(*((max(low, 0), max(high, 0)) for low, high in ends)))


def picture(results, title, colors=None):
    """A figure of these results, which have one type of elements. colors: the colour of each series."""
    compute = statistics.median(result["limit_gflops"] for result in results)
    read = statistics.median(result["limit_read_gbs"] for result in results)
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    ridge = compute / read
    reach = [min(*map(intensity, results), ridge) / 2, max(*map(intensity, results), ridge) * 2]
    across = [reach[0], ridge, reach[1]]
    axes.plot(across, [min(compute, read * x) for x in across], color="black", linewidth=1)
    axes.text(reach[1], compute * 1.04, f"{compute:.0f} GFLOP/s", ha="right", va="bottom")
    slope = (reach[0] * ridge) ** 0.5
    axes.margins(y=0.12)
    axes.text(slope, read * slope * 0.95, f"  {read:.0f} GB/s", ha="left", va="top")
    for k, name in enumerate(sorted(set(map(series_of, results)))):
        for adjoint in (False, True):
            points = [result for result in results if series_of(result) == name and result["adjoint"] == adjoint]
            color = colors[name] if colors else f"C{k}"
            if points:
                axes.errorbar(list(map(intensity, points)), [point["gflops"] for point in points], yerr=spread(points), color=color, fmt="none",
                              capsize=3, linewidth=1)
            axes.scatter(list(map(intensity, points)), [point["gflops"] for point in points], color=color,
                         marker="v" if adjoint else "^", label=None if adjoint else name, s=36, alpha=0.8)
    axes.set(xscale="log", yscale="log", xlabel="real operations for each byte of A", ylabel="GFLOP/s", title=title)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    return figure


def draw(results, output):
    columns = sorted({result["nrhs"] for result in results})
    figure = picture(results, f"{results[0]['rows']} x {results[0]['cols']} times {', '.join(map(str, columns))} columns")
    figure.savefig(output, format="svg", metadata={"Date": None})
    # The backend leaves white space at the ends of lines.
    lines = [line.rstrip() for line in output.read_text(encoding="utf-8").splitlines()]
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="bench/roofline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="an SVG file")
    parser.add_argument("--dtype", default="f64", choices=BYTES)
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    results = [result for path in arguments.files for result in json.loads(path.read_text(encoding="utf-8"))["results"]
               if result["dtype"] == arguments.dtype]
    if not results:
        parser.error(f"none of the files has products of {arguments.dtype}")
    draw(results, arguments.output)


if __name__ == "__main__":
    main()
