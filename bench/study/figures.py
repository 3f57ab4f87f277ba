# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of a study have found: one JSON file of all, and series of figures over the ranks."""
import json
import statistics
from dataclasses import dataclass

from study.plan import shape_of

SCHEMA = "gridlops.study/1"
ELEMENT_BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}


def gather(study, folder):
    """Writes results.json with what all runs that are done have written, and returns it."""
    runs, missing = [], []
    for run in study.runs:
        path = run.result(folder)
        if not path.exists():
            missing.append(run.name)
            continue
        runs.append({"name": run.name, "section": run.section, "kind": run.kind, "ranks": run.ranks, "grid": run.grid, "turn": run.turn,
                     "command": [run.program, *run.words], "document": json.loads(path.read_text(encoding="utf-8"))})
    document = {"schema": SCHEMA, "name": study.name, "scaling": study.scaling, "ranks": study.ranks, "missing": missing, "runs": runs}
    path = folder / "results.json"
    partial = folder / "results.json.tmp"
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return document


@dataclass(frozen=True)
class Figure:
    """One measured product, iteration or solve."""
    section: str
    work: str  # what is done: the panel of a picture
    way: str  # how it is done: the line in it
    form: str  # "2-D", "1-D rows", …
    ranks: int
    grid: tuple
    seconds: float
    share: float  # of the whole work, on each rank: what weak scaling keeps
    bytes_sent: float | None  # by a rank on average


def figures_of_bench(run):
    for result in run["document"]["results"]:
        solver = result.get("solver")
        size = f"{result['rows']} x {result['cols']}, {result['nrhs']} column{'' if result['nrhs'] == 1 else 's'}, {result['dtype']}"
        what = f"{solver}, an iteration" if solver else "A^H Y" if result["adjoint"] else "A X"
        flops = result["rows"] * result["cols"] * result["nrhs"]
        sent = result["bytes_sent"]
        yield Figure(run["section"], f"{what}: {size}", f"{result['algorithm']}, {result['transport']}", result["form"], run["ranks"],
                     tuple(result["grid"]), result.get("seconds_per_iteration", result["seconds"]), flops / run["ranks"],
                     None if sent is None else sent / run["ranks"])


def figures_of_programs(study, runs):
    """The medians over repeated runs."""
    groups = {}
    for run in runs:
        groups.setdefault((run["section"], run["ranks"], tuple(run["grid"]), run["document"]["transport"]), []).append(run)
    for (section, ranks, grid, transport), turns in groups.items():
        report = turns[0]["document"]
        p, q = grid
        form = "2-D" if p > 1 and q > 1 else "1-D rows" if p > 1 else "1-D cols" if q > 1 else "whole"
        command = turns[0]["command"][1]
        yield Figure(section, f"gridlops {command}", f"{report.get('algorithm', command)}, {transport}", form, ranks, grid,
                     statistics.median(turn["document"]["seconds"]["compute"] for turn in turns),
                     1.0 if study.scaling == "weak" else 1.0 / ranks, statistics.mean(report["bytes_sent"]))


def figures_of(study, document):
    """All figures but those of collectives. In weak scaling sizes differ with the ranks: the work is called by the sizes
    on the fewest."""
    bench = [run for run in document["runs"] if run["kind"] in ("products", "solvers")]
    found = [figure for run in bench for figure in figures_of_bench(run)]
    found += figures_of_programs(study, [run for run in document["runs"] if run["kind"] == "programs"])
    return found


@dataclass
class Series:
    """Figures of one way to do one work, by growing numbers of ranks."""
    work: str
    label: str
    points: list

    def efficiencies(self):
        """Of each point: the work of a rank in a second over that on the fewest ranks. It is T₁/(P T_P) in strong, T₁/T_P in weak
        scaling."""
        first = self.points[0].share / self.points[0].seconds
        return [point.share / point.seconds / first for point in self.points]


def all_series(study, figures):
    """A series for each work, way and rule by which its grids are made. Where sizes grow they are told by their order."""
    series = []
    for section, rules in study.grids.items():
        mine = [figure for figure in figures if figure.section == section]
        orders = {}  # of a work among those of the same number of ranks: the same place in weak scaling is the same series
        for figure in mine:
            works = orders.setdefault(figure.ranks, [])
            if figure.work not in works:
                works.append(figure.work)
        for place in range(max(map(len, orders.values()), default=0)):
            of_place = [figure for figure in mine if orders[figure.ranks].index(figure.work) == place]
            for way in dict.fromkeys(figure.way for figure in of_place):
                for rule in rules:
                    points = [figure for figure in of_place if figure.way == way and figure.grid == shape_of(rule, figure.ranks)]
                    if points:
                        points.sort(key=lambda figure: figure.ranks)
                        series.append(Series(points[0].work, f"{way}, {rule} ({points[-1].form})", points))
    return series


def collectives_of(document):
    """What was measured of collectives."""
    return [result for run in document["runs"] if run["kind"] == "collectives" for result in run["document"]["results"]]


def products_of(document):
    """The results of products and solvers on the most ranks that have any, with their roof."""
    runs = [run for run in document["runs"] if run["kind"] in ("products", "solvers")]
    most = max((run["ranks"] for run in runs), default=0)
    return most, [result for run in runs if run["ranks"] == most for result in run["document"]["results"]]
