# SPDX-License-Identifier: BSD-3-Clause
"""Gathers the results of a study in one JSON file, and arranges figures in series over the ranks."""
import json
import math
import statistics
from dataclasses import dataclass

from study.fields import StudyError
from study.plan import shape_of

SCHEMA = "gridlops.study/1"


def gather(study, folder):
    """Writes the results of all finished runs to results.json, and returns them."""
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
class Place:
    """What the machine left to a run."""
    cores: float  # for its ranks; infinity if they set no bound
    ranks: int
    is_busy: bool  # others took a core from a rank, or more than a quarter of the machine

    @property
    def bound(self):
        """The most work per second, relative to a core for each rank."""
        return min(1.0, self.cores / self.ranks)


def place_of(run):
    """The place of a run of gridlops-bench, or of a program, whose reports do not have the load."""
    document, ranks = run["document"], run["ranks"]
    facts, machine = document.get("environment", {}), document.get("machine", {})
    threads = facts.get("threads") or machine.get("threads") or 1
    on_gpus = any(result.get("device") == "gpu" for result in [document, *document.get("results", [])])
    if "placement" in facts:
        cores = sum(map(len, cores_by_host(facts).values()))
    else:
        cores = facts.get("cores") or machine.get("cores", math.inf) * len(machine.get("hosts", [1]))
    return Place(math.inf if on_gpus else cores / threads, ranks, has_others(facts, ranks, threads))


def has_others(facts, ranks, threads):
    """Whether others had more of the first host than they can have without slowing a run down. The runs of a study come in
    the order of their ranks, so no earlier one has left more load than this one makes."""
    first = {place["host"] for place in facts.get("placement", []) if 0 in place["ranks"]}
    here = sum(len(place["ranks"]) for place in facts.get("placement", []) if place["host"] in first) or ranks
    others = max(facts.get("load_average", 0), facts.get("load_average_at_end", 0)) - threads * here
    cores = facts.get("cores", math.inf)
    return others > max(0.7, min(cores / 4, cores - threads * here))


def cores_by_host(facts):
    """The numbers of the cores on which ranks may run, for each host."""
    found = {}
    for place in facts["placement"]:
        numbers = found.setdefault(place["host"], set())
        for part in place["cores"].split(",") if place["cores"] != "unknown" else [f"0-{facts['cores'] - 1}"]:
            first, _, last = part.partition("-")
            numbers |= set(range(int(first), int(last or first) + 1))
    return found


@dataclass(frozen=True, eq=False)
class Figure:
    """One measured product, iteration or solve."""
    section: str
    work: str  # the operation and its sizes: a panel of a picture
    way: str  # the options that the study asks for: a line in the panel
    ran: str  # what the program used; for "auto" it may differ with the number of ranks
    form: str  # "2-D", "1-D rows", …
    ranks: int
    grid: tuple
    samples: tuple  # seconds, of each repetition
    share: float  # the work of each rank, which weak scaling keeps
    bytes_sent: float | None  # by a rank on average
    waiting: float | None  # the share of the time in communication and for slower ranks, mean of the ranks
    place: "Place"
    result: dict | None = None  # from gridlops-bench, with the limits

    @property
    def seconds(self):
        return statistics.median(self.samples)

    @property
    def rates(self):
        """A rank's work per second: typical, least, most."""
        return tuple(self.share / seconds for seconds in (self.seconds, max(self.samples), min(self.samples)))


def figures_of_bench(run):
    for result in run["document"]["results"]:
        if "asked" not in result:
            raise StudyError(f"results/{run['name']}.json does not say what was asked for: it is of an older gridlops-bench; "
                             "remove it, or run the study with --anew")
        solver, asked = result.get("solver"), result["asked"]
        size = f"{result['rows']} x {result['cols']}, {result['nrhs']} column{'' if result['nrhs'] == 1 else 's'}, {result['dtype']}"
        what = f"{solver}, an iteration" if solver else "A^H Y" if result["adjoint"] else "A X"
        way = [asked["algorithm"], *([] if asked["storage"] == "auto" else [asked["storage"]]), asked["transport"]]
        flops = result["rows"] * result["cols"] * result["nrhs"]
        sent = result["bytes_sent"]
        yield Figure(run["section"], f"{what}: {size}", ", ".join(way), f"{result['algorithm']}, {result['storage']}, {result['transport']}",
                     result["form"], run["ranks"], tuple(result["grid"]), tuple(result["samples"]), flops / run["ranks"],
                     None if sent is None else sent / run["ranks"], result.get("waiting"), place_of(run), result)


