# SPDX-License-Identifier: BSD-3-Clause
"""Writes the report of a study: one HTML file that needs no other, and no network."""
import base64
import html
import sys

from study import figures as measured

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:#222}
h1,h2{font-weight:600}figure{margin:1.5em 0}figure img{max-width:100%;border:1px solid #ddd}figcaption{color:#444;max-width:60em}
table{border-collapse:collapse;font-size:13px}th,td{padding:2px 9px;text-align:right;border-bottom:1px solid #e4e4e4;white-space:nowrap}
th:first-child,td:first-child,.text td,.text th{text-align:left}.warning{background:#fff3cd;padding:.6em 1em}
pre{background:#f6f6f6;padding:1em;overflow-x:auto}div.wide{overflow-x:auto}"""

CAPTIONS = {
    "Efficiency": "A rank's work per second, relative to that of a rank on the fewest ranks. 1 is ideal; "
                  "communication, waiting, and parts of the machine that ranks share, such as memory, cost the rest. "
                  "A line stands for the options that the study asks for: the table shows what “auto” became. Bars "
                  "reach from the least to the most of the repetitions, over the median on the fewest ranks.",
    "Time": "The median of the repetitions on the slowest rank, over the number of ranks. Bars reach from the least "
            "to the most. In ideal strong scaling lines fall with slope -1; in ideal weak scaling they are level.",
    "1-D against 2-D": "The same work on the same number of ranks, with A cut along one dimension or two. “x2” is a "
                       "form that keeps two copies of A.",
    "Communication volume": "The data that a rank sends in one product or iteration (for gridlops programs: in the "
                            "whole solve). The programs count it, and it does not depend on the machine. One rank "
                            "sends nothing and has no point.",
    "Collectives": "Time of one operation on the slowest rank: the median, in a band from the least to the most. "
                   "Latency makes level parts, bandwidth slopes of 1.",
    "Roofline": "Each product or iteration on the most ranks, under the limits that the same ranks measured in the "
                "same run: the slope is the limit of reading memory, the level line that of multiplying. A^H Y points "
                "down. Bars reach from the least to the most of the repetitions.",
}


def table(head, rows, kind=""):
    cells = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f'<div class="wide"><table class="{kind}"><tr>{cells}</tr>\n{body}</table></div>\n'


def drawn(study, document, series):
    """The pictures that exist, by title; none without matplotlib."""
    try:
        from study import pictures
    except ImportError as error:
        print(f"scaling: the report has no pictures, because {sys.executable} has no {error.name}", file=sys.stderr)
        return {}
    styles = pictures.styles_of(series)
    made = {"Efficiency": pictures.efficiency(study, series, styles), "Time": pictures.times(study, series, styles),
            "1-D against 2-D": pictures.forms(series, styles), "Communication volume": pictures.traffic(study, series, styles),
            "Collectives": pictures.collectives(measured.collectives_of(document)), "Roofline": pictures.roof(series, styles)}
    return {title: data for title, data in made.items() if data}


def environments(document):
    """What figures depend on besides the work: a row for each fact, with the values of all runs."""
    values = {}
    for run in document["runs"]:
        for name, value in run["document"].get("environment", {}).items():
            if type(value) in (str, int, float) and name not in ("time", "ranks"):
                values.setdefault(name, []).append(value)
    rows = []
    for name, found in values.items():
        if name.startswith("load_average"):
            rows.append([name.replace("_", " "), f"{min(found):.1f} to {max(found):.1f}"])
        else:
            rows.append([name.replace("_", " "), ", ".join(map(str, dict.fromkeys(found)))])
    return rows


def figure_rows(study, series):
    for one in series:
        for point, (share, *_) in zip(one.points, one.efficiencies()):
            sent = "" if point.bytes_sent is None else f"{point.bytes_sent / 1e6:.3f}"
            milliseconds = [f"{1e3 * seconds:.3f}" for seconds in (point.seconds, min(point.samples), max(point.samples))]
            yield [point.work, one.label, point.ran, point.ranks, f"{point.grid[0]}x{point.grid[1]}", point.form, *milliseconds,
                   f"{share:.2f}{measured.against(study, one)}", sent]


def collective_rows(results):
    for result in results:
        yield [result["operation"], result["transport"], result["ranks"], result["bytes"], f"{1e6 * result['seconds']:.2f}",
               f"{result['bytes'] / result['seconds'] / 1e9:.3f}", result.get("wrong", "")]


def write_report(study, document, folder):
    """Writes report.html and, beside it, the pictures as files. Returns the path."""
    series = measured.all_series(study, measured.figures_of(study, document))
    parts = [f"<h1>{html.escape(study.name)}: {study.scaling} scaling on {', '.join(map(str, study.ranks))} ranks</h1>\n"]
    if document["missing"]:
        parts.append(f'<p class="warning">{len(document["missing"])} of {len(study.runs)} runs have no result: '
                     f'{html.escape(", ".join(document["missing"]))}</p>\n')
    for title, data in drawn(study, document, series).items():
        (folder / f"{title.lower().replace(' ', '-')}.png").write_bytes(data)
        image = base64.b64encode(data).decode("ascii")
        parts.append(f'<h2>{title}</h2>\n<figure><img alt="{title}" src="data:image/png;base64,{image}">'
                     f"<figcaption>{CAPTIONS[title]}</figcaption></figure>\n")
    if series:
        parts.append("<h2>Figures</h2>\n" + table(["work", "asked for", "ran as", "ranks", "grid", "form", "ms", "least", "most", "efficiency",
                                                         "MB sent by a rank"], figure_rows(study, series)))
    collectives = measured.collectives_of(document)
    if collectives:
        parts.append("<h2>Figures of collectives</h2>\n"
                     + table(["operation", "transport", "ranks", "bytes", "us", "GB/s", "wrong"], collective_rows(collectives)))
    parts.append("<h2>Machine</h2>\n" + table(["what", "value"], environments(document), "text"))
    parts.append(f"<h2>Study</h2>\n<pre>{html.escape(study.text)}</pre>\n")
    path = folder / "report.html"
    path.write_text(f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(study.name)}</title>'
                    f"<style>{STYLE}</style></head>\n<body>\n{''.join(parts)}</body></html>\n", encoding="utf-8")
    return path
