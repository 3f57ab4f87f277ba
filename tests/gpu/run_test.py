#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_test.py BUILD: tests/gpu/run on the emulation, in BUILD: it tests, leaves whole files when it is killed, begins no
step after its minutes, and what it has measured can be put into a page."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import MARKS  # noqa: E402

HERE = Path(__file__).resolve().parent
OUTCOMES = {"passed", "failed", "too long", "skipped", "not run"}


def command(build, out, *options):
    return [sys.executable, HERE / "run", "--emulated", "--build", build, "--out", out, "--parallel", "1", "--only", "suites1",
            "--programs", "product_traffic", "--programs", "least_squares", *options]  # the second takes seconds


def results(out):
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert document["schema"] == "gridlops.gpu/1" and document["emulated"], document
    assert all(step["outcome"] in OUTCOMES for step in document["steps"]), document["steps"]
    assert (out / "table.txt").read_text(encoding="utf-8").startswith("a rehearsal"), "no table"
    return [step["outcome"] for step in document["steps"]]


def taken_in(results_file, page):
    return subprocess.run([HERE / "results.py", results_file, *page], capture_output=True, text=True, check=False)


def check_page(build, scratch):
    """The tables of what was measured take the place of older ones in a page, and nothing else there changes."""
    out, page = scratch / "measured", scratch / "page.md"
    subprocess.run([HERE / "run", "--emulated", "--build", build, "--out", out, "--only", "benchmarks"], capture_output=True,
                   check=True)
    begin, end = MARKS
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    for _ in range(2):  # again changes nothing
        assert taken_in(out / "results.json", [page]).returncode == 0
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"before\n{begin}\n\na rehearsal") and text.endswith(f"\n\n{end}\nafter\n"), text
    assert "old" not in text and text.count("\n| --- |") == 3, text
    measured = json.loads((out / "results.json").read_text(encoding="utf-8"))["benchmarks"]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == len(measured) + 2 * 3, f"{len(rows)} lines for {len(measured)} results"
    product = next(one for one in measured if one["benchmark"] == "products with few columns" and one["adjoint"])
    row = next(row for row in rows if row[0] == "| products with few columns" and row[4] == "adjoint")
    assert [float(cell) for cell in row[1:4]] == [product["rows"], product["cols"], product["nrhs"]], row
    assert abs(float(row[5]) - 1e3 * product["seconds"]) < 1e-4, row

    page.write_text(f"{begin}\n", encoding="utf-8")
    refused = taken_in(out / "results.json", [page])
    assert refused.returncode == 1 and "does not have the lines" in refused.stderr, refused
    refused = taken_in(out / "results.json", [])
    assert refused.returncode == 1 and "a rehearsal" in refused.stderr, refused


def main():
    build = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        if (build / "tests/emulation/gridlops-bench").exists():
            check_page(build, Path(scratch))
        whole = Path(scratch, "whole")
        run = subprocess.run(command(build, whole), capture_output=True, text=True, check=False)
        outcomes = results(whole)
        assert run.returncode == 0 and len(outcomes) >= 2 and set(outcomes) == {"passed"}, run.stdout + run.stderr

        for steps in range(len(outcomes)):  # are done when it is killed
            killed = Path(scratch, f"killed{steps}")
            with subprocess.Popen(command(build, killed), stdout=subprocess.DEVNULL, start_new_session=True) as run:
                while not (killed / "results.json").exists() or len(results(killed)) < steps:
                    assert run.poll() is None, f"it ended after {steps} steps"
                    time.sleep(0.01)
                os.killpg(run.pid, signal.SIGKILL)
            assert len(results(killed)) == steps, results(killed)

        late = Path(scratch, "late")
        begin = time.monotonic()
        subprocess.run(command(build, late, "--minutes", "0.001"), capture_output=True, check=False)
        assert time.monotonic() - begin < 20 and set(results(late)) == {"not run"}, results(late)
    print("ok")


if __name__ == "__main__":
    main()