def figures_of_programs(study, runs):
    """Makes one figure of all repetitions of a run."""
    groups = {}
    for run in runs:
        groups.setdefault((run["section"], run["ranks"], tuple(run["grid"]), asked_of(run, "--transport")), []).append(run)
    for (section, ranks, grid, transport), turns in groups.items():
        report = turns[0]["document"]
        p, q = grid
        form = "2-D" if p > 1 and q > 1 else "1-D rows" if p > 1 else "1-D cols" if q > 1 else "whole"
        command = turns[0]["command"][1]
        algorithm = asked_of(turns[0], "--algorithm")
        ran = dict.fromkeys(f"{turn['document'].get('algorithm', command)}, {turn['document']['transport']}" for turn in turns)
        yield Figure(section, f"gridlops {command}", f"{command if algorithm is None else algorithm}, {transport}", "; ".join(ran), form, ranks,
                     grid, tuple(turn["document"]["seconds"]["compute"] for turn in turns),
                     1.0 if study.scaling == "weak" else 1.0 / ranks, statistics.mean(report["bytes_sent"]), waiting_of(report),
                     place_of(turns[0]))


def waiting_of(report):
    waited = report.get("seconds_waiting")
    return statistics.mean(waited) / report["seconds"]["compute"] if waited else None


def asked_of(run, option):
    """The value of an option on a run's command line; None if the option is not there."""
    words = run["command"]
    return words[words.index(option) + 1] if option in words else None


def figures_of(study, document):
    """All figures except those of collectives. In weak scaling sizes grow with the ranks; the sizes on the fewest ranks
    name the work."""
    bench = [run for run in document["runs"] if run["kind"] in ("products", "solvers")]
    found = [figure for run in bench for figure in figures_of_bench(run)]
    found += figures_of_programs(study, [run for run in document["runs"] if run["kind"] == "programs"])
    return found


@dataclass
class Series:
    """Figures of one work done in one way, in the order of the numbers of ranks."""
    work: str
    label: str  # all series of this way share it, and have one colour
    points: list
    base: Figure  # of this work and way on the fewest ranks; of this rule if it has a grid of that many

    def efficiencies(self):
        """For each point, a rank's work per second relative to the base: typical, least and most. It is T₁/(P T_P) in
        strong scaling, and T₁/T_P in weak scaling."""
        return [tuple(rate / self.base.rates[0] for rate in point.rates) for point in self.points]


def all_series(study, figures):
    """A series for each work, way and rule of the grids. Where sizes grow, works at the same place in the order belong
    together."""
    series = []
    for section, rules in study.grids.items():
        mine = [figure for figure in figures if figure.section == section]
        orders = {}  # the works of each number of ranks; in weak scaling, the same place means the same series
        for figure in mine:
            works = orders.setdefault(figure.ranks, [])
            if figure.work not in works:
                works.append(figure.work)
        for place in range(max(map(len, orders.values()), default=0)):
            of_place = sorted((figure for figure in mine if orders[figure.ranks].index(figure.work) == place), key=lambda figure: figure.ranks)
            for way in dict.fromkeys(figure.way for figure in of_place):
                of_way = [figure for figure in of_place if figure.way == way]
                for rule in rules:
                    points = [figure for figure in of_way if figure.grid == shape_of(rule, figure.ranks)]
                    if points:
                        base = points[0] if points[0].ranks == of_way[0].ranks else of_way[0]
                        series.append(Series(of_place[0].work, f"{way}, {rule}", points, base))
    tell_apart(series)
    return series


def tell_apart(series):
    """Adds the section to the labels if two sections do the same work in the same way, with different options."""
    sections = {}
    for one in series:
        sections.setdefault((one.work, one.label), set()).add(one.points[0].section)
    shared = {label for (_, label), found in sections.items() if len(found) > 1}
    for one in series:
        if one.label in shared:
            one.label += f", {one.points[0].section}"


def collectives_of(document):
    """The results of collectives."""
    return [result for run in document["runs"] if run["kind"] == "collectives" for result in run["document"]["results"]]


def against(study, one):
    """Names the base of a series if it is not on the fewest ranks of the study."""
    return "" if one.base.ranks == study.ranks[0] else f" of {one.base.ranks} ranks"
