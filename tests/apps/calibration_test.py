# SPDX-License-Identifier: BSD-3-Clause
"""Checks what `gridlops calibrate` measures, by which calibration programs choose, and where they keep one. calibration_test.py LAUNCH PROGRAM"""
import json
import shutil
import subprocess

import program

KEPT = "kept.json"
BY_FILE = {"GRIDLOPS_CALIBRATION": KEPT}
TYPES = ("f32", "f64", "c64", "c128")


def facts(run):
    """The lines of `info` from the calibration on, by their labels."""
    return {line[:14].strip(): line[14:] for line in run.output.splitlines()}


def measured_file(suite):
    """A file with figures of every type that say nothing against the built-in choices."""
    run = suite.run("calibrate", "--dtype", "f64", environment=BY_FILE)
    suite.succeeded(run)
    path = suite.folder / KEPT
    suite.check(path.exists() and KEPT in facts(run).get("calibration", ""), "no file:", run.output)
    kept = json.loads(path.read_text(encoding="utf-8"))
    suite.check(list(kept["types"]) == ["f64"], "types", list(kept["types"]))
    check_rates(suite, run, kept["rates"], 1)
    seconds = {work: [[2.0 if work == "one pass" else 1.0] * 2 for _ in kept["columns"]]
               for work in kept["types"]["f64"]["seconds"]}
    kept["types"] = {name: {"measured": "2026-01-31T12:00:00Z", "seconds": seconds} for name in TYPES}
    return kept


def with_factors(kept, factors, name="f64"):
    """The text of the file with the times of some work of one type multiplied."""
    changed = json.loads(json.dumps(kept))
    for work, factor in factors.items():
        changed["types"][name]["seconds"][work] = [[factor * value for value in pair]
                                                   for pair in changed["types"][name]["seconds"][work]]
    return json.dumps(changed)


def write(suite, text):
    (suite.folder / KEPT).write_text(text, encoding="utf-8")


def check_choices(suite, kept):
    """`info` shows what is chosen, for the type that was measured so, beside what is built in."""
    write(suite, json.dumps(kept))
    usual = facts(suite.run("info", environment=BY_FILE))
    off = facts(suite.run("info"))
    suite.check(off["calibration"] == "none: GRIDLOPS_CALIBRATION is off", "off:", off["calibration"])
    for name in TYPES:
        suite.check(off[name].startswith("built in: ") and usual[name].startswith("measured 2026-01-31T12:00:00Z: ")
                    and off[name].split(": ", 1)[1] == usual[name].split(": ", 1)[1], name, off[name], usual[name])
    for factors, text in [({"A X, packed": 9, "A^H Y, packed": 9}, "packed none"),
                          ({"A X, packed": 0.1, "A^H Y, packed": 0.1}, "packed 1-128"),
                          ({"one pass": 9}, "one pass none"), ({"one pass": 0.1}, "one pass 1-128"),
                          ({"A X, own kernels": 9}, "A X none"), ({"A X, own kernels": 0.1}, "A X 1-128"),
                          ({"A^H Y, own kernels": 9}, "A^H Y none"), ({"A^H Y, own kernels": 0.1}, "A^H Y 1-128")]:
        write(suite, with_factors(kept, factors))
        for ranks in (None, 1):
            run = suite.run("info", ranks=ranks, environment=BY_FILE)
            suite.succeeded(run)
            found = facts(run)
            suite.check(text in found["f64"] and found["f32"] == usual["f32"], text, "is not in", found["f64"])
    # Figures of two ranks on a machine are others than those of one.
    run = suite.run("info", ranks=2, environment=BY_FILE)
    suite.check("of another machine, library or number of ranks" in facts(run)["calibration"], run.output)


