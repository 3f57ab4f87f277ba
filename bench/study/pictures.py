# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of a study. Each function returns a picture as the bytes of a PNG file, or nothing where there is nothing
to draw."""
import io
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import roofline  # noqa: E402

MARKERS = "os^vDP*X<>"
WIDE = 6.2  # inches of a panel


def png_of(figure):
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    plt.close(figure)
    return data.getvalue()


def panels(count):
    """Axes for so many panels, two beside each other."""
    across = min(count, 2)
    down = math.ceil(count / across)
    figure, axes = plt.subplots(down, across, figsize=(WIDE * across, 4.6 * down), layout="constrained", squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]


def style(label, labels):
    """A colour and a marker, the same for a label in all panels."""
    k = labels.index(label)
    return {"color": f"C{k % 10}", "marker": MARKERS[k % len(MARKERS)], "linestyle": ("-", "--", ":")[k // 10 % 3]}


def finish(figure, axes):
    """One legend for all panels, below them."""
    entries = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    inches = figure.get_figwidth()
    columns = max(1, min(len(entries), int(inches * 11 / (max(map(len, entries)) + 6))))
    # Older versions of Matplotlib have no place outside of the axes.
    height = figure.get_figheight() + 0.2 * math.ceil(len(entries) / columns) + 0.2
    below = 1 - figure.get_figheight() / height
    figure.set_figheight(height)
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below), h_pad=0.12, w_pad=0.12)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncols=columns, fontsize="small")
    return png_of(figure)


def by_work(series):
    groups = {}
    for one in series:
        groups.setdefault(one.work, []).append(one)
    return groups


def title_of(work, scaling):
    return f"{work}{' on the fewest ranks' if scaling == 'weak' and ' x ' in work else ''}"


def ticks(axis, ranks):
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(count) for count in ranks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)


def decades(axis):
    """A logarithmic axis of whole decades, with plain numbers."""
    least, most = (math.log10(value) for value in axis.dataLim.intervaly)
    axis.set_yscale("log")
    axis.set_ylim(10 ** math.floor(least - 0.02), 10 ** math.ceil(most + 0.02))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    axis.grid(axis="y", which="both", alpha=0.3)


def curves(study, series, values, ylabel, finish_axis):
    """A panel for each work, a curve for each form; values(one) gives pairs of ranks and a value."""
    if not series:
        return None
    labels = sorted({one.label for one in series})
    groups = by_work(series)
    figure, axes = panels(len(groups))
    for axis, (work, members) in zip(axes, groups.items()):
        for one in members:
            axis.plot(*zip(*values(one)), label=one.label, **style(one.label, labels))
        ticks(axis, study.ranks)
        finish_axis(axis)
        axis.set_title(title_of(work, study.scaling), fontsize="medium")
        axis.set(xlabel="ranks", ylabel=ylabel)
    return finish(figure, axes)


def efficiency(study, series):
    def ideal(axis):
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_ylim(bottom=0)

    return curves(study, [one for one in series if len(one.points) > 1],
                  lambda one: zip((point.ranks for point in one.points), one.efficiencies()),
                  f"efficiency of {study.scaling} scaling (1 = ideal)", ideal)


def times(study, series):
    return curves(study, series, lambda one: [(point.ranks, 1e3 * point.seconds) for point in one.points], "time (ms)", decades)


def traffic(study, series):
    return curves(study, [one for one in series if any(point.bytes_sent for point in one.points)],
                  lambda one: [(point.ranks, point.bytes_sent / 1e6) for point in one.points if point.bytes_sent],
                  "sent by a rank, mean (MB)", decades)


def forms(study, figures):
    """1-D against 2-D: bars for each form, on each number of ranks that has both."""
    groups = {}
    for figure in figures:
        groups.setdefault((figure.work, figure.ranks), []).append(figure)
    groups = {key: members for key, members in groups.items()
              if any("2-D" in one.form for one in members) and any("2-D" not in one.form for one in members)}
    if not groups:
        return None

    def kind(one):
        return f"{one.form}, {one.grid[0]}x{one.grid[1]}"
    kinds = sorted({kind(one) for members in groups.values() for one in members})
    picture, axes = panels(len(groups))
    for axis, ((work, ranks), members) in zip(axes, groups.items()):
        ways = list(dict.fromkeys(one.way for one in members))
        here = [name for name in kinds if name in map(kind, members)]
        width = 0.8 / len(here)
        for k, name in enumerate(here):
            bars = [(place + (k - (len(here) - 1) / 2) * width, 1e3 * one.seconds) for place, way in enumerate(ways)
                    for one in members if one.way == way and kind(one) == name]
            axis.bar([place for place, _ in bars], [height for _, height in bars], width * 0.92, color=f"C{kinds.index(name)}", label=name)
        axis.set_xlim(-0.7, len(ways) - 0.3)
        axis.set_xticks(range(len(ways)), [way.replace(", ", "\n") for way in ways], fontsize="small")
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.set_title(f"{work}, {ranks} ranks", fontsize="medium")
        axis.set(xlabel="algorithm, transport", ylabel="time (ms)")
    return finish(picture, axes)


def collectives(results):
    results = [result for result in results if result.get("seconds") and result["bytes"] > 0]
    if not results:
        return None

    def label(result):
        return f"{result['transport']}, {result['ranks']} rank{'' if result['ranks'] == 1 else 's'}"
    labels = sorted(set(map(label, results)))
    operations = list(dict.fromkeys(result["operation"] for result in results))
    figure, axes = panels(len(operations))
    for axis, operation in zip(axes, operations):
        for name in labels:
            best = {}  # of several types or places the quickest
            for result in results:
                if result["operation"] == operation and label(result) == name:
                    best[result["bytes"]] = min(best.get(result["bytes"], math.inf), result["seconds"])
            if best:
                axis.plot(sorted(best), [1e6 * best[size] for size in sorted(best)], label=name, **style(name, labels))
        axis.set(xscale="log", yscale="log", xlabel="size of the operand (bytes)", ylabel="time (µs)")
        axis.set_title(operation, fontsize="medium")
        axis.grid(alpha=0.3)
    return finish(figure, axes)


def roof(results, ranks):
    results = [result for result in results if result["dtype"] == results[0]["dtype"]]
    if not results:
        return None
    return png_of(roofline.picture(results, f"{results[0]['dtype']}, {ranks} ranks"))
