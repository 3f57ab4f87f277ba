#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_test.py BUILD: tests/gpu/run on the emulation, in BUILD: it tests, leaves whole files when it is killed, and begins
no step after its minutes."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main():
    build = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
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
