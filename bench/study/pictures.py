# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of a study. Each function returns a picture as the bytes of a PNG file, or None if there is nothing
to draw."""
import io
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import roofline  # noqa: E402
from study import figures as measured  # noqa: E402

MARKERS = "os^vDP*X<>"
WIDE = 6.2  # inches of a panel


def png_of(figure):
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    plt.close(figure)
    return data.getvalue()


def panels(count):
    """Axes for this many panels, two per row."""
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


def styles_of(series):
    """The style of each label, for all pictures of a study."""
    labels = sorted({one.label for one in series})
    return {label: style(label, labels) for label in labels}


def reach(value, least, most):
    """An error bar from the least to the most of the repetitions."""
    return [value - least], [most - value]


def finish(figure, axes):
    """One legend for all panels, below them."""
    entries = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    inches = figure.get_figwidth()
    columns = max(1, min(len(entries), int(inches * 11 / (max(map(len, entries)) + 6))))
    # Older versions of Matplotlib cannot place a legend outside the axes.
    height = figure.get_figheight() + 0.2 * math.ceil(len(entries) / columns) + 0.2
    below = 1 - figure.get_figheight() / height
    figure.set_figheight(height)
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - below), h_pad=0.12, w_pad=0.12)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncols=columns, fontsize="small")
    return png_of(figure)


def title_of(work, scaling):
    return f"{work}{' on the fewest ranks' if scaling == 'weak' and ' x ' in work else ''}"


def ticks(axis, ranks):
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(count) for count in ranks])
    axis.set_xlim(ranks[0] / 1.3, ranks[-1] * 1.3)
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


def shifted(ranks, k, count):
    """The place of the k-th of `count` curves, which stand a little apart, so that equal ones are seen."""
    return ranks * 2 ** (min(0.05, 0.3 / count) * (k - (count - 1) / 2))


def curves(study, drawn, styles, ylabel, finish_axis, counted=False):
    """A panel for each work, a curve for each form. `drawn` has for each series its name in the legend and its points:
    a figure, and a value with the least and the most of the repetitions. Points of a busy machine are open, unless values
    are counted."""
    if not drawn:
        return None
    groups = {}
    for one, name, points in drawn:
        groups.setdefault(one.work, []).append((one, name, points))
    figure, axes = panels(len(groups))
    for axis, (work, members) in zip(axes, groups.items()):
        for k, (one, name, points) in enumerate(members):
            look = styles[one.label]
            for point, *values in points:
                at = shifted(point.ranks, k, len(members))
                axis.errorbar([at], values[:1], yerr=reach(*values), color=look["color"], capsize=3, linewidth=1)
            axis.plot([shifted(point.ranks, k, len(members)) for point, *_ in points], [values[0] for _, *values in points], label=name, **look)
            for point, *values in points:
                if point.place.is_busy and not counted:
                    axis.plot([shifted(point.ranks, k, len(members))], values[:1], color=look["color"], marker=look["marker"], markerfacecolor="white")
        ticks(axis, study.ranks)
        finish_axis(axis, members)
        axis.set_title(title_of(work, study.scaling), fontsize="medium")
        axis.set(xlabel="ranks", ylabel=ylabel)
    return finish(figure, axes)


def bound_from(base, ranks, cores):
    """What cores allow on more ranks, relative to what they allow on the fewest."""
    return min(1.0, cores / ranks) / min(1.0, cores / base)


def counts(study, cores):
    """The numbers of ranks at which a bound by cores is drawn: where it falls, it is a curve."""
    least, most = study.ranks[0], study.ranks[-1]
    middle = [least * (most / least) ** (k / 40) for k in range(41)]
    return sorted({*middle, *([cores] if least < cores < most else [])})


def cores_of(members):
    """The cores that all ranks share, where there are fewer cores than ranks; otherwise infinity."""
    return min((point.place.cores for _, _, points in members for point, *_ in points if point.place.bound < 1), default=math.inf)


def shade(axis, study, cores):
    """Marks where ranks share cores."""
    if cores < study.ranks[-1]:
        axis.axvspan(max(cores, axis.get_xlim()[0]), axis.get_xlim()[1], color="0.92", zorder=0, label=f"more ranks than the {cores:g} cores")


def efficiency(study, series, styles):
    """Draws the series that have more points than their base."""
    def ideal(axis, members):
        cores = cores_of(members)
        base = min(one.base.ranks for one, *_ in members)
        across = [ranks for ranks in counts(study, cores) if ranks >= base]
        axis.plot(across, [bound_from(base, ranks, cores) for ranks in across], color="black", linewidth=1, label="the most that is possible")
        axis.set_ylim(bottom=0)
        shade(axis, study, cores)

    drawn = [(one, one.label + measured.against(study, one), [(point, *share) for point, share in zip(one.points, one.efficiencies())])
             for one in series if one.points[-1] is not one.base]
    return curves(study, drawn, styles, f"efficiency of {study.scaling} scaling (1 = ideal)", ideal)


def times(study, series, styles):
    def ideal(axis, members):
        cores = cores_of(members)
        fewest = min(point.ranks for _, _, points in members for point, *_ in points)
        first = min(value for _, _, points in members for point, value, *_ in points if point.ranks == fewest)
        across = [ranks for ranks in counts(study, cores) if ranks >= fewest]
        grows = study.scaling == "weak"
        axis.plot(across, [first * (1 if grows else fewest / ranks) / bound_from(fewest, ranks, cores) for ranks in across], color="black",
                  linewidth=1, label="ideal")
        decades(axis)
        shade(axis, study, cores)

    drawn = [(one, one.label, [(point, *(1e3 * seconds for seconds in (point.seconds, min(point.samples), max(point.samples))))
                               for point in one.points]) for one in series]
    return curves(study, drawn, styles, "time (ms)", ideal)


def waiting(study, series, styles):
    def percents(axis, members):
        axis.set_ylim(0, max(5, axis.get_ylim()[1]))
        shade(axis, study, cores_of(members))

    drawn = [(one, one.label, [(point, *3 * [100 * point.waiting]) for point in one.points if point.waiting is not None])
             for one in series if any(point.waiting for point in one.points)]
    return curves(study, drawn, styles, "share of the time that ranks wait (%)", percents)


def traffic(study, series, styles):
    """Counts are the same in all repetitions."""
    drawn = [(one, one.label, [(point, *3 * [point.bytes_sent / 1e6]) for point in one.points if point.bytes_sent])
             for one in series if any(point.bytes_sent for point in one.points)]
    return curves(study, drawn, styles, "sent by a rank, mean (MB)", lambda axis, _: decades(axis), counted=True)


def forms(series, styles):
    """1-D against 2-D: a bar for each series, on each number of ranks that has both forms. Gaps separate the ways."""
    groups = {}
    for one in series:
        for point in one.points:
            groups.setdefault((point.work, point.ranks), {}).setdefault(point, one)  # two rules may make the same grid
    groups = {key: members for key, members in groups.items()
              if any("2-D" in point.form for point in members) and any("2-D" not in point.form for point in members)}
    if not groups:
        return None
    picture, axes = panels(len(groups))
    for axis, ((work, ranks), members) in zip(axes, groups.items()):
        ways = list(dict.fromkeys(point.way for point in members))
        points = sorted(members, key=lambda point: ways.index(point.way))
        places = [k + 0.5 * ways.index(point.way) for k, point in enumerate(points)]
        for place, point in zip(places, points):
            one = members[point]
            milliseconds = [1e3 * seconds for seconds in (point.seconds, min(point.samples), max(point.samples))]
            axis.bar([place], milliseconds[:1], 0.9, yerr=reach(*milliseconds), capsize=3, color=styles[one.label]["color"], label=one.label,
                     edgecolor="white", hatch="///" if point.place.is_busy else None)
        axis.set_xticks(places, [f"{point.form}\n{point.grid[0]}x{point.grid[1]}" for point in points], fontsize="small")
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.set_title(f"{work}, {ranks} ranks", fontsize="medium")
        axis.set(xlabel="form and grid", ylabel="time (ms)")
    return finish(picture, axes)


def collectives(results):
    results = [result for result in results if result.get("seconds") and result["bytes"] > 0 and result["ranks"] > 1]
    if not results:
        return None

    def label(result):
        return f"{result['transport']}, {result['ranks']} rank{'' if result['ranks'] == 1 else 's'}"
    labels = sorted(set(map(label, results)))
    operations = list(dict.fromkeys(result["operation"] for result in results))
    figure, axes = panels(len(operations))
    for axis, operation in zip(axes, operations):
        for name in labels:
            best = {}  # the fastest of several types or places
            for result in results:
                if result["operation"] == operation and label(result) == name:
                    best[result["bytes"]] = min(best.get(result["bytes"], result), result, key=lambda found: found["seconds"])
            sizes = sorted(best)
            if sizes:
                axis.plot(sizes, [1e6 * best[size]["seconds"] for size in sizes], label=name, **style(name, labels))
                axis.fill_between(sizes, *([1e6 * best[size][end] for size in sizes] for end in ("seconds_min", "seconds_max")),
                                  color=style(name, labels)["color"], alpha=0.15, linewidth=0)
        axis.set(xscale="log", yscale="log", xlabel="size of the operand (bytes)", ylabel="time (µs)")
        axis.set_title(operation, fontsize="medium")
        axis.grid(alpha=0.3)
    return finish(figure, axes)


def roof(series, styles):
    """Draws the products and iterations of one type, on the most ranks that have any."""
    most = max((point.ranks for one in series for point in one.points if point.result), default=0)
    labels = {}
    for one in series:
        for point in one.points:
            if point.ranks == most and point.result:
                labels.setdefault(point, one.label)
    if not labels:
        return None
    dtype = next(iter(labels)).result["dtype"]
    results = [{**point.result, "series": label} for point, label in labels.items() if point.result["dtype"] == dtype]
    return png_of(roofline.picture(results, f"{dtype}, {most} ranks", {label: look["color"] for label, look in styles.items()}))
