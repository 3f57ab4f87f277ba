#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random problems with structure, and what must hold of every one.

campaign.py [--build BUILD] [--seconds N] [--seed S] [--areas AREA,…] [--examples N] [--failures FOLDER] [--without FEATURE,…]
            [--patience SECONDS]
campaign.py [--build BUILD] --replay FOLDER

It draws cases until the time is over. A case that breaks a property is made smaller, and kept with its arrays in a folder of its
own; the last lines have a command for each, which runs it again. --examples draws a fixed number of each area instead, the same
ones each time. --without leaves out guess, scale, one-sided, idle (ranks), many (ranks, more than two) or alias (X in the memory
of B), to look behind faults that are known. A case hangs if it takes longer than --patience, and once more longer than four times
that. The status is 1 if a property was broken. Reasons: docs/decisions/0043-campaign.md."""
import argparse
import collections
import hashlib
import json
import signal
import sys
import time
from pathlib import Path

try:
    import hypothesis
    import hypothesis.configuration
    import numpy as np
    from hypothesis import HealthCheck, Phase
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import bounded_area
import change_area
import compressed_area
import files_area
import program_area
import ridge_area
import solve_area
import splitting_area
import strategies
import space_area
import spectrum_area
import state_area
import sweep_area
import tree_area
from problems import Problem
from properties import Violation
from workers import Lost, Workers

# What checks a case, and what draws one.
AREAS = {"solve": (solve_area.check, strategies.all_solves()),
         "bounds": (solve_area.check, strategies.bounded()),
         "space": (space_area.check, strategies.spaces()),
         "one_pass": (solve_area.check, strategies.wide_in_one_pass()),
         "hermitian": (solve_area.check, strategies.hermitian()),
         "spectrum": (spectrum_area.check, strategies.spectra()),
         "state": (state_area.check, strategies.states()),
         "sweep": (sweep_area.check, strategies.sweeps()),
         "boxed": (bounded_area.check, strategies.boxed()),
         "ridge": (ridge_area.check, strategies.ridges()),
         "splitting": (splitting_area.check, strategies.splittings()),
         "tree": (tree_area.check, strategies.trees()),
         "compressed": (compressed_area.check, strategies.compressed()),
         "files": (files_area.check, strategies.files()),
         "change": (change_area.check, strategies.changes()),
         "program": (program_area.check, strategies.programs("cpu")),
         "gpu": (program_area.check, strategies.programs("gpu"))}
ROOT = Path(__file__).resolve().parents[2]


class Over(BaseException):
    """The time is over. Hypothesis lets it through."""


class Findings:
    """The smallest case that broke each property, kept in a folder."""

    def __init__(self, folder, command):
        self.folder, self.command = Path(folder), command
        self.size_of, self.text_of, self.seen = {}, {}, collections.Counter()

    def add(self, name, case, text):
        if name not in self.seen:  # the test may be killed while it makes cases small
            print(f"found: {name}: {self.replay(name)}", flush=True)
        self.seen[name] += 1
        size = len(json.dumps(case))
        if name in self.size_of and self.size_of[name] <= size:
            return
        self.size_of[name], self.text_of[name] = size, text
        place = self.place(name)
        place.mkdir(parents=True, exist_ok=True)
        (place / "case.json").write_text(json.dumps(case, indent=1) + "\n", encoding="utf-8")
        (place / "found.txt").write_text(f"{name}\n{text}\n{self.replay(name)}\n", encoding="utf-8")
        if case["area"] in ("solve", "program"):
            problem = Problem(case)
            np.savez(place / "arrays.npz", **{key: value for key, value in
                                              (("A", problem.A), ("B", problem.B), ("X0", problem.X0), ("d", problem.d)) if value is not None})

    def place(self, name):
        return self.folder / ("".join(c if c.isalnum() else "-" for c in name) + "-" + hashlib.sha256(name.encode()).hexdigest()[:4])

    def replay(self, name):
        return f"{self.command} --replay {self.place(name)}"

    def tell(self):
        """Prints a line and a command for each."""
        for name in sorted(self.text_of):
            print(f"BROKEN, {self.seen[name]} times: {self.text_of[name][:1500]}\n    {self.replay(name)}")


def hang_of(case):
    """The name of a hang: cases with the same transport, and idle ranks or none, hang for one reason."""
    how = case["how"]
    return f"hang, {how['transport']}" + (", idle ranks" if how["grid"][0] * how["grid"][1] < how["ranks"] else "")


def has(case, feature):
    """Whether a case has what --without leaves out."""
    how = case["how"]
    return {"guess": case.get("guess") is not None, "one-sided": "one-sided" in json.dumps(case),
            "scale": any(case.get(key) for key in ("scale_A", "scale_B", "power")) or (case.get("other") or {}).get("change") == "scale",
            "many": how["ranks"] > 2, "alias": case.get("out_is_B", False), "idle": how["grid"][0] * how["grid"][1] < how["ranks"]}[feature]


def explore(name, seed, examples, until, without, workers, findings, counts):
    """Draws this many cases of an area."""
    check, cases = AREAS[name]

    def run(case):
        if time.monotonic() > until:
            raise Over
        if hang_of(case) in findings.seen or any(has(case, feature) for feature in without):
            return  # of hangs, because minutes for each would leave no time for others
        counts["cases"] += 1
        try:
            counts.update(f"{name}: {verdict}" for verdict in check(case, workers))
        except Violation as violation:
            known = violation.name in known_before
            findings.add(violation.name, case, str(violation))
            if not known:
                raise
        except Lost as lost:
            # Not made smaller, since each try may take minutes.
            findings.add(hang_of(case) if lost.how == "hang" else f"crash, {case.get('solver', name)}", case, str(lost))

    known_before = set(findings.seen)
    settings = hypothesis.settings(max_examples=examples, deadline=None, database=None, print_blob=False, report_multiple_bugs=True,
                                   phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
                                   verbosity=hypothesis.Verbosity.quiet)
    try:
        hypothesis.seed(seed)(settings(hypothesis.given(cases)(run)))()
    except (Violation, ExceptionGroup, hypothesis.errors.Flaky, Over):
        pass  # what is found is noted


def replay(folder, workers):
    """Runs a case that was kept, and says whether it holds now. Returns the status."""
    case = json.loads((Path(folder) / "case.json").read_text(encoding="utf-8"))
    print(json.dumps(case))
    try:
        print("holds:", *AREAS[case["area"]][0](case, workers))
    except (Violation, Lost) as broken:
        print("BROKEN:", broken)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--areas", default=",".join(AREAS))
    parser.add_argument("--examples", type=int)
    parser.add_argument("--failures", type=Path)
    parser.add_argument("--without", default="")
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--replay")
    given = parser.parse_args()
    build = given.build.resolve()
    if not list(build.glob("apps/python/gridlops/_native*")):
        print(f"skipped: the Python package is not built in {build}")
        sys.exit(77)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no worker is left
    hypothesis.configuration.set_hypothesis_home_dir(build / "campaign")
    with Workers(build, given.patience) as workers:
        if given.replay:
            return replay(given.replay, workers)
        findings = Findings((given.failures or build / "campaign").resolve(), f"{Path(__file__).resolve()} --build {build}")
        counts, begin = collections.Counter(), time.monotonic()
        until = begin + given.seconds if given.examples is None else float("inf")
        seed = given.seed
        while time.monotonic() < until:
            for name in given.areas.split(","):
                explore(name, seed, given.examples or 200, until, [f for f in given.without.split(",") if f], workers, findings, counts)
            print(f"{counts['cases']} cases in {time.monotonic() - begin:.0f} s, seed {seed}, {len(findings.seen)} properties broken", flush=True)
            if given.examples is not None:
                break
            seed += 1
    findings.tell()
    print("; ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 1 if findings.seen else 0


if __name__ == "__main__":
    sys.exit(main())
