# SPDX-License-Identifier: BSD-3-Clause
"""Checks what the programs make of GRIDLOPS_TRACE. trace_test.py LAUNCH PROGRAM"""
import collections
import json

import numpy as np

import program

RANKS = 4
PANEL = 16
ROWS, COLS, RHS = 180, 130, 40
# What an event of each phase must have (Trace Event Format, by Google).
KEYS = {"M": {"name", "args"}, "X": {"name", "cat", "ts", "dur", "args"}, "i": {"name", "cat", "ts", "s"},
        "b": {"name", "cat", "ts", "id"}, "e": {"name", "cat", "ts", "id"}}


def make_problem(suite):
    rng = np.random.default_rng(1)
    A, B = program.random_matrix(rng, (ROWS, COLS), "f64"), program.random_matrix(rng, (ROWS, RHS), "f64")
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)


def solve(suite, trace, *more, ranks=RANKS, output="X.npy"):
    return suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", output, "--algorithm", "summa", "--panel", PANEL,
                     "--iterations", 5, "--quiet", *more, ranks=ranks, environment={} if trace is None else {"GRIDLOPS_TRACE": trace})


def read_trace(suite, name, ranks):
    """The events of a file, after checking its form."""
    document = json.loads((suite.folder / name).read_text(encoding="utf-8"), parse_constant=program.not_json)
    events = document["traceEvents"]
    wrong = [event for event in events if not KEYS.get(event.get("ph"), {"unknown phase"}) <= event.keys()
             or not {"pid", "tid"} <= event.keys() or event.get("ts", 0) < 0 or event.get("dur", 0) < 0]
    suite.check(not wrong, "events lack something:", wrong[:3])
    suite.check({event["pid"] for event in events} == set(range(ranks)), "the processes are not the ranks")
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    suite.check(names == {rank: f"rank {rank}" for rank in range(ranks)}, "names of processes:", names)
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "Xi":
            tracks[event["pid"], event["tid"]].append(event)
    for track, of_track in tracks.items():
        check_track(suite, track, of_track)
    check_requests(suite, events)
    return events


def check_track(suite, track, events):
    """That the events of a track come in order, and that those with a duration nest."""
    times = [event["ts"] for event in events]
    suite.check(times == sorted(times), track, "is not in order")
    open_ends = []
    for event in events:
        end = event["ts"] + event.get("dur", 0)
        while open_ends and open_ends[-1] <= event["ts"]:
            open_ends.pop()
        # Times are numbers of nanoseconds in microseconds, which binary numbers hold to rounding.
        if open_ends and not suite.check(end <= open_ends[-1] + 1e-6, track, "does not nest:", event):
            return
        open_ends.append(end)


def check_requests(suite, events):
    """That each asynchronous event begins once, and then ends once."""
    begun = {}
    for event in events:
        if event["ph"] == "b":
            suite.check(event["id"] not in begun, "begins twice:", event)
            begun[event["id"]] = event
        if event["ph"] == "e":
            begin = begun.pop(event["id"], None)
            suite.check(begin is not None and begin["ts"] <= event["ts"]
                        and all(begin[key] == event[key] for key in ("name", "cat", "pid")), "ends wrongly:", event)
    suite.check(not begun, "never end:", list(begun.values())[:3])


def intervals(events, rank, name, phases):
    """(begin, end) of what this rank does under this name."""
    if phases == "X":
        return [(event["ts"], event["ts"] + event["dur"]) for event in events
                if event["ph"] == "X" and event["pid"] == rank and event["name"] == name]
    begins = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    return [(begins[event["id"]], event["ts"]) for event in events
            if event["ph"] == "e" and event["pid"] == rank and event["name"] == name]


def check_streams(suite, events):
    """Each stream of a GPU has a track: one with all products, one with communication."""
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    for rank in range(RANKS):
        names = [name for (pid, _), name in sorted(tracks.items()) if pid == rank]
        suite.check(names[0] == "host" and [name.split(": ")[1] for name in names[1:]] == ["products", "communication"], "tracks", names)
        on_track = [[event["name"] for event in events if event["ph"] == "X" and event["pid"] == rank and event["tid"] == tid]
                    for tid in range(3)]
        suite.check(set(on_track[1]) == {"gemm"} and len(on_track[1]) == on_track[0].count("local product"), "products of streams",
                    collections.Counter(on_track[1]), on_track[0].count("local product"))
        suite.check("broadcast" in on_track[2], "communication of streams", collections.Counter(on_track[2]))


