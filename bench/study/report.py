# SPDX-License-Identifier: BSD-3-Clause
"""Writes the report of a study: one HTML file that needs no other, and no network."""
import base64
import html
import sys

from study import figures as measured

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:1.5em auto;padding:0 1em;color:#222}
h1,h2{font-weight:600}h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em}figure{margin:1em 0}
figure img{max-width:100%;border:1px solid #ddd}figcaption,p{max-width:60em}figcaption{color:#444}
table{border-collapse:collapse;font-size:13px}th,td{padding:2px 8px;text-align:right;border-bottom:1px solid #e4e4e4}
th{vertical-align:bottom}td{white-space:nowrap}th:first-child,td:first-child,.text td,.text th,.work th,.ways td:nth-child(2){text-align:left}
.text td{white-space:normal;overflow-wrap:anywhere}.text td:first-child{white-space:nowrap}
.work th{padding-top:1em}th:first-child,td:first-child{position:sticky;left:0;background:#fff}
.busy td,.hatch{background:repeating-linear-gradient(135deg,#fff 0 7px,#f6e3c5 7px 9px)}
.warning{background:#fff3cd;padding:.6em 1em}.faster{color:#006b2d;font-weight:600}.slower{color:#b00020;font-weight:600}
pre{background:#f6f6f6;padding:1em;overflow-x:auto}div.wide{overflow-x:auto}svg{display:block}"""

CAPTIONS = {
    "Efficiency": "A rank's work per second, relative to that of a rank on the fewest ranks. 1 is ideal; "
                  "communication, waiting, and parts of the machine that ranks share, such as memory, cost the rest. "
                  "The black line is the most that is possible: it falls as cores/ranks where ranks share cores. "
                  "A line stands for the options that the study asks for: the table shows what “auto” became. Bars "
                  "reach from the least to the most of the repetitions, over the median on the fewest ranks.",
    "Time": "The median of the repetitions on the slowest rank, over the number of ranks. Bars reach from the least "
            "to the most. The black line is ideal for the fastest on the fewest ranks, with cores/ranks of its speed "
            "where ranks share cores.",
    "1-D against 2-D": "The same work on the same number of ranks, with A cut along one dimension or two. “x2” is a "
                       "form that keeps two copies of A.",
    "Waiting": "The share of the time in communication and for slower ranks, the mean of the ranks.",
    "Communication volume": "The data that a rank sends in one product or iteration (for gridlops programs: in the "
                            "whole solve). The programs count it, and it does not depend on the machine. One rank "
                            "sends nothing and has no point.",
    "Collectives": "Time of one operation on the slowest rank: the median, in a band from the least to the most. "
                   "Latency makes level parts, bandwidth slopes of 1. One rank sends nothing and has no line.",
    "Roofline": "Each product or iteration on the most ranks, under the limits that the same ranks measured in the "
                "same run: the slope is the limit of reading memory, the level line that of multiplying. A^H Y points "
                "down. Bars reach from the least to the most of the repetitions. A point above the slope has a block "
                "of A that fits into caches, which are faster than memory.",
}
SHIFTED = " Lines stand a little apart from each other so that equal ones are seen."


class Markup(str):
    """Text that is HTML already."""


def cell(value):
    return value if isinstance(value, Markup) else html.escape(str(value))


def table(head, rows, kind=""):
    """Each row is a list of cells, after the name of its class if it has one."""
    text = "".join(f"<th>{cell(value)}</th>" for value in head)
    body = ""
    for row in rows:
        name, cells = row if isinstance(row, tuple) else ("", row)
        kinds = f' class="{name}"' if name else ""
        if name == "work":
            body += f'<tr{kinds}><th colspan="{len(head)}">{cell(cells)}</th></tr>\n'
        else:
            body += f"<tr{kinds}>" + "".join(f"<td>{cell(value)}</td>" for value in cells) + "</tr>\n"
    return f'<div class="wide"><table class="{kind}"><tr>{text}</tr>\n{body}</table></div>\n'


def page_of(title, parts):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body>\n{"".join(parts)}</body></html>\n')


def drawn(study, document, series):
    """The pictures that exist, by title; none without matplotlib."""
    try:
        from study import pictures
    except ImportError as error:
        print(f"scaling: the report has no pictures, because {sys.executable} has no {error.name}", file=sys.stderr)
        return {}
    styles = pictures.styles_of(series)
    made = {"Efficiency": pictures.efficiency(study, series, styles), "Time": pictures.times(study, series, styles),
            "1-D against 2-D": pictures.forms(series, styles), "Waiting": pictures.waiting(study, series, styles),
            "Communication volume": pictures.traffic(study, series, styles),
            "Collectives": pictures.collectives(measured.collectives_of(document)), "Roofline": pictures.roof(series, styles)}
    return {title: data for title, data in made.items() if data}


def facts_of(document):
    """What a run's figures depend on besides the work, under the names that gridlops-bench gives these facts."""
    if "machine" not in document:
        return document.get("environment", {})
    machine = document["machine"]
    return {"version": document["version"], "time": document["date"], "host": ", ".join(host["name"] for host in machine["hosts"]),
            "cpu": machine["processor"], **{name: machine[name] for name in ("cores", "mpi", "blas", "blas_kernel", "threads")}}


def values_of(document):
    """The values of each fact in all runs."""
    values = {}
    for run in document["runs"]:
        for name, value in facts_of(run["document"]).items():
            if type(value) in (str, int, float):
                values.setdefault(name, []).append(value)
    return values


def summary(document):
    """When, with which version and on which machine: a line."""
    values = values_of(document)

    def of(name, before="", after=""):
        texts = list(dict.fromkeys(map(str, values.get(name, []))))
        found = ", ".join(text for text in texts if not any(other != text and other.startswith(text) for other in texts))
        return [f"{before}{found}{after}"] if found else []
    days = sorted({time[:10] for time in values.get("time", [])})
    commit = of("commit", " (", ")")
    facts = [" to ".join(dict.fromkeys([*days[:1], *days[-1:]])), *(text + "".join(commit) for text in of("version", "GridLOps ")),
             *of("host", "on "), *of("cpu"), *of("cores", after=" cores"), *of("mpi"), *of("blas")]
    return "; ".join(fact for fact in facts if fact)


def environments(document):
    """A row for each fact, with the values of all runs."""
    values = {name: found for name, found in values_of(document).items() if name not in ("time", "ranks")}
    rows = []
    for name, found in values.items():
        if name.startswith("load_average"):
            rows.append([name.replace("_", " "), f"{min(found):.1f} to {max(found):.1f}"])
        else:
            rows.append([name.replace("_", " "), ", ".join(map(str, dict.fromkeys(found)))])
    return rows


def figure_rows(study, series):
    last = None
    for one in series:
        if one.work != last:
            yield "work", one.work
        last = one.work
        for point, (share, *_) in zip(one.points, one.efficiencies()):
            sent = "" if point.bytes_sent is None else f"{point.bytes_sent / 1e6:.3f}"
            waiting = "" if point.waiting is None else f"{100 * point.waiting:.0f} %"
            typical, least, most = (f"{1e3 * seconds:.3f}" for seconds in (point.seconds, min(point.samples), max(point.samples)))
            yield "busy" if point.place.is_busy else "", [
                one.label, point.work.partition(": ")[2] if point.work != one.work else "", point.ran, point.ranks, f"{point.grid[0]}x{point.grid[1]}", point.form,
                typical, f"{share:.2f}{measured.against(study, one)}", waiting, least, most, sent]


FIGURES = ["asked for", "size here", "ran as", "ranks", "grid", "form", "ms", "efficiency", "waiting", "least", "most", "MB sent by a rank"]


def without_empty(head, rows):
    """Leaves out the columns that no row has anything in."""
    rows = list(rows)
    kept = [k for k in range(len(head)) if any(name != "work" and cells[k] != "" for name, cells in rows)]
    return [head[k] for k in kept], [(name, cells if name == "work" else [cells[k] for k in kept]) for name, cells in rows]


def collective_rows(runs):
    for run in runs:
        busy = "busy" if measured.place_of(run).is_busy else ""
        for result in run["document"]["results"]:
            rate = f"{result['bytes'] / result['seconds'] / 1e9:.3f}" if result["ranks"] > 1 else ""
            yield busy, [result["operation"], result["transport"], result["ranks"], result["bytes"], f"{1e6 * result['seconds']:.2f}", rate,
                         result.get("wrong", "")]


def warnings(study, document):
    if document["missing"]:
        yield f"{len(document['missing'])} of {len(study.runs)} runs have no result: {', '.join(document['missing'])}"
    busy = [run for run in document["runs"] if measured.place_of(run).is_busy]
    if busy:
        most = max(facts_of(run["document"])[name] for run in busy for name in ("load_average", "load_average_at_end")
                   if name in facts_of(run["document"]))
        yield Markup(f'The machine was busy: in {len(busy)} of {len(document["runs"])} runs other processes took a part of it (load up to '
                     f'{most:.1f}). Their rows are <span class="hatch">&nbsp;hatched&nbsp;</span>, their points open. Measure again on an idle '
                     'machine before you trust them.')
    shared = sorted({run["ranks"] for run in document["runs"] if measured.place_of(run).bound < 1})
    if shared:
        yield f"On {', '.join(map(str, shared))} ranks there are fewer cores than ranks, so they cannot be as fast as on more cores."


def write_report(study, document, folder):
    """Writes report.html and, beside it, the pictures as files. Returns the path."""
    series = measured.all_series(study, measured.figures_of(study, document))
    parts = [f"<h1>{html.escape(study.name)}: {study.scaling} scaling on {', '.join(map(str, study.ranks))} ranks</h1>\n",
             f"<p>{html.escape(summary(document))}</p>\n"]
    parts += [f'<p class="warning">{cell(text)}</p>\n' for text in warnings(study, document)]
    for title, data in drawn(study, document, series).items():
        (folder / f"{title.lower().replace(' ', '-')}.png").write_bytes(data)
        image = base64.b64encode(data).decode("ascii")
        caption = CAPTIONS[title] + (SHIFTED if title in ("Efficiency", "Time", "Waiting", "Communication volume") else "")
        parts.append(f'<h2>{title}</h2>\n<figure><img alt="{title}" src="data:image/png;base64,{image}">'
                     f"<figcaption>{caption}</figcaption></figure>\n")
    if series:
        parts.append("<h2>Figures</h2>\n" + table(*without_empty(FIGURES, figure_rows(study, series)), "ways"))
    collectives = [run for run in document["runs"] if run["kind"] == "collectives"]
    if collectives:
        parts.append("<h2>Figures of collectives</h2>\n<p>bytes: of the whole operand, rounded up to whole elements and, where ranks have "
                     "parts, to equal parts. GB/s: these bytes over the time.</p>\n"
                     + table(["operation", "transport", "ranks", "bytes", "us", "GB/s", "wrong"], collective_rows(collectives)))
    parts.append("<h2>Machine</h2>\n" + table(["what", "value"], environments(document), "text"))
    parts.append(f"<h2>Study</h2>\n<pre>{html.escape(study.text)}</pre>\n")
    path = folder / "report.html"
    path.write_text(page_of(study.name, parts), encoding="utf-8")
    return path
