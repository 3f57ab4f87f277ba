# SPDX-License-Identifier: BSD-3-Clause
"""Checks `bench/scaling compare`: verdicts of rows whose difference is known, intervals against SciPy's and against what they promise,
which rows belong together, and refusals. study_compare_test.py LAUNCH PROGRAM, the program being gridlops-bench"""
import copy
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

SCALING = Path(__file__).resolve().parents[2] / "bench/scaling"
sys.path.insert(0, str(SCALING.parent))
from study import compare  # noqa: E402

TIMES = [1.00, 1.02, 0.99, 1.01, 0.98]


def result(samples, **fields):
    return {"rows": 40, "cols": 31, "nrhs": 3, "dtype": "f64", "adjoint": False, "grid": [1, 2], "device": "cpu", "panel": 0, "seconds": 0,
            "asked": {"algorithm": "summa", "storage": "auto", "transport": "mpi"}, "samples": samples, **fields}


def write(suite, name, *results, **facts):
    document = {"schema": "gridlops.bench/1", "environment": {"ranks": 2, "cpu": "a <cpu>", "version": name, **facts}, "results": list(results)}
    (suite.folder / name).write_text(json.dumps(document), encoding="utf-8")


def scaling(suite, *words):
    return subprocess.run([sys.executable, "-S", str(SCALING), "compare", *words], cwd=suite.folder, capture_output=True, text=True, timeout=120, check=False)


def verdicts(run):
    """The ratio and the verdict of each line, by its name."""
    found = {}
    for line in run.stdout.splitlines():
        words = line.split()
        if len(words) > 5 and "…" in words:
            verdict = next(each for each in ("faster", "slower", "no difference", "too few repetitions") if f" {each} " in line)
            found[line.split(f" {verdict} ")[1].strip()] = (float(words[2]), verdict)
    return found


def check_verdicts(suite):
    rows = {1: (1, "no difference"), 2: (2, "slower"), 3: (0.5, "faster"), 4: (1.015, "no difference"), 5: (2, "too few repetitions")}
    olds = [result(TIMES[:3] if nrhs == 5 else TIMES, nrhs=nrhs) for nrhs in rows]
    news = [result([ratio * time for time in (TIMES[:3] if nrhs == 5 else TIMES)], nrhs=nrhs) for nrhs, (ratio, _) in rows.items()]
    write(suite, "old", *olds, result(TIMES, nrhs=7))
    write(suite, "new", *news[::-1], cpu="b")  # in another order
    run = scaling(suite, "old", "new")
    if not suite.check(run.returncode == 0, "a comparison", run.stderr):
        return
    wanted = {f"A X, 40 x 31, {nrhs} column{'' if nrhs == 1 else 's'}, f64, 1x2, 2 ranks, summa, auto, mpi": row for nrhs, row in rows.items()}
    suite.check(verdicts(run) == wanted, "verdicts", run.stdout)
    suite.check("5 rows: 1 faster, 1 slower, 2 no difference, 1 too few repetitions." in run.stdout and "1 row only in the old file" in run.stdout
                and "7 columns" in run.stdout, "the summary", run.stdout)
    page = (suite.folder / "comparison.html").read_text(encoding="utf-8")
    suite.check(page.count("<svg") == 5 and "a &lt;cpu&gt;" in page and "<td>cpu</td><td>a &lt;cpu&gt;</td><td>b</td>" in page and "http" not in page,
                "the page", page)
    again = scaling(suite, "old", "new", "--out", "again.html")
    suite.check(again.stdout.replace("again.html", "comparison.html") == run.stdout, "another interval in another run")
    suite.check(scaling(suite, "old", "new", "--check").returncode == 1 and scaling(suite, "old", "old", "--check").returncode == 0, "--check")
    write(suite, "busy", *news, cores=2, load_average=9.0)
    suite.check(scaling(suite, "old", "busy").stdout.count("(busy)") == 5, "rows of a busy machine")


def check_intervals(suite):
    """The interval holds the true ratio about as often as it says, and is that of SciPy."""
    generator, held = random.Random(7), 0
    for _ in range(100):
        old, new = ([mean * generator.lognormvariate(0, 0.1) for _ in range(9)] for mean in (1.0, 1.3))
        least, most = compare.interval(old, new)
        held += least <= 1.3 <= most
        suite.check(least <= statistics.median(new) / statistics.median(old) <= most, "an interval without its ratio", least, most)
    # 95 of 100 with a standard deviation of 2; the medians of nine are discrete, which makes intervals wider.
    suite.check(held >= 88, "intervals hold the ratio", held, "times of 100")
    suite.check(compare.interval([2.0] * 5, [3.0] * 5) == (1.5, 1.5), "an interval of equal samples")
    try:
        from scipy.stats import bootstrap
    except ImportError:
        print("not tested: intervals of SciPy, which is not here")
        return
    old, new = ([generator.lognormvariate(0, 0.2) for _ in range(40)] for _ in range(2))
    found = compare.interval(old, new)
    wanted = bootstrap((new, old), lambda x, y, axis=-1: np.median(x, axis=axis) / np.median(y, axis=axis), n_resamples=20000, method="percentile",
                       random_state=1).confidence_interval
    suite.check(max(abs(found[0] - wanted.low), abs(found[1] - wanted.high)) < 0.03, "intervals", found, "of SciPy", wanted)