def check_timeline(suite):
    run = solve(suite, "chrome:trace.json", "--report", "R.json")
    suite.succeeded(run, 3)
    events = read_trace(suite, "trace.json", RANKS)
    names = {event["name"] for event in events if event["ph"] == "X"}
    wanted = {"all", "cgls", "iteration", "apply", "apply_adjoint", "panel", "local product", "all_reduce", "broadcast", "reduce",
              "wait", "read file", "write file"}
    suite.check(wanted <= names, "the trace lacks", wanted - names)
    if program.DEVICE == "gpu":
        check_streams(suite, events)
    for rank in range(RANKS):
        suite.check(len(intervals(events, rank, "iteration", "X")) == 5, "iterations of rank", rank)
        # Panels of the next step travel while those of this one are multiplied.
        products = intervals(events, rank, "local product", "X")
        travelling = intervals(events, rank, "broadcast", "be")
        beside = sum(begin < product_begin and product_end < end for begin, end in travelling
                     for product_begin, product_end in products)
        suite.check(beside > 5, "rank", rank, "has", beside, "products beside broadcasts, of", len(products), len(travelling))
    # The solver moves what the report says it did, between its start and its end.
    report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
    for key in ("bytes_sent", "bytes_received"):
        of_solver = [sum(event["args"].get(key, 0) for event in events
                         if event["ph"] == "X" and event["name"] == "cgls" and event["pid"] == rank) for rank in range(RANKS)]
        suite.check(of_solver == report[key], key, "of the trace", of_solver, "of the report", report[key])
    flops = sum(event["args"].get("flops", 0) for event in events if event["name"] == "cgls")
    # An adjoint product before the iterations, two in each, and two that verify.
    suite.check(flops == 2 * ROWS * COLS * RHS * (1 + 2 * 5 + 2), "flops", flops)


def table(output):
    """The rows of the table that a trace prints: {name: numbers}; of a tree, the last of each name."""
    lines = output.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("region, "))
    return {line[:36].strip(): line[36:].split() for line in lines[head + 2:]}


def check_tables(suite):
    plain, off = solve(suite, None), solve(suite, "off")
    suite.check(plain.output == off.output == "" and plain.warning_lines == off.warning_lines, "off prints", off.output, off.errors)
    for form in ("tree", "summary"):
        run = solve(suite, form)
        suite.succeeded(run, 3)
        rows = table(run.output)
        suite.check({"all", "cgls", "iteration", "local product"} <= rows.keys(), form, "has", rows.keys())
        suite.check(rows.get("iteration", [])[:2] == [str(RANKS), "5"], form, "has iterations", rows.get("iteration"))
        suite.check(all(float(row[2]) <= float(row[3]) <= float(row[4]) for row in rows.values()), form, "has seconds", rows)
    suite.check((suite.folder / "X.npy").read_bytes() != b"", "no X")
    alone = suite.run("lsm", "--nx", 8, "--nz", 8, "--samples", 60, "--iterations", 2, "--quiet", environment={"GRIDLOPS_TRACE": "tree"})
    suite.succeeded(alone)
    suite.check("apply_adjoint" in table(alone.output), "lsm has", alone.output)


def check_errors(suite):
    for trace in ("yes", "chrome", "chrome:", "Tree", "tree,summary"):
        for ranks in (None, RANKS):
            run = solve(suite, trace, ranks=ranks, output="none.npy")
            suite.check(run.status == 2 and len(run.error_lines) == 1 and "GRIDLOPS_TRACE" in run.errors, trace, run.status, run.errors)
    run = solve(suite, "chrome:no/folder/trace.json", output="none.npy")
    suite.check(run.status == 74 and "no/folder/trace.json" in run.errors, run.status, run.errors)
    suite.check(not (suite.folder / "none.npy").exists(), "solved in spite of an error")


def check_same_file(suite):
    """That a trace replaces neither what the run reads nor what it writes."""
    for name, target in (("link.npy", "A.npy"), ("here", ".")):
        (suite.folder / name).symlink_to(target)
    before = {name: (suite.folder / name).read_bytes() for name in ("A.npy", "B.npy")}
    inputs = [(["--dry-run"], "A.npy", "--matrix A.npy"), ([], "link.npy", "--matrix A.npy"), ([], "here/B.npy", "--rhs B.npy")]
    outputs = [([], "./none.npy", "--output none.npy"), (["--report", "none.json"], "here/none.json", "--report none.json")]
    for number, (more, trace, mention) in enumerate(inputs + outputs):
        run = solve(suite, "chrome:" + trace, *more, ranks=RANKS if number % 2 == 0 else None, output="none.npy")
        suite.succeeded(run, 2)
        suite.check(len(run.error_lines) == 1 and "GRIDLOPS_TRACE " + trace in run.errors and mention in run.errors, trace, run.errors)
    run = suite.run("plan", "--matrix-size", "9x9", "--rhs", 1, "--json", "none.json", environment={"GRIDLOPS_TRACE": "chrome:none.json"})
    suite.succeeded(run, 2)
    suite.check("--json none.json and GRIDLOPS_TRACE none.json" in run.errors, "plan says", run.errors)
    suite.check(all((suite.folder / name).read_bytes() == content for name, content in before.items()), "an input was replaced")
    suite.check(not list(suite.folder.glob("none*")), "wrote", list(suite.folder.glob("none*")))


def test(suite, full):
    make_problem(suite)
    check_timeline(suite)
    check_tables(suite)
    check_errors(suite)
    check_same_file(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
