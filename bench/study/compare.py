# SPDX-License-Identifier: BSD-3-Clause
"""Compares the times of two files of results: ratios with intervals, and a verdict for each row.

A row is one product, iteration, solve or operation, with its sizes and what was asked for. Its ratio is the median time in the new
file over that in the old one. The interval has 95 of 100 ratios that come out if the repetitions of both are drawn again, with
replacement (bootstrap; the same draws each time). It knows of no run but these: what differs from one run to the next, such as where
memory lies or who else is there, is in it only if the repetitions saw it."""
import html
import json
import math
import random
import statistics
from dataclasses import dataclass
from pathlib import Path

from study import report
from study.fields import StudyError, meant
from study.figures import SCHEMA, place_of

DRAWS = 4000
LEAST = 5  # repetitions; of fewer, the least and the most often have the true median outside
# What tells rows apart, in results of all subcommands. What was asked for comes beside it.
FIELDS = ("solver", "kernel", "operator", "operation", "way", "adjoint", "rows", "cols", "sizes", "bytes", "messages", "nrhs", "dtype", "ranks",
          "grid", "over", "reduction", "root", "place", "device", "panel", "high_plane", "transport")
SILENT = {"adjoint": (False,), "root": (None,), "device": ("cpu",), "panel": (0,), "high_plane": (False,), "reduction": ("-",), "over": ("world",)}


def read(path):
    """The document of results.json or of --json of gridlops-bench; of a folder, that of its results.json."""
    path = Path(path)
    path = path / "results.json" if path.is_dir() else path
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        schema = document["schema"]
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        schema = "none"
    if schema == "gridlops.bench/1":
        ranks = document["environment"]["ranks"]
        return {"runs": [{"kind": "products", "ranks": ranks, "document": document}]}
    if schema != SCHEMA:
        raise StudyError(f"{path} has the schema {schema!r}, which is neither a study's results.json nor what gridlops-bench --json has written"
                         + ("; `gridlops report` compares reports" if str(schema).startswith("gridlops.report/") else ""))
    return document


@dataclass
class Row:
    fields: dict
    samples: list
    is_busy: bool

    def name(self):
        """The fields as words, without those that have their usual value."""
        fields = {name: value for name, value in self.fields.items() if value not in SILENT.get(name, ())}
        words = []
        if "adjoint" in self.fields and not {"solver", "operator", "kernel"} & set(fields):
            words.append("A^H Y" if fields.pop("adjoint", False) else "A X")
        if {"rows", "cols"} <= set(fields):
            fields = {name: f"{value} x {self.fields['cols']}" if name == "rows" else value for name, value in fields.items() if name != "cols"}
        return ", ".join([*words, *(text_of(name, value) for name, value in fields.items())])


NOUNS = {"nrhs": "column", "ranks": "rank", "messages": "message", "bytes": "byte", "rows": "row", "count": "element"}


def text_of(name, value):
    if name == "adjoint":
        return "adjoint"
    if name == "grid":
        return "x".join(map(str, value))
    if type(value) is str:
        return value
    return f"{value} {NOUNS[name]}{'' if value == 1 else 's'}" if name in NOUNS else f"{name} {value}"


def rows_of(document):
    """The rows of all runs. Runs of one program that differ by the repetition only are one row."""
    rows, programs = [], {}
    for run in document["runs"]:
        busy = place_of(run).is_busy
        if run["kind"] == "programs":
            words = [word for word in run["command"] if word != "--quiet"]
            samples = programs.setdefault((tuple(words), run["ranks"]), [[], False])
            samples[0].append(run["document"]["seconds"]["compute"])
            samples[1] |= busy
            continue
        for result in run["document"]["results"]:
            if "samples" not in result:
                raise StudyError("a file of results has no samples: it is of an older gridlops-bench, and only its medians are known")
            fields = {name: result[name] for name in FIELDS if name in result}
            fields.setdefault("ranks", run["ranks"])
            rows.append(Row({**fields, **result.get("asked", {})}, result["samples"], busy))
    for (words, ranks), (samples, busy) in programs.items():
        rows.append(Row({"command": " ".join(words), "ranks": ranks}, samples, busy))
    return rows