def check_solve(suite, kept):
    """Large problems are stored and solved as the file says, and the report names it."""
    suite.succeeded(suite.run("make-problem", "--rows", 2100, "--cols", 2100, "--rhs", 1, "--out", "."))

    def solved(factors, *options, **run):
        if factors is not None:
            write(suite, with_factors(kept, factors))
        ran = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", "--algorithm",
                        "stationary-a", "--iterations", 2, "--one-pass", "auto", *options, **run)
        suite.succeeded(ran, status=3)
        report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
        return ran, (report["storage"], report["solver"]), report["choices"]

    measured = "measured 2026-01-31T12:00:00Z"
    for factors, expected in [({"A X, packed": 9, "A^H Y, packed": 9, "one pass": 99}, ("columns", "cgls")),
                              ({"A X, packed": 0.1, "A^H Y, packed": 0.1}, ("packed", "cgls")),
                              ({"one pass": 0.1}, ("packed", "one-pass-cgls"))]:
        run, found, choices = solved(factors, environment=BY_FILE)
        suite.check(found == expected and choices == measured, found, choices, "instead of", expected)
        suite.check("were measured" not in run.output, "it measures again:", run.output)
        run, found, choices = solved(factors)
        suite.check(choices == "built in", "off:", choices)
    for words in (("lsm",), ("mdd", "--nx", 5, "--ny", 4, "--samples", 20, "--nf", 20)):  # so do use cases
        suite.succeeded(suite.run(*words, "--iterations", 1, "--quiet", "--report", "U.json", environment=BY_FILE))
        choices = json.loads((suite.folder / "U.json").read_text(encoding="utf-8"))["choices"]
        suite.check(choices == measured, words, choices)
    # Options choose, whatever was measured.
    run, found, choices = solved({"one pass": 9}, "--storage", "packed", environment=BY_FILE)
    suite.check(found == ("packed", "cgls"), "--storage", found)

    # The first use measures, and a later one takes what was kept.
    home = {"GRIDLOPS_CALIBRATION": "", "XDG_CACHE_HOME": str(suite.folder / "cache")}
    dry = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--dry-run", environment=home)
    suite.succeeded(dry)
    suite.check(not (suite.folder / "cache").exists(), "a dry run measures")
    run, _, _ = solved(None, environment=home)
    files = list((suite.folder / "cache").rglob("*"))
    names = [path.name for path in files if path.is_file()]
    suite.check(len(names) == 1 and names[0].startswith("calibration-") and names[0] in run.output, names, run.output)
    stamp = files[-1].stat().st_mtime_ns
    run, _, _ = solved(None, environment=home)
    suite.check("were measured" not in run.output and files[-1].stat().st_mtime_ns == stamp, "it measures twice:", run.output)
    for variables in ({"XDG_CACHE_HOME": "", "HOME": ""}, {"XDG_CACHE_HOME": "relative", "HOME": "relative"}):
        homeless = {"GRIDLOPS_CALIBRATION": "", **variables}
        _, _, choices = solved(None, environment=homeless)
        found = facts(suite.run("info", environment=homeless))["calibration"]
        suite.check(choices == "built in" and "no home folder" in found, choices, found)
    # What measures another type leaves the rates alone.
    write(suite, json.dumps({**kept, "types": {"f32": kept["types"]["f32"]}}))
    solved(None, environment=BY_FILE)
    found = json.loads((suite.folder / KEPT).read_text(encoding="utf-8"))
    suite.check(set(found["types"]) == {"f32", "f64"} and found["rates"] == kept["rates"], "rates", found.get("rates"))
    # Nobody can make a file below a file. That is no error, and nothing is measured.
    nowhere = {"GRIDLOPS_CALIBRATION": "A.npy/c.json"}
    run, _, choices = solved(None, environment=nowhere)
    suite.check(choices == "built in" and "were measured" not in run.output, choices, run.output)
    run = suite.run("calibrate", environment=nowhere)
    suite.check(run.status == 2 and len(run.error_lines) == 1 and "cannot be kept" in run.errors, run.status, run.errors)


