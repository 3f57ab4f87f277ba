# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops solve` with A on disks against NumPy, and against A in memory. disk_test.py LAUNCH PROGRAM"""
import json
import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import program

try:
    import h5py
except ImportError:
    h5py = None

ROWS, COLS, COLUMNS, DAMP = 2603, 1801, 3, 20.0
MARGIN = 1.08  # of what a rank takes, over what it may take: libraries, which count, take more or less
LEAST = {}  # memory of a rank in bytes, by what decides it


def run_in_memory(suite, *arguments, **how):
    """In memory near the least there is. What libraries take, which counts, differs between two runs by up to 3 %, so a run that is
    refused because its own take that much more gets what it asks for."""
    words = list(arguments)
    at = words.index("--memory") + 1 if "--memory" in words else None
    for _ in range(4):
        run = suite.run(*words, **how)
        refusal = re.search(r"--memory is [\d.]+ MiB, but a rank takes at least ([\d.]+) MiB", run.errors)
        if run.status != 2 or not refusal:
            break
        asked = float(refusal[1]) * 2**20
        suite.check(asked <= 1.03 * arguments[at], "takes more than it said:", run.errors)
        words[at] = int(1.005 * asked)
    return run


def solve(suite, scratch, *options, ranks=None, status=0, output="X.npy", matrix="A.npy", rhs="B.npy"):
    """On a machine whose cores are fast, so that disks decide, unless options name another."""
    run = run_in_memory(suite, "solve", "--matrix", suite.folder / matrix, "--rhs", suite.folder / rhs, "--output", suite.folder / output, "--damp", DAMP, "--tolerance", "1e-6",
                    "--report", suite.folder / "R.json", "--scratch", scratch, *([] if "--machine" in options else ["--machine", suite.folder / "fast.json"]), *options, ranks=ranks)
    suite.succeeded(run, status)
    return run


def report_of(suite):
    return json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))


def least_memory(suite, scratch, ranks, *options, matrix="A.npy", rhs="B.npy"):
    """What the program says that a rank takes at least: the most of three runs, and a little more."""
    key = (ranks, options, matrix)
    if key not in LEAST:
        least = 0
        for _ in range(3):
            run = suite.run("solve", "--matrix", suite.folder / matrix, "--rhs", suite.folder / rhs, "--output", suite.folder / "X.npy", "--damp", DAMP,
                            "--tolerance", "1e-6", "--machine", suite.folder / "fast.json", "--scratch", scratch, "--storage", "disk", "--memory", 1, *options, ranks=ranks)
            suite.succeeded(run, 2)
            found = re.search(r"--memory is 1 B, but a rank takes at least ([\d.]+) MiB with A on a disk", run.errors)
            suite.check(found, "nothing says what memory is the least:", run.errors)
            least = max(least, float(found[1]) if found else 1 << 20)
        LEAST[key] = int(1.01 * 2**20 * least)
    return LEAST[key]


def make(suite):
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((ROWS, COLS)), rng.standard_normal((ROWS, COLUMNS))
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    program.machine_file(suite, "fast.json", flops=1e15)
    return np.linalg.solve(A.T @ A + DAMP**2 * np.eye(COLS), A.T @ B)


def check_solution(suite, scratch, exact):
    """On any ranks, as in NumPy, with the bits of A in memory, and in the memory allowed."""
    for ranks, grid in ((None, "1x1"), (2, "1x2"), (4, "2x2")):
        memory = least_memory(suite, scratch, ranks)
        run = solve(suite, scratch, "--storage", "disk", "--memory", memory, "--grid", grid, ranks=ranks)
        X, report = (np.load(suite.folder / "X.npy"), report_of(suite)) if run.status == 0 else (exact, {})
        suite.close(X, exact, 1e-5 * np.abs(exact).max(), "the solution", grid)
        suite.check(report.get("storage") == "disk" and report["solver"] == "one-pass-cgls", "the report", report.get("storage"))
        figures = report.get("figures", {})
        suite.check(0 < figures.get("disk_bytes", 0) <= 1.1 * 8 * ROWS * COLS, "bytes on disks", figures)
        suite.check(figures.get("disk_bytes_read", 0) >= report["iterations"] * figures.get("disk_bytes", 0), "bytes read", figures)
        suite.check(max(report["memory_bytes"]["peak"]) <= MARGIN * memory, "takes", max(report["memory_bytes"]["peak"]), "of", memory)
        solve(suite, scratch, "--storage", "packed", "--one-pass", "on", "--algorithm", "stationary-a", "--grid", grid, ranks=ranks, output="packed.npy")
        suite.check((suite.folder / "packed.npy").read_bytes() == (suite.folder / "X.npy").read_bytes(), "other bits than in memory", grid)


