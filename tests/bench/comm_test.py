# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops-bench comm` and `messages`: every operation by every transport on data that the ranks verify, the figures by their
definitions, and that a transport that loses a number is found out. Times are not judged. comm_test.py LAUNCH PROGRAM
GRIDLOPS_TEST_BROKEN_MPI is the library of broken_mpi.cpp."""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

PARTS = ["all-gather", "all-gather-v", "reduce-scatter", "reduce-scatter-v", "gather", "scatter", "all-to-all", "all-to-all-v"]
ROOTED = ["broadcast", "reduce", "gather", "scatter"]
ONE_SIDED = ["get", "put", "accumulate"]
OPERATIONS = ["all-reduce", "broadcast", "reduce", "send-receive", *PARTS, *ONE_SIDED]
REDUCED = ["all-reduce", "reduce", "reduce-scatter", "reduce-scatter-v", "accumulate"]
IN_PLACE_ONLY, BOTH_PLACES = ["all-reduce", "broadcast"], PARTS[:6]
SIZES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16, "i32": 4, "i64": 8}


def document_of(suite, *options, ranks=4, environment=None, status=0):
    run = suite.run("comm", *options, "--json", "F.json", ranks=ranks, environment=environment, timeout=120)
    if not suite.succeeded(run, status):
        return run, {"results": [], "not_measured": []}
    document = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"), parse_constant=program.not_json)
    return run, {"not_measured": [], **document}


def places_of(operation):
    return ["in"] if operation in IN_PLACE_ONLY else ["in", "out"] if operation in BOTH_PLACES else ["out"]


def check_figures(suite, result):
    ranks, operation = result["ranks"], result["operation"]
    bus = 2 * (ranks - 1) / ranks if operation == "all-reduce" else (ranks - 1) / ranks if operation in PARTS else 1
    suite.check(result["wrong"] == 0, "wrong", result)
    suite.check(result["bytes"] == result["count"] * SIZES[result["dtype"]], "size", result)
    suite.check(result["seconds_min"] <= result["seconds"] == statistics.median(result["samples"]) <= result["seconds_max"]
                and len(result["samples"]) == result["repetitions"] > 0, "samples", result)
    suite.check(abs(result["algbw_gbs"] * 1e9 * result["seconds"] - result["bytes"]) <= 1e-9 * result["bytes"], "algbw", result)
    suite.check(abs(result["busbw_gbs"] - bus * result["algbw_gbs"]) <= 1e-9 * result["algbw_gbs"], "busbw", result)
    suite.check((result["root"] is None) == (operation not in ROOTED) and (result["reduction"] == "-") == (operation not in REDUCED),
                "root or reduction", result)
    # Everything reaches the other ranks once. Sums come back to them, and in a ring all ranks send.
    times = {"all-reduce": 2 * (ranks - 1), "send-receive": ranks, "gather": (ranks - 1) / ranks, "scatter": (ranks - 1) / ranks}
    if operation in ONE_SIDED:
        suite.check(result["bytes_sent"] is None, "the library counts what it does not send", result)
    elif not operation.endswith("-v"):
        suite.check(result["bytes_sent"] == times.get(operation, ranks - 1) * result["bytes"], "what was sent", result)


def check_table(suite):
    """Every operation by every transport: measured once, or said why not."""
    run, document = document_of(suite, "--operation", "all", "--bytes", "0,8,10000", "--transport", "mpi,chain,shared,one-sided,nccl",
                                "--reps", 2)
    lines = run.output.splitlines()
    suite.check([line[:1] for line in lines[:4]] == ["#"] * 4 and "4 ranks (0 … 3)" in run.output, "header", lines[:5])
    suite.check(lines[-1].startswith("# correct: ") and lines[-1].endswith("none wrong"), "verdict", lines[-1])
    found = sorted((result["operation"], result["transport"], result["place"], result["bytes"]) for result in document["results"])
    # What the four ranks cannot share equally is rounded up, and shown as it is.
    wanted = [(operation, transport, place, size)
              for operation in OPERATIONS for place in places_of(operation)
              for transport in {"get": ["mpi", "shared", "one-sided"], "put": ["mpi"], "accumulate": ["mpi"]}.get(operation, ["mpi", "chain"])
              for size in ([0, 32, 10016] if operation in PARTS and not operation.endswith("-v") else [0, 8, 10000])]
    suite.check(found == sorted(wanted), "rows", set(found) ^ set(wanted))
    for result in document["results"]:
        check_figures(suite, result)
    instead = {(row.get("operation"), row["transport"]): row["instead"] for row in document["not_measured"]}
    suite.check(instead.get((None, "nccl"), "").startswith("not here: ") and "nccl" in run.output, "nccl on hosts", instead)
    for operation in OPERATIONS[:-3]:
        suite.check(instead.get((operation, "shared")) == instead.get((operation, "one-sided")) == "as mpi", "the same code", instead)
    for operation in ["put", "accumulate"]:
        suite.check(instead.get((operation, "shared")) == "none of its own", "one-sided", instead)
    suite.check(document["environment"]["placement"][0]["ranks"] == [0, 1, 2, 3]
                and {"OMPI_MCA_osc": "^ucx", "OMPI_MCA_smsc": "^cma"}.items() <= document["environment"]["settings"].items(),
                "environment", document["environment"])


def check_choices(suite):
    """Types, reductions, roots, places, and lines of the grid."""
    for options, ranks, over in [(["--over", "row,column", "--grid", "2x3", "--dtype", "f32,c128", "--root", 1], 6, {"row": 3, "column": 2}),
                                 (["--dtype", "i32,i64,f64", "--reduction", "prod", "--root", 2, "--place", "in"], 3, {"world": 3}),
                                 (["--grid", "1x2", "--dtype", "f32", "--reduction", "max", "--warm-up", 0], 3, {"world": 2})]:
        _, document = document_of(suite, "--operation", "all", "--bytes", "1K..4K*4", "--reps", 1, *options, ranks=ranks)
        results = document["results"]
        suite.check({result["over"]: result["ranks"] for result in results} == over, "ranks", options)
        suite.check({result["root"] for result in results} == {None, options[options.index("--root") + 1] if "--root" in options else 0},
                    "roots", options)
        suite.check({1024, 4096} <= {result["bytes"] for result in results} <= {1024, 1032, 1056, 1028, 1040, 4096, 4104, 4128, 4112},
                    "sizes", {result["bytes"] for result in results})
        suite.check(all(result["wrong"] == 0 for result in results) and results, "wrong", options)
        if "--place" in options:
            suite.check({result["operation"] for result in results} == {*IN_PLACE_ONLY, *BOTH_PLACES}, "places", results)


def check_chain(suite):
    _, document = document_of(suite, "--operation", "broadcast", "--bytes", "1M,16M", "--transport", "chain", "--reps", 1, "--warm-up", 1, ranks=3)
    suite.check([result["carrier"] for result in document["results"]] == ["MPI, non-blocking", "chain"], "chain", document["results"])
    for ranks, long in ((2, "messages"), (5, "MPI")):
        _, document = document_of(suite, "--operation", "reduce,reduce-scatter,gather", "--place", "out", "--bytes", "40,1M", "--transport",
                                  "mpi,chain", "--reps", 1, "--warm-up", 1, ranks=ranks)
        found = {(result["operation"], result["transport"], result["bytes"] > 64 << 10): result["carrier"] for result in document["results"]}
        polled = {"messages": "messages, polled", "MPI": "MPI, non-blocking"}
        wanted = {("reduce", "mpi", True): "MPI", ("reduce-scatter", "mpi", True): long, ("gather", "mpi", True): "messages"}
        wanted.update({(operation, "mpi", False): {"gather": "messages"}.get(operation, "MPI") for operation, _, _ in list(wanted)})
        wanted.update({(operation, "chain", size): polled[wanted[operation, "mpi", size]] for operation, _, size in list(wanted)})
        wanted["reduce", "chain", True] = polled[long]
        suite.check(found == wanted, "carriers", found)
    _, document = document_of(suite, "--operation", "get", "--bytes", "8", "--transport", "one-sided,mpi", "--reps", 1, ranks=2,
                              environment={"OMPI_MCA_osc": "sm"})
    suite.check(any("refuses" in row["instead"] for row in document["not_measured"]) and len(document["results"]) == 1,
                "a transport that MPI refuses", document["not_measured"])
    run, _ = document_of(suite, "--operation", "put", "--bytes", "8", "--transport", "shared", "--reps", 1, ranks=2, status=1)
    suite.check(run.output.endswith("# nothing measured\n"), "nothing measured", run.output)


def check_broken(suite):
    """A transport that loses the last of many numbers. Without a limit for waits, operations make the calls that they are named after."""
    def broken(function, *words):
        return suite.run(*words, ranks=2, environment={"GRIDLOPS_TEST_BROKEN": function, "GRIDLOPS_TIMEOUT": "0"},
                         on_each_rank=("env", f"LD_PRELOAD={os.environ['GRIDLOPS_TEST_BROKEN_MPI']}", "ASAN_OPTIONS=verify_asan_link_order=0"))

    for function, operation in [("MPI_Bcast", "broadcast"), ("MPI_Allreduce", "all-reduce"), ("MPI_Allgatherv", "all-gather"),
                                ("MPI_Isend", "all-to-all"), ("MPI_Get", "get")]:
        run = broken(function, "comm", "--operation", f"{operation},reduce", "--bytes", 4096, "--reps", 1)
        verdict = run.output.splitlines()[-1:]
        suite.check(run.status == 1 and verdict and verdict[0].startswith("# WRONG: ") and f"of {operation} by mpi" in verdict[0],
                    "a broken", function, "gives", run.status, verdict, run.errors[-500:])
    run = broken("MPI_Get", "messages", "--bytes", 4096, "--messages", 1, "--reps", 1, "--up-to", "1K")
    suite.check(run.status == 1 and "# WRONG: " in run.output and "by get, fence" in run.output, "broken messages", run.status, run.output[-300:])
    # One rank is refused what the other has: both go on without it.
    run = broken("MPI_Win_attach", "messages", "--bytes", 64, "--messages", 1, "--reps", 1, "--up-to", "1K")
    refused = [line for line in run.output.splitlines() if ", attached" in line and "not here: rank" in line]
    suite.check(run.status == 0 and len(refused) == 9, "a refusal on one rank", run.status, run.output[-3000:], run.errors[-300:])
    few = ["--rows", 400, "--cols", 300, "--rhs", 4, "--algorithm", "stationary-a", "--grid", "2x1", "--transport", "mpi", "--limit-order",
           64, "--limit-mib", 8, "--reps", 1]
    for words in (["matmul", "--both", *few], ["solve", *few]):
        for function, status in (("MPI_Allgatherv", 1), ("NaN on 0", 1), ("NaN on 1", 1), ("", 0)):
            run = broken(function, *words)
            suite.check(run.status == status and ("# WRONG: " in run.output) == (status == 1), "a broken", words[0], run.status,
                        run.output[-500:], run.errors[-500:])


def check_refusals(suite):
    for options, word in [(["--dtype", "c64", "--reduction", "max"], "c64"), (["--root", 1, "--operation", "broadcast"], "--root 1"), (["--root", 2**32], "2147483647"),
                          (["--grid", "2x2"], "2x2"), (["--operation", "all-gathr"], "all-gather"), (["--bytes", "1Q"], "1Q"),
                          (["--bytes", "9999999999G"], "9999999999G"), (["--bytes", "1..8*1"], "'1'"),
                          (["--bytes", 2**63 - 1, "--operation", "all-gather"], "too large"),
                          (["--bytes", 2**33, "--operation", "put", "--dtype", "f32"], "one call of MPI"),
                          (["--bytes", 2**33 + 8, "--operation", "broadcast,get", "--dtype", "c64"], "get of 8589934600 bytes of c64")]:
        run = suite.run("comm", *([] if "--bytes" in options else ["--bytes", 8]), *options)
        suite.check(run.status == 2 and len(run.error_lines) == 1 and word in run.errors, "refusal of", options, run.errors)


def check_messages(suite):
    """Sizes, numbers and ways of messages, their model, and crossovers that follow from the times."""
    run = suite.run("messages", "--bytes", "8,4K", "--messages", "1,3", "--reps", 2, "--up-to", "64K", "--json", "F.json", ranks=3)
    if not suite.succeeded(run):
        return
    document = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"), parse_constant=program.not_json)
    ways = ["send", "copy", *(f"{access}, {epoch}{kind}" for access in ["put", "get", "accumulate"] for epoch in ["fence", "lock", "flush"]
                              for kind in ["", ", attached"])]
    found = [(result["way"], result["messages"], result["bytes"]) for result in document["results"]]
    suite.check(found == [(way, messages, size) for way in ways for messages in (1, 3) for size in (8, 4096)], "rows", found)
    suite.check(run.output.splitlines()[-1].endswith("none wrong") and not any(result["wrong"] for result in document["results"]), "verdict")
    for result in document["results"]:
        moved = result["bytes"] * result["messages"]
        suite.check(abs(result["gbs"] * 1e9 * result["seconds"] - moved) <= 1e-9 * moved, "rate", result)
    suite.check([fit["way"] for fit in document["fits"]] == ways, "fits", document["fits"])
    for fit in document["fits"]:
        terms = [fit["latency_seconds"], fit["gap_seconds"], fit["gap_seconds_per_byte"]]
        suite.check(min(terms) >= 0 < max(terms) and fit["overhead_seconds"] > 0, "model", fit)
        errors = [abs((terms[0] + result["messages"] * (terms[1] + result["bytes"] * terms[2])) / result["seconds"] - 1)
                  for result in document["results"] if result["way"] == fit["way"]]
        suite.check(abs(statistics.median(errors) - fit["misfit"]) <= 1e-9, "misfit", fit, errors)
    contests = {("broadcast", "chain"), *(("from the next rank", way) for way in ("get", "one-sided", "shared")),
                *((operation, "accumulate") for operation in ("reduce", "reduce-scatter", "all-reduce"))}
    suite.check({(row["operation"], row["way"]) for row in document["crossovers"]} == contests, "contests", document["crossovers"])
    for row in document["crossovers"]:
        times = [one for one in document["contests"] if (one["operation"], one["way"]) == (row["operation"], row["way"])]
        won = [1.1 * min(one["samples"]) <= min(one["samples_instead_of"])
               and statistics.median(one["samples"]) < statistics.median(one["samples_instead_of"]) for one in times]
        sizes = [one["bytes"] for one in times]
        lost = [k for k, is_won in enumerate(won) if not is_won]
        wanted = [sizes[0], sizes[-1]] if not lost else [sizes[lost[-1] + 1] if won[-1] else None, sizes[lost[0] - 1] if won[0] else None]
        suite.check([row["from_bytes"], row["to_bytes"]] == wanted and not any(one["wrong"] for one in times), "crossover", row, won)
    check_picture(suite)
    run = suite.run("messages", "--bytes", "64M", "--messages", 2, "--reps", 1, "--up-to", "1K", "--json", "F.json", ranks=2)
    if suite.succeeded(run):
        document = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))
        suite.check([row["way"] for row in document["not_measured"]] == ways and not document["results"] and document["contests"],
                    "too long", document["not_measured"])
        suite.check(run.output.endswith(f"# correct: {len(document['contests'])} results, none wrong\n"), "results", run.output[-100:])
    for words, ranks, word in [([], None, "two ranks"), (["--bytes", 12], 2, "12"), (["--messages", 0], 2, "not 0"), (["--up-to", "16G"], 2, "--up-to")]:
        run = suite.run("messages", *words, ranks=ranks)
        suite.check(run.status == 2 and len(run.error_lines) == 1 and word in run.errors, "refusal of", words, run.errors)


def check_picture(suite):
    """bench/message-roofline draws what is in F.json, where a Python has matplotlib."""
    root = Path(__file__).resolve().parents[2]
    if subprocess.run([root / "scripts/python", "matplotlib"], capture_output=True, check=False).returncode != 0:
        print("not tested: bench/message-roofline, which needs matplotlib")
        return
    for way, status in (("put, flush", 0), ("carrier pigeon", 2)):
        drawn = subprocess.run([root / "bench/message-roofline", "--output", "R.svg", "--way", "send", "--way", way, "F.json"],
                               cwd=suite.folder, check=False, capture_output=True, text=True, timeout=120)
        if suite.check(drawn.returncode == status, "message-roofline", drawn.stderr) and status == 0:
            suite.check("put, flush" in (suite.folder / "R.svg").read_text(encoding="utf-8"), "title")


def check_gpu(suite):
    run, document = document_of(suite, "--operation", "all", "--bytes", "8,4K", "--transport", "nccl,mpi,shared", "--device", "gpu", "--dtype",
                                "f32,c128", "--reps", 1, "--warm-up", 1)
    found = {(result["operation"], result["transport"]) for result in document["results"]}
    suite.check(found == {(operation, transport) for operation in OPERATIONS[:-3] for transport in ("nccl", "mpi-staged")}, "rows", found)
    suite.check(all(result["wrong"] == 0 for result in document["results"]), "wrong", document["results"])
    suite.check("The GPU is emulated: times on it mean nothing" in run.output or "emulated" not in str(document["environment"]),
                "times of the emulation", run.output)
    run = suite.run("messages", "--device", "gpu", "--bytes", "8,4K", "--messages", "2", "--reps", 1, ranks=3)
    suite.check(run.status == 0 and "nccl" in run.output and run.output.endswith("none wrong\n"), "messages by NCCL", run.output, run.errors)
    suite.check({row["instead"] for row in document["not_measured"] if row["transport"] == "nccl"} == {"none of its own"}
                and any(row["instead"].startswith("not here") for row in document["not_measured"] if row["transport"] == "shared"),
                "the rest", document["not_measured"])


def test(suite, _):
    if program.DEVICE == "gpu":
        check_gpu(suite)
        return
    check_table(suite)
    check_choices(suite)
    check_chain(suite)
    check_broken(suite)
    check_messages(suite)
    check_refusals(suite)


if __name__ == "__main__":
    program.main(test, __doc__, probe=("comm", "--bytes", 8, "--device", "gpu"))