def check_restart(suite, kept):
    """A restart chooses as its run did, or says that it does not."""
    small = program.np.random.default_rng(1).uniform(-1, 1, (400, 400))  # more than the 1 MiB that is left to BLAS
    program.np.save(suite.folder / "S.npy", small)
    program.np.save(suite.folder / "T.npy", small[:, :5])
    fast, slow = ({"A X, own kernels": factor, "A^H Y, own kernels": factor} for factor in (0.1, 9))

    def solved(factors, iterations, *options):
        if factors is not None:
            write(suite, with_factors(kept, factors))
        run = suite.run("solve", "--matrix", "S.npy", "--rhs", "T.npy", "--output", "Y.npy", "--algorithm", "stationary-a",
                        "--iterations", iterations, *options, environment={} if factors is None else BY_FILE)
        suite.succeeded(run, status=3)
        return run, (suite.folder / "Y.npy").read_bytes()

    save, restart = ("--checkpoint", "saved", "--checkpoint-every", 2), ("--restart", "saved")
    _, built_in = solved(None, 7)
    _, own = solved(fast, 7)
    _, blas = solved(slow, 7)
    suite.check(own != blas, "the kernels change no bit, so this test shows nothing")
    solved(None, 4, *save)
    other = slow if built_in == own else fast
    run, bits = solved(other, 7, *restart)
    suite.check(bits == built_in and "rounding only" not in run.errors, "a restart does not go on with what is built in:", run.errors)
    shutil.rmtree(suite.folder / "saved")
    solved(fast, 4, *save)
    run, bits = solved(fast, 7, *restart)
    suite.check(bits == own and "rounding only" not in run.errors, "a restart does not go on with what was measured:", run.errors)
    run, bits = solved(None, 7, *restart)
    suite.check("choices built in instead of measured" in run.errors, "no warning:", run.errors)


def check_rates(suite, run, rates, ranks):
    """Every figure is there and positive, and `plan` takes the file."""
    suite.check(rates["ranks"] == ranks and set(rates["transports"]) == ({"mpi", "chain"} if ranks > 1 else set()), "rates", rates)
    figures = [*rates["flops_per_second"].values(), rates["read_bytes_per_second"], rates["copied_bytes_per_second"]]
    for links in rates["transports"].values():
        suite.check(set(links) == {"broadcast", "reduce", "all-reduce", "scatter", "all-gather", "reduce-scatter"}, "links", links)
        figures += [value for link in links.values() for value in link.values()]
    suite.check(all(0 < value < 1e15 for value in figures) and set(rates["flops_per_second"]) == set(TYPES), "figures", figures)
    suite.check("GB/s read" in run.output and ("reduce-scatter" in run.output) == (ranks > 1), "table", run.output)
    planned = suite.run("plan", "--matrix-size", "1000x600", "--rhs", 4, "--ranks", "1..8", "--machine", KEPT)
    suite.check(planned.status == 0 and len(planned.output.splitlines()) == 3 + 4, "plans", planned.output, planned.errors)


def check_ranks(suite, kept):
    """All ranks choose by the file of rank 0."""
    run = suite.run("calibrate", "--dtype", "f64", ranks=2, environment=BY_FILE)
    suite.succeeded(run)
    two = json.loads((suite.folder / KEPT).read_text(encoding="utf-8"))
    suite.check(two["machine"] == {**kept["machine"], "ranks_on_machine": 2}, "machine", two["machine"])
    check_rates(suite, run, two["rates"], 2)
    two["types"] = kept["types"]
    (suite.folder / "rank0.json").write_text(with_factors(two, {"one pass": 0.1}), encoding="utf-8")
    (suite.folder / "rank1.json").write_text(with_factors(two, {"one pass": 9}), encoding="utf-8")
    own_file = ["sh", "-c", 'GRIDLOPS_CALIBRATION=rank$OMPI_COMM_WORLD_RANK.json exec "$@"', "sh"]
    found = facts(suite.run("info", ranks=2, on_each_rank=own_file))
    suite.check("one pass 1-128" in found["f64"] and found["calibration"] == "rank0.json", found)