def chosen(rows, condition, path):
    """The rows with FIELD=VALUE, without that field; all rows without a condition."""
    if condition is None:
        return rows
    name, equals, value = condition.partition("=")
    known = sorted({field for row in rows for field in row.fields})
    if not equals or name not in known:
        raise StudyError(f"{path}: {condition!r} is not FIELD=VALUE with one of the fields {', '.join(known)}{meant(name, known)}")
    values = {text_of("grid", row.fields[name]) if name == "grid" else str(row.fields[name]) for row in rows if name in row.fields}
    if value not in values:
        raise StudyError(f"{path}: {name} is {', '.join(sorted(values))}, never {value!r}")
    return [Row({field: content for field, content in row.fields.items() if field != name}, row.samples, row.is_busy) for row in rows
            if name in row.fields and (text_of(name, row.fields[name]) if name == "grid" else str(row.fields[name])) == value]


def by_key(rows):
    """The rows by their fields; rows with equal fields, such as those of two sections, are told apart by their order."""
    found = {}
    for row in rows:
        key, turn = json.dumps(row.fields, sort_keys=True), 0
        while (key, turn) in found:
            turn += 1
        found[key, turn] = row
    return found


def interval(old, new):
    """The middle 95 of 100 ratios of medians of drawn repetitions."""
    draw = random.Random(1)
    ratios = sorted(statistics.median(draw.choices(new, k=len(new))) / statistics.median(draw.choices(old, k=len(old))) for _ in range(DRAWS))
    return ratios[round(0.025 * DRAWS)], ratios[round(0.975 * DRAWS) - 1]


@dataclass
class Comparison:
    name: str
    old: float  # seconds
    new: float
    least: float  # the interval of new / old
    most: float
    repetitions: int  # of the one that has fewer
    is_busy: bool

    @property
    def ratio(self):
        return self.new / self.old

    @property
    def verdict(self):
        if self.repetitions < LEAST:
            return "too few repetitions"
        return "faster" if self.most < 1 else "slower" if self.least > 1 else "no difference"


def compare(old, new):
    """The comparisons of rows that both have, and the names of those that only one has."""
    olds, news = by_key(old), by_key(new)
    both = []
    for key in olds:
        if key in news:
            before, after = olds[key], news[key]
            both.append(Comparison(before.name(), statistics.median(before.samples), statistics.median(after.samples),
                                   *interval(before.samples, after.samples), min(len(before.samples), len(after.samples)),
                                   before.is_busy or after.is_busy))
    return both, [olds[key].name() for key in olds if key not in news], [news[key].name() for key in news if key not in olds]


def summary(found):
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in ("faster", "slower", "no difference", "too few repetitions")}
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    judged = len(found) - counts["too few repetitions"]
    middle = math.exp(statistics.mean(math.log(one.ratio) for one in found))
    text = f"{len(found)} rows: {text}. The geometric mean of new/old is {middle:.3f}."
    if judged:
        text += f" If nothing differed, about {0.05 * judged:.1f} of {judged} rows would be faster or slower by chance."
    if counts["too few repetitions"]:
        text += f" A verdict needs {LEAST} repetitions in each file (--reps {LEAST}, or repetitions of the study)."
    return text


def bar(one, reach):
    """A picture of the interval: the line of 1 in the middle, both ends `reach` times as long or short."""
    def place(ratio):
        return 110 + 105 * max(-1.0, min(1.0, math.log(ratio) / math.log(reach)))
    left, right = place(one.least), place(one.most)
    color = {"faster": "#006b2d", "slower": "#b00020"}.get(one.verdict, "#666")
    return report.Markup(f'<svg width="220" height="14" role="img" aria-label="{one.least:.3f} to {one.most:.3f}"><path d="M110 0V14" stroke="#bbb"/>'
                         f'<path d="M{left:.1f} 7H{max(right, left + 1):.1f}" stroke="{color}" stroke-width="3"/>'
                         f'<circle cx="{place(one.ratio):.1f}" cy="7" r="4" fill="{color}"/></svg>')


