#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of what tests/gpu/run has measured, and a script that puts them into the notes.

    tests/gpu/results.py RESULTS.json [PAGE]

PAGE [docs/performance-notes.md] has two lines MARKS. What is between them becomes these tables."""
import json
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/performance-notes.md"
MARKS = ("<!-- tests/gpu/results.py writes what follows -->", "<!-- up to here -->")


def number(value, digits=0, scale=1.0):
    """A number as text; nothing for one that was not measured."""
    return "" if value is None else f"{scale * value:.{digits}f}"


def direction(one):
    return "adjoint" if one["adjoint"] else "forward"


def tables(benchmarks):
    """Of products and iterations, of kernels, and of operators: for each its heading and its rows, as text."""
    products = [(one["benchmark"], str(one["rows"]), str(one["cols"]), str(one["nrhs"]), direction(one),
                 number(one.get("seconds_per_iteration", one["seconds"]), 4, 1e3), number(one["gflops"], 1),
                 number(one["limit_gflops"], 1), number(one["limit_read_gbs"], 1), number(one["roofline_fraction"], 2),
                 number(one.get("over_one_gemm"), 3), number(one.get("launches_per_iteration"), 1))
                for one in benchmarks if "rows" in one and "kernel" not in one]
    kernels = [(one["kernel"], one["dtype"], str(one["rows"]), str(one["cols"]), number(one["seconds"], 2, 1e6),
                number(one["gbs"], 1), number(one["limit_gbs"], 1), number(one["fraction"], 2))
               for one in benchmarks if "kernel" in one]
    operators = [(one["operator"], one["sizes"], direction(one), number(one["seconds"], 2, 1e6), number(one["gbs"], 1),
                  number(one["limit_read_gbs"], 1), number(one["roofline_fraction"], 2))
                 for one in benchmarks if "operator" in one]
    return [(heading, rows) for heading, rows in (
        (("benchmark", "rows", "cols", "rhs", "direction", "ms", "GFLOP/s", "GEMM", "copy GB/s", "fraction", "over GEMM",
          "launches"), products),
        (("kernel", "type", "rows", "cols", "us", "GB/s", "copy GB/s", "fraction"), kernels),
        (("operator", "sizes", "direction", "us", "GB/s", "copy GB/s", "fraction"), operators)) if rows]


def plain(heading, rows):
    """A table in columns: words at the left, the rest at the right."""
    widths = [max(map(len, column)) for column in zip(heading, *rows)]
    return ["  ".join([f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:]))])
            for row in (heading, *rows)]


def markdown(heading, rows):
    return [f"| {' | '.join(row)} |" for row in (heading, ("---",) * len(heading), *rows)]


def origin(document):
    """Where and when the results were measured."""
    machine = document["machine"]
    if document["emulated"]:
        return "a rehearsal on the emulation of a GPU: times mean nothing"
    return f"{machine['gpu'] or 'no GPU'}; {machine['nvcc']}; {machine['commit']}; {machine['time']}"


def outcomes(steps):
    """How many steps ended in which way."""
    found = [step["outcome"] for step in steps]
    return ", ".join(f"{found.count(outcome)} {outcome}" for outcome in ("passed", "failed", "too long", "skipped", "not run"))


def taken_in(page, document):
    """The text of a page with the tables of these results. Throws ValueError unless it has both marks."""
    begin, end = MARKS
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(end) < page.index(begin):
        raise ValueError(f"the page does not have the lines {begin} and {end}, once each and in this order")
    parts = [f"{origin(document)}. Steps: {outcomes(document['steps'])}.",
             *("\n".join(markdown(*table)) for table in tables(document["benchmarks"]))]
    return page[:page.index(begin) + len(begin)] + "\n\n" + "\n\n".join(parts) + "\n\n" + page[page.index(end):]


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    page = Path(sys.argv[2]) if len(sys.argv) > 2 else PAGE
    try:
        document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        if document.get("schema") != "gridlops.gpu/1":
            raise ValueError(f"{sys.argv[1]} is not of tests/gpu/run")
        if document["emulated"] and page.resolve() == PAGE:
            raise ValueError("results of a rehearsal are not for the notes")
        text = taken_in(page.read_text(encoding="utf-8"), document)
    except (OSError, ValueError) as error:
        sys.exit(f"results: {error}")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