def check_unusable(suite, kept):
    """A file that is damaged, foreign or no file at all is left out of account, with a word."""
    sound = json.dumps(kept)

    def changed(**entries):
        return json.dumps({**kept, **entries})

    one_less = json.loads(sound)
    one_less["types"]["c64"]["seconds"]["one pass"].pop()
    too_long = sound + " " * (1 << 17)
    texts = {"empty": "", "cut off": sound[:1000], "a number": "7", "a list": "[]", "huge": too_long,
             "another schema": changed(schema="gridlops.calibration/0"), "other columns": changed(columns=[1, 2]),
             "another machine": changed(machine={**kept["machine"], "cpu": "another"}),
             "another version": changed(machine={**kept["machine"], "version": "0"}), "no types": changed(types=[1]),
             "no times": changed(types={"f64": {"measured": "x"}}), "one time less": json.dumps(one_less),
             "negative": with_factors(kept, {"one pass": -1}), "zero": with_factors(kept, {"one pass": 0}),
             "infinite": sound.replace("1.0", "1e999"), "text": sound.replace("1.0", '"1"'),
             "no UTF-8": "\udcff"}
    off = facts(suite.run("info"))
    for name, text in texts.items():
        (suite.folder / KEPT).write_bytes(text.encode("utf-8", "surrogateescape"))
        run = suite.run("info", environment=BY_FILE)
        if suite.succeeded(run):
            found = facts(run)
            suite.check("it is not used: " in found["calibration"] and all(found[key] == off[key] for key in TYPES), name,
                        run.output)
    for path, word in {".": "is a directory", "/dev/null": "is a device"}.items():
        run = suite.run("info", environment={"GRIDLOPS_CALIBRATION": path})
        suite.succeeded(run)
        suite.check(word in facts(run)["calibration"], path, run.output)
        # Only a calibration is replaced, and only where that is asked for.
        if name not in ("empty", "a list", "another machine"):
            continue
        run = suite.run("calibrate", "--dtype", "f32", environment=BY_FILE)
        replaces = name == "another machine"
        suite.check((run.status == 0) == replaces and (replaces or "it is not used: " in run.errors), name, run.errors)
        suite.check(((suite.folder / KEPT).read_text(encoding="utf-8") != text) == replaces, name, "was replaced, or not")
    solve = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--iterations", 1]
    for name in ("another machine", "a number"):
        write(suite, texts[name])
        suite.succeeded(suite.run(*solve, environment=BY_FILE), status=3)
        suite.check((suite.folder / KEPT).read_text(encoding="utf-8") == texts[name], "a solve replaced", name)
    # Figures of a busy machine are kept, so that not every run measures anew, but not used.
    busy = json.loads(sound)
    for row in busy["types"]["f64"]["seconds"].values():
        row[:] = [[least, 2 * second] for least, second in row]
    write(suite, json.dumps(busy))
    found = facts(suite.run("info", environment=BY_FILE))
    suite.check("f64 was measured on a busy machine, and is not used" in found["calibration"] and found["f64"] == off["f64"],
                found)
    run = suite.run("info", environment={**BY_FILE, "GRIDLOPS_KERNELS": "blas"})
    suite.check(facts(run)["calibration"] == "none: GRIDLOPS_KERNELS has chosen", run.output)


def check_two_writers(suite):
    """Two jobs that measure at once both end well, and leave a sound file."""
    (suite.folder / KEPT).unlink()
    words = [str(suite.program), "calibrate", "--dtype", "f32"]
    environment = {**program.os.environ, **program.ALWAYS, **BY_FILE, "GRIDLOPS_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    jobs = [subprocess.Popen(words, cwd=suite.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True) for _ in range(2)]
    for job in jobs:
        output, _ = job.communicate(timeout=60)
        suite.check(job.returncode == 0, "status", job.returncode, output)
    kept = json.loads((suite.folder / KEPT).read_text(encoding="utf-8"))
    suite.check(list(kept["types"]) == ["f32"], kept)


def test(suite, full):
    # Without mpirun nothing else sets the number of threads, which is part of the machine.
    program.os.environ["OPENBLAS_NUM_THREADS"] = "1"
    program.os.environ["GRIDLOPS_THREADS"] = "1"
    for variable in ("OPENBLAS_CORETYPE", "GRIDLOPS_KERNELS"):
        program.os.environ.pop(variable, None)
    kept = measured_file(suite)
    check_choices(suite, kept)
    check_solve(suite, kept)
    check_restart(suite, kept)
    check_unusable(suite, kept)
    if full:
        check_ranks(suite, kept)
        check_two_writers(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