def page(titles, documents, found, only):
    facts = [dict(report.environments(document)) for document in documents]
    names = dict.fromkeys(name for side in facts for name in side)
    differing = [[name, *(side.get(name, "") for side in facts)] for name in names if facts[0].get(name) != facts[1].get(name)]
    reach = min(4.0, max(1.05, *(max(one.most, 1 / one.least) for one in found)))
    parts = [f"<h1>{html.escape(titles[1])} against {html.escape(titles[0])}</h1>\n"]
    parts += [f"<p>{name}: {html.escape(title)}: {html.escape(report.summary(document))}</p>\n"
              for name, title, document in zip(("old", "new"), titles, documents)]
    parts.append(f"<p>{html.escape(summary(found))}</p>\n")
    if any(one.is_busy for one in found):
        parts.append('<p class="warning">The machine was busy in runs of the <span class="hatch">&nbsp;hatched&nbsp;</span> rows.</p>\n')
    rows = [("busy" if one.is_busy else "", [one.name, report.Markup(f'<span class="{one.verdict}">{one.verdict}</span>'), f"{one.ratio:.3f}",
                                             f"{one.least:.3f} … {one.most:.3f}", bar(one, reach), f"{1e3 * one.old:.4g}", f"{1e3 * one.new:.4g}"])
            for one in found]
    parts.append(f"<h2>Rows</h2>\n<p>Medians in ms, and their ratio with its 95 % interval, drawn from 1/{reach:.2f} to {reach:.2f}. A row is "
                 "faster or slower if the interval does not have 1 in it.</p>\n"
                 + report.table(["row", "verdict", "new/old", "interval", "", "old", "new"], rows, "ways"))
    parts.append(f"<p>{html.escape(__doc__.split('A row is')[1].replace(chr(10), ' ').join(['A row is', '']))}</p>\n")
    for name, missing in zip(("old", "new"), only):
        if missing:
            parts.append(f"<h2>Only in the {name} file</h2>\n<ul>" + "".join(f"<li>{html.escape(row)}</li>" for row in missing) + "</ul>\n")
    if differing:
        parts.append("<h2>What differs besides</h2>\n" + report.table(["fact", "old", "new"], differing, "text"))
    return report.page_of(f"{titles[1]} against {titles[0]}", parts)


def compare_files(paths, conditions, out):
    """Prints the comparison, writes its page, and returns how many rows are slower."""
    documents = [read(path) for path in paths]
    sides = [chosen(rows_of(document), condition, path) for document, condition, path in zip(documents, conditions, paths)]
    found, *only = compare(*sides)
    if not found:
        raise StudyError(f"no row of {paths[0]} is in {paths[1]}; the first of each: {'; '.join(side[0].name() if side else 'none' for side in sides)}"
                         "; to compare two algorithms, for instance, say --old algorithm=summa --new algorithm=block")
    print(f"{'old ms':>10}{'new ms':>10}{'new/old':>9}  {'interval':<17}{'verdict':<20}row")
    for one in found:
        print(f"{1e3 * one.old:>10.4g}{1e3 * one.new:>10.4g}{one.ratio:>9.3f}  {f'{one.least:.3f} … {one.most:.3f}':<17}{one.verdict:<20}"
              f"{one.name}{' (busy)' if one.is_busy else ''}")
    print(summary(found))
    for name, missing in zip(("old", "new"), only):
        if missing:
            print(f"{len(missing)} row{'' if len(missing) == 1 else 's'} only in the {name} file, the first: {missing[0]}")
    titles = [f"{path} ({condition})" if condition else str(path) for path, condition in zip(paths, conditions)]
    out.write_text(page(titles, documents, found, only), encoding="utf-8")
    print(f"the page is {out}")
    return sum(one.verdict == "slower" for one in found)