def check_ways(suite):
    """Two algorithms of one file, and rows with equal fields, such as those of two sections with other options."""
    other = {"algorithm": "block", "storage": "auto", "transport": "mpi"}
    write(suite, "ways", result(TIMES), result([3 * time for time in TIMES], asked=other), result(TIMES, grid=[2, 1]))
    run = scaling(suite, "ways", "ways", "--old", "algorithm=summa", "--new", "algorithm=block")
    suite.check(list(verdicts(run).values()) == [(3, "slower")] and "1 row only in the old file" in run.stdout, "two algorithms", run.stdout, run.stderr)
    run = scaling(suite, "ways", "ways", "--old", "grid=1x2", "--new", "grid=2x1")
    suite.check(list(verdicts(run).values()) == [(1, "no difference")], "two grids", run.stdout, run.stderr)
    write(suite, "twice", result(TIMES), result([2 * time for time in TIMES]))
    run = scaling(suite, "twice", "twice")
    suite.check("2 rows: 2 no difference" in run.stdout, "rows with equal fields", run.stdout)


def check_study(suite):
    """Repetitions of a program are one row; its folder stands for results.json."""
    def runs(seconds):
        return [{"kind": "programs", "ranks": 2, "command": ["gridlops", "lsm", "--quiet"], "document": {"seconds": {"compute": each}}} for each in seconds]
    for name, times in (("one", TIMES), ("two", [2 * time for time in TIMES])):
        (suite.folder / name).mkdir()
        document = {"schema": "gridlops.study/1", "runs": runs(times)}
        (suite.folder / name / "results.json").write_text(json.dumps(document), encoding="utf-8")
    run = scaling(suite, "one", "two")
    suite.check(verdicts(run) == {"gridlops lsm, 2 ranks": (2, "slower")}, "a program", run.stdout, run.stderr)


def check_refusals(suite):
    write(suite, "a", result(TIMES))
    write(suite, "b", result(TIMES, rows=41))
    older = copy.deepcopy(result(TIMES))
    del older["samples"]
    write(suite, "older", older)
    (suite.folder / "report").write_text('{"schema": "gridlops.report/1"}', encoding="utf-8")
    (suite.folder / "text").write_text("[", encoding="utf-8")
    for words, said in [(["a", "b"], ["no row of a", "40 x 31", "41 x 31"]), (["a", "older"], ["no samples"]), (["a", "report"], ["gridlops report"]),
                        (["a", "text"], ["text", "schema"]), (["a", "absent"], ["absent"]), (["a"], ["OLD and NEW"]),
                        (["a", "b", "--old", "algoritm=summa"], ["algoritm", "did you mean 'algorithm'"]),
                        (["a", "b", "--new", "algorithm=block"], ["'block'", "summa"])]:
        run = scaling(suite, *words)
        suite.check(run.returncode != 0 and all(word in run.stderr for word in said) and "Traceback" not in run.stderr, words, "is refused by", run.stderr)


def check_program(suite):
    """What gridlops-bench writes, of each subcommand, compared with itself."""
    np.save(suite.folder / "A.npy", np.eye(9))
    limits = ["--limit-order", 8, "--limit-mib", 1]
    for name, *words in (["matmul", "--rows", 40, "--cols", 31, "--both", "--algorithm", "summa,stationary-a", *limits],
                         ["solve", "--rows", 40, "--cols", 31, "--iterations", 2, *limits], ["kernels", "--rows", 40, "--limit-mib", 1],
                         ["operators", "--operator", "fourier", "--samples", 8, *limits], ["comm", "--bytes", "8,64"],
                         ["messages", "--bytes", 8, "--messages", "1,2", "--up-to", 1024], ["compressed", "--matrix", "A.npy", "--rhs", "1,2", *limits]):
        if suite.succeeded(suite.run(name, *words, "--reps", 5, "--json", f"{name}.json", ranks=2, timeout=120)):
            count = len(json.loads((suite.folder / f"{name}.json").read_text(encoding="utf-8"))["results"])
            run = scaling(suite, f"{name}.json", f"{name}.json")
            suite.check(f"{count} rows" in run.stdout and set(verdicts(run).values()) == {(1, "no difference")} and len(verdicts(run)) == count,
                        name, "with itself", run.stdout, run.stderr)
    run = scaling(suite, "matmul.json", "matmul.json", "--old", "algorithm=summa", "--new", "algorithm=stationary-a")
    suite.check(len(verdicts(run)) == 2, "two algorithms", run.stdout, run.stderr)


def test(suite, _):
    check_verdicts(suite)
    check_intervals(suite)
    check_ways(suite)
    check_study(suite)
    check_refusals(suite)
    check_program(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