def check_scaled_columns(suite, scratch):
    """Columns of very different lengths are scaled on disks, too: without that, iterations do not get far."""
    rng = np.random.default_rng(3)
    lengths = np.logspace(0, 6, 400)
    A = rng.standard_normal((9000, 400)) * lengths
    B = rng.standard_normal((9000, 2))
    np.save(suite.folder / "uneven.npy", A)
    np.save(suite.folder / "uneven_B.npy", B)
    exact = np.linalg.lstsq(np.vstack([A, DAMP * np.eye(400)]) / lengths, np.vstack([B, np.zeros((400, 2))]), rcond=None)[0]
    files = {"matrix": "uneven.npy", "rhs": "uneven_B.npy", "ranks": 2}
    scaled = ["--precondition", "column-norms", "--grid", "2x1"]
    memory = least_memory(suite, scratch, files["ranks"], *scaled, matrix=files["matrix"], rhs=files["rhs"])
    on_disk = ["--storage", "disk", "--memory", memory, "--iterations", 150]
    solve(suite, scratch, *on_disk, *scaled, **files)
    report = report_of(suite)
    suite.close(lengths[:, None] * np.load(suite.folder / "X.npy"), exact, 1e-4 * np.abs(exact).max(), "the solution with scaled columns")
    suite.check(report["figures"]["disk_bytes_read"] > report["figures"]["disk_bytes"] > 0, "read nothing from disks", report["figures"])
    suite.check(max(report["memory_bytes"]["peak"]) <= MARGIN * memory, "takes", max(report["memory_bytes"]["peak"]), "of", memory)
    solve(suite, scratch, *on_disk, "--grid", "2x1", status=3, **files)


def check_auto(suite, scratch):
    """A factor of rows from disks is expected to take as long as they do, also where nothing else needs their rate."""
    rng = np.random.default_rng(5)
    np.save(suite.folder / "tall.npy", rng.standard_normal((16000, 400)))
    np.save(suite.folder / "tall_B.npy", rng.standard_normal((16000, 2)))
    files = {"matrix": "tall.npy", "rhs": "tall_B.npy", "ranks": None}
    # In memory a factor would cost many iterations, and take no time.
    program.machine_file(suite, "factors.json", flops=1e12, read=1e15, copied=1e15)
    twice = ["--one-pass", "off", "--grid", "1x1"]
    memory = least_memory(suite, scratch, files["ranks"], *twice, matrix=files["matrix"], rhs=files["rhs"]) + 26 * 2**20  # for a factor, too
    run = solve(suite, scratch, "--storage", "disk", "--memory", memory, "--solver", "auto", "--iterations", 2, "--machine", suite.folder / "factors.json", *twice, **files)
    figures = report_of(suite)["figures"]
    suite.check("direct takes its place; from disks, " in run.output, run.output)
    # A once for the factor, and three times for the rest, at the rate of the disks.
    expected = 4 * figures["disk_bytes"] / figures["disk_rate"] if "disk_rate" in figures else 0
    suite.check(0 < 0.9 * expected <= figures["direct_seconds_predicted"] <= 1.5 * expected, figures)


def check_in_place(suite, scratch, exact):
    """A stays in its file where that has long rows or chunks, with the bits and the memory of tiles; nothing else is written."""
    A = np.load(suite.folder / "A.npy")
    np.save(suite.folder / "columns.npy", np.asfortranarray(A))
    files = [("A.npy", True), ("columns.npy", False)]
    if h5py and "built without HDF5" not in suite.run("info").output:
        with h5py.File(suite.folder / "A.h5", "w") as file:
            file["rows"] = A
            file.create_dataset("long", data=A, chunks=(400, (COLS + 1) // 2))
            file.create_dataset("short", data=A, chunks=(16, 16))
            file.create_dataset("packed", data=A, chunks=(400, 1024), compression="gzip")
        files += [("A.h5:/rows", True), ("A.h5:/long", True), ("A.h5:/short", False), ("A.h5:/packed", False)]
    temporary = os.path.join(scratch, "temporary")
    os.mkdir(temporary)
    for ranks, grid in ((None, "1x1"), (2, "1x2"), (2, "2x1")):
        memory = least_memory(suite, scratch, ranks, "--grid", grid)
        solve(suite, scratch, "--storage", "disk", "--memory", memory, "--grid", grid, ranks=ranks, output="tiles.npy")
        suite.check(report_of(suite)["figures"]["disk_in_place"] == 0, "a directory for tiles is not used")
        least = memory
        for matrix, stays in files:
            if grid != "1x1" and matrix not in ("A.npy", "A.h5:/long"):
                continue
            stays = stays and (grid != "1x2" or matrix.endswith("long"))  # rows are cut there
            memory = least if matrix == "A.npy" else least_memory(suite, scratch, ranks, "--grid", grid, matrix=matrix)
            if stays:
                memory = int(1.1 * memory)
            run = run_in_memory(suite, "solve", "--matrix", suite.folder / matrix, "--rhs", suite.folder / "B.npy", "--output", suite.folder / "X.npy", "--damp", DAMP,
                                "--tolerance", "1e-6", "--report", suite.folder / "R.json", "--machine", suite.folder / "fast.json", "--memory", memory,
                                "--storage", "disk", "--grid", grid, ranks=ranks, environment={"TMPDIR": temporary})
            suite.succeeded(run)
            report = report_of(suite)
            figures = report["figures"]
            suite.check(figures["disk_in_place"] == stays, "in place", matrix, grid, figures)
            suite.check(0 < report["iterations"] * figures["disk_bytes"] <= figures["disk_bytes_read"], "bytes read", figures)
            if stays:
                suite.check(max(report["memory_bytes"]["peak"]) <= MARGIN * memory, "takes", max(report["memory_bytes"]["peak"]), "of", memory, matrix)
            suite.check((suite.folder / "tiles.npy").read_bytes() == (suite.folder / "X.npy").read_bytes(), "other bits than by tiles", matrix, grid)
    memory = least  # on 2x1
    in_place = ["solve", "--matrix", suite.folder / "A.npy", "--rhs", suite.folder / "B.npy", "--output", suite.folder / "X.npy", "--damp", DAMP, "--tolerance", "1e-6"]
    run = run_in_memory(suite, *in_place, "--memory", int(1.1 * memory), "--grid", "2x1", "--report", suite.folder / "R.json", ranks=2)
    suite.succeeded(run)
    suite.check("A is read in its file" in run.output, "nothing says that A stays in its file:", run.output)
    suite.close(np.load(suite.folder / "X.npy"), exact, 1e-5 * np.abs(exact).max(), "the solution")
    run = run_in_memory(suite, *in_place, "--memory", memory, "--grid", "2x1", "--report", suite.folder / "R.json", ranks=2, environment={"TMPDIR": temporary})
    suite.succeeded(run)
    suite.check("A goes to disks" in run.output and report_of(suite)["figures"]["disk_in_place"] == 0, "tiles, which need less memory:", run.output)
    run = run_in_memory(suite, *in_place, "--memory", int(1.1 * memory), "--grid", "2x1", "--storage", "disk", "--dry-run", ranks=2)
    suite.check(re.search(r"in its file: [\d.]+ MiB, read \w+ an iteration; the disks deliver [\d.]+ \w+/s", run.output), "the plan:", run.output)
    shutil.rmtree(temporary)


def check_choice(suite, scratch, exact):
    """A goes to disks by itself where memory is short; then a restart goes on there; and a plan says so."""
    memory = least_memory(suite, scratch, 2)
    run = solve(suite, scratch, "--memory", memory, "--grid", "2x1", ranks=2)
    suite.check("A goes to disks" in run.output, "nothing says that A goes to disks:", run.output)
    suite.close(np.load(suite.folder / "X.npy"), exact, 1e-5 * np.abs(exact).max(), "the solution")
    undisturbed = (suite.folder / "X.npy").read_bytes()
    run = solve(suite, scratch, "--memory", "8G", "--grid", "2x1", ranks=2)
    suite.check("A goes to disks" not in run.output and report_of(suite)["storage"] != "disk", "A is on disks in vain")
    saved = suite.folder / "saved"
    solve(suite, scratch, "--memory", memory, "--grid", "2x1", "--iterations", 5, "--checkpoint", saved, ranks=2, status=3)
    solve(suite, scratch, "--memory", memory, "--restart", saved, ranks=2)
    suite.check((suite.folder / "X.npy").read_bytes() == undisturbed, "a restart has other bits")
    run = solve(suite, scratch, "--storage", "disk", "--memory", memory, "--grid", "2x1", "--dry-run", ranks=2)
    suite.check(re.search(r"on disks: [\d.]+ MiB, read once an iteration; the disks deliver [\d.]+ \w+/s", run.output), "the plan:", run.output)
    run = suite.run("plan", "--matrix-size", "1000000x200000", "--rhs", 64, "--ranks", "16", "--memory-per-rank", "8G", "--disk-rate", "500M", "--machine", suite.folder / "fast.json",
                    "--json", suite.folder / "P.json")
    suite.succeeded(run)
    (plan,) = json.loads((suite.folder / "P.json").read_text(encoding="utf-8"))["results"]
    read = plan["disk_bytes"] / (500 * 2**20)
    suite.check(plan["storage"] == "disk" and plan["one_pass"] and plan["memory_bytes"] <= 8 * 2**30, "the plan", plan)
    suite.check(abs(plan["disk_bytes"] + plan["memory_bytes"] - 1e6 * 2e5 * 8 / 16) < 3e9 and plan["seconds_per_iteration"] >= 0.99 * read, "the plan", plan)


def check_passes(suite, scratch, exact):
    """One pass where disks decide, and two where cores do, with the bits of two passes in memory."""
    memory, slow = least_memory(suite, scratch, 2), ["--machine", suite.folder / "slow.json"]
    on_disk = ["--storage", "disk", "--memory", memory, "--grid", "2x1"]
    program.machine_file(suite, "slow.json", flops=1e6)
    solve(suite, scratch, *on_disk, *slow, ranks=2)
    report = report_of(suite)
    suite.check(report["solver"] == "cgls" and report["figures"].get("disk_rate", 0) > 0, "two passes", report["solver"], report["figures"])
    suite.check(report["figures"]["disk_bytes_read"] >= 2 * report["iterations"] * report["figures"]["disk_bytes"], "bytes read", report["figures"])
    of_two_passes = (suite.folder / "X.npy").read_bytes()
    solve(suite, scratch, "--storage", "packed", "--one-pass", "off", "--algorithm", "stationary-a", "--grid", "2x1", ranks=2, output="packed.npy")
    suite.check((suite.folder / "packed.npy").read_bytes() == of_two_passes, "other bits than in memory")
    saved = suite.folder / "saved_two_passes"
    solve(suite, scratch, *on_disk, *slow, "--iterations", 5, "--checkpoint", saved, ranks=2, status=3)
    solve(suite, scratch, *on_disk, "--restart", saved, ranks=2)
    suite.check((suite.folder / "X.npy").read_bytes() == of_two_passes, "a restart does not keep two passes")
    run = solve(suite, scratch, *on_disk, *slow, "--dry-run", ranks=2)
    suite.check("read twice an iteration" in run.output and "cores decide" in run.output, "the plan:", run.output)
    run = solve(suite, scratch, *on_disk, *slow, "--one-pass", "on", "--dry-run", ranks=2)
    suite.check("with --one-pass off an iteration would take" in run.output, "the plan:", run.output)
    plan = ["plan", "--matrix-size", "1000000x200000", "--rhs", 64, "--ranks", "16", "--memory-per-rank", "8G", "--disk-rate", "500M", "--json", suite.folder / "P.json"]
    for machine, one_pass in (("fast.json", True), ("slow.json", False)):
        suite.succeeded(suite.run(*plan, "--machine", suite.folder / machine))
        (found,) = json.loads((suite.folder / "P.json").read_text(encoding="utf-8"))["results"]
        suite.check(found["storage"] == "disk" and found["one_pass"] == one_pass, "the plan on", machine, found)


def kept_tiles(suite, tiles, ranks=2):
    """The files that records name, the records, and the mark of the folder."""
    names = [".gridlops-tiles"]
    for row in range(ranks):
        record = f"row-{row}-col-0.json"
        named = json.loads(Path(tiles, record).read_text(encoding="utf-8"))
        suite.check(named["schema"] == "gridlops.tiles/3", "the schema", named["schema"])
        names += [record, named["file"]]
    return sorted(names)


def check_tiles(suite, scratch, exact):
    """Tiles that stay are those of the next run, of a restart too, until A is another."""
    memory, tiles = least_memory(suite, scratch, 2), os.path.join(scratch, "tiles")
    on_disk = ["--storage", "disk", "--memory", memory, "--grid", "2x1", "--tiles", tiles]

    def made():
        return {name: os.stat(os.path.join(tiles, name)).st_mtime_ns for name in sorted(os.listdir(tiles))}
    saved = suite.folder / "saved_with_tiles"
    os.mkdir(tiles)
    Path(tiles, "row-1-col-0.json").write_text("mine", encoding="utf-8")
    run = solve(suite, scratch, *on_disk, ranks=2, status=74)
    suite.check("row-1-col-0.json is there, which no output of this kind has made" in run.errors, run.errors)
    suite.check(Path(tiles, "row-1-col-0.json").read_text(encoding="utf-8") == "mine", "a foreign file was replaced")
    os.remove(Path(tiles, "row-1-col-0.json"))
    solve(suite, scratch, *on_disk, "--iterations", 5, "--checkpoint", saved, ranks=2, status=3)
    first = made()
    suite.check(kept_tiles(suite, tiles) == sorted(first), "tiles", first)
    solve(suite, scratch, *on_disk, "--restart", saved, ranks=2)
    suite.check(made() == first, "a restart makes tiles again", made(), first)
    suite.close(np.load(suite.folder / "X.npy"), exact, 1e-5 * np.abs(exact).max(), "the solution of a restart")
    os.utime(suite.folder / "A.npy")
    solve(suite, scratch, *on_disk, ranks=2)
    suite.check(not any(made().get(name) == first[name] for name in first if name.startswith("row")), "another A has the tiles of the one before")
    suite.check(kept_tiles(suite, tiles) == sorted(made()), "tiles", made())
    shutil.rmtree(tiles)


def check_tiles_of_jobs_at_once(suite, scratch, exact, full):
    """Three jobs with two matrices keep tiles in one folder: each has the result of its matrix, and the tiles of one stay."""
    memory, tiles = least_memory(suite, scratch, 2), os.path.join(scratch, "shared-tiles")
    np.save(suite.folder / "other.npy", -np.load(suite.folder / "A.npy"))
    words = ["solve", "--rhs", suite.folder / "B.npy", "--damp", DAMP, "--tolerance", "1e-6", "--storage", "disk", "--memory", memory, "--grid", "2x1",
             "--scratch", scratch, "--tiles", tiles, "--machine", suite.folder / "fast.json", "--quiet"]

    def job(number, matrix):
        return run_in_memory(suite, *words, "--matrix", suite.folder / matrix, "--output", suite.folder / f"of-job-{number}.npy", ranks=2)
    for turn in range(3) if full else (2,):
        if turn == 2:
            os.utime(suite.folder / "A.npy")
        with ThreadPoolExecutor(3) as pool:
            runs = list(pool.map(job, range(3), ("A.npy", "other.npy", "A.npy")))
        for number, run in enumerate(runs):
            if suite.succeeded(run):
                sign = -1 if number == 1 else 1
                suite.close(np.load(suite.folder / f"of-job-{number}.npy"), sign * exact, 1e-5 * np.abs(exact).max(), "the solution of job", number, "in turn", turn)
        suite.check(kept_tiles(suite, tiles) == sorted(os.listdir(tiles)), "jobs left", os.listdir(tiles))
    shutil.rmtree(tiles)


def check_compressed(suite, scratch):
    """A compressed matrix on disks: the bits of one in memory, in the memory allowed, also by itself where memory is short."""
    waves, size, tile = suite.folder / "waves", 1600, 64
    suite.succeeded(suite.run("make-problem", "--kind", "waves", "--rows", size, "--cols", size, "--rhs", 2, "--frequency", 60, "--out", waves))
    files = {"matrix": "compressed", "rhs": "waves/B.npy"}
    suite.succeeded(suite.run("compress", "--matrix", waves / "A.npy", "--output", suite.folder / "compressed", "--tolerance", 1e-9, "--tile", tile, ranks=2))
    A, B = np.load(waves / "A.npy"), np.load(waves / "B.npy")
    exact = np.linalg.solve(A.conj().T @ A + DAMP**2 * np.eye(size), A.conj().T @ B)
    stored = sum(path.stat().st_size for path in (suite.folder / "compressed").rglob("*.npy"))  # on disks, parts fill blocks of 4096 bytes
    for ranks, grid in ((None, "1x1"), (2, "1x2"), (4, "2x2")):
        solve(suite, scratch, "--grid", grid, ranks=ranks, output="memory.npy", **files)
        suite.close(np.load(suite.folder / "memory.npy"), exact, 1e-4 * np.abs(exact).max(), "the solution by compressed", grid)
        taken = max(report_of(suite)["memory_bytes"]["peak"])
        memory = least_memory(suite, scratch, ranks, "--grid", grid, **files)
        suite.check(ranks == 4 or memory < taken - 0.3 * stored / (ranks or 1), "on disks takes", memory, "and in memory", taken)
        for way in (["--storage", "disk"], []):
            run = solve(suite, scratch, *way, "--memory", memory, "--grid", grid, ranks=ranks, **files)
            suite.check(way or "A goes to disks" in run.output, "nothing says that A goes to disks:", run.output)
            suite.check((suite.folder / "memory.npy").read_bytes() == (suite.folder / "X.npy").read_bytes(), "other bits than in memory", grid)
            report = report_of(suite)
            figures = report.get("figures", {})
            suite.check(report["storage"] == "disk" and 0 < figures.get("disk_bytes", 0) <= 1.05 * stored, "the report", report["storage"], figures, "of", stored)
            suite.check(figures["disk_bytes_read"] >= 2 * report["iterations"] * figures["disk_bytes"], "bytes read", figures)
            suite.check(max(report["memory_bytes"]["peak"]) <= MARGIN * memory, "takes", max(report["memory_bytes"]["peak"]), "of", memory)
    run = solve(suite, scratch, "--storage", "disk", "--memory", memory, "--grid", "2x2", "--dry-run", ranks=4, **files)
    suite.check(re.search(r"on disks: [\d.]+ MiB, read twice an iteration; the disks deliver [\d.]+ \w+/s", run.output), "the plan:", run.output)
    for text, *options in (("--tiles is for matrices", "--storage", "disk", "--tiles", scratch), ("--storage is for matrices", "--storage", "packed")):
        suite.check(text in solve(suite, scratch, *options, ranks=2, status=2, **files).errors, "misses", text)
    small = 6 << 20  # of which a plan counts neither libraries nor MPI
    suite.succeeded(suite.run("plan", "--matrix", suite.folder / "compressed", "--rhs", 2, "--grid", "2x2", "--memory-per-rank", small, "--disk-rate", "500M",
                              "--json", suite.folder / "P.json"))
    (plan,) = json.loads((suite.folder / "P.json").read_text(encoding="utf-8"))["results"]
    suite.check(plan.get("storage") == "disk" and 0 < plan["disk_bytes"] <= 1.05 * stored and plan["memory_bytes"] <= small, "the plan", plan)
    suite.check(plan["seconds"] is None and plan["seconds_per_iteration"] is None, "seconds without a model", plan)


def check_refusals(suite, scratch):
    least = least_memory(suite, scratch, 2)
    for status, text, *options in ((2, "--storage disk works with --algorithm stationary-a only", "--storage", "disk", "--algorithm", "summa"),
                                   (2, "without --verify-matrix", "--storage", "disk", "--verify-matrix"),
                                   (2, "with --storage disk it could take less", "--storage", "columns", "--memory", "10M"),
                                   (74, "cannot make a file there", "--storage", "disk", "--memory", least, "--scratch", suite.folder / "none")):
        given = [scratch] if "--scratch" not in options else []
        for ranks in (None, 2):
            run = suite.run("solve", "--matrix", suite.folder / "A.npy", "--rhs", suite.folder / "B.npy", "--output", suite.folder / "refused.npy",
                            *(["--scratch", *given] if given else []), *options, ranks=ranks)
            suite.succeeded(run, status)
            suite.check(text in run.errors, "misses", text, "in", run.errors)
    suite.check(not (suite.folder / "refused.npy").exists(), "a refused run wrote an output")


def check_address_space(suite, scratch):
    """Where a limit of the address space lets A in columns be solved with, the default and A on disks solve, too; and nothing that
    lacks room there ends otherwise than with 71."""
    if suite.run("--version", shell="ulimit -v 750000; exec {}").status != 0:
        return  # sanitizers reserve more
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6000, 2500))
    np.save(suite.folder / "long_A.npy", A)
    np.save(suite.folder / "long_B.npy", A @ np.ones((2500, 4)))
    enough = 0
    for limit in range(375000, 750000, 25000):
        endings = {}
        # Near the limit, where threads happen to take their arenas decides; so a run may have another try.
        for storage, tries in (("columns", 1), ("auto", 3), ("disk", 3)):
            while tries > 0 and endings.get(storage) != 0:
                tries -= 1
                run = suite.run("solve", "--matrix", "long_A.npy", "--rhs", "long_B.npy", "--output", "X.npy", "--damp", 1, "--iterations", 5,
                                "--tolerance", "1e-1", "--quiet", "--scratch", scratch, *([] if storage == "auto" else ["--storage", storage]),
                                shell=f"ulimit -v {limit}; exec {{}}", environment={"OPENBLAS_NUM_THREADS": "1", "GRIDLOPS_THREADS": "1"})
                endings[storage] = run.status
                suite.check(run.status in (0, 71), "ulimit -v", limit, storage, "ends with", run.status, run.errors)
                suite.check("a thread cannot be started" not in run.errors or f"(ulimit -v) {1024 * limit} bytes" in run.errors, "misses the limit:", run.errors)
        if endings["columns"] == 0:
            suite.check(set(endings.values()) == {0}, "ulimit -v", limit, "lets columns be solved with, but", endings)
            enough += 1
            if enough == 3:
                return
    suite.check(enough > 0, "no limit was enough")


def test(suite, full):
    with tempfile.TemporaryDirectory(dir=program.disk()) as scratch:
        exact = make(suite)
        check_solution(suite, scratch, exact)
        check_scaled_columns(suite, scratch)
        check_auto(suite, scratch)
        check_in_place(suite, scratch, exact)
        check_choice(suite, scratch, exact)
        check_passes(suite, scratch, exact)
        check_tiles(suite, scratch, exact)
        check_tiles_of_jobs_at_once(suite, scratch, exact, full)
        check_compressed(suite, scratch)
        check_refusals(suite, scratch)
        check_address_space(suite, scratch)
        suite.check(not os.listdir(scratch), "files are left:", os.listdir(scratch))


if __name__ == "__main__":
    program.main(test, __doc__)
