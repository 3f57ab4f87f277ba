# SPDX-License-Identifier: BSD-3-Clause
"""Checks that reports are records: of the problem, the options, the files, the machine, and of norms that NumPy computes too.
Their fields are those of the schema and of docs/reports.md. `gridlops report` puts them into a table.
report_test.py LAUNCH PROGRAM [--full]"""
import calendar
import csv
import ctypes
import itertools
import json
import re
import socket
import time

import numpy as np

import program

PAGE = program.ROOT / "docs/reports.md"


def xxh3(path):
    """The hash of the file by the system's library; None without it."""
    try:
        library = ctypes.CDLL("libxxhash.so.0")
    except OSError:
        return None
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    data = path.read_bytes()
    return f"{library.XXH3_64bits(data, len(data)):016x}"


def names_in_schema(part):
    """All names of fields, at any depth."""
    found = set(part.get("properties", {}))
    for inner in [*part.get("properties", {}).values(), *([part["items"]] if "items" in part else [])]:
        found |= names_in_schema(inner)
    return found


def check_page(suite):
    """The page has every field of the schema and no other, and the columns of the CSV."""
    schema = json.loads((program.ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`.*?) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {word for row in rows for cell in row for word in re.findall(r"`([a-z_\d]+)`", cell)}
    first = {word for row in rows for word in re.findall(r"`([a-z_\d]+)`", row[0])}
    names = names_in_schema(schema)
    suite.check(names <= told, "docs/reports.md lacks", names - told)
    suite.check(first - names <= {"column"}, "docs/reports.md has fields that the schema lacks:", first - names)


def write_problem(suite, rng, rows=30, cols=20, nrhs=3, name="f64"):
    A, B = program.random_matrix(rng, (rows, cols), name), program.random_matrix(rng, (rows, nrhs), name)
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", B)
    return A, B


def solve(suite, *options, ranks=None, status=0, **more):
    run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", "R.json", *options, ranks=ranks,
                    **more)
    if not suite.succeeded(run, status):
        return run, None, None
    report = json.loads((suite.folder / "R.json").read_text(encoding="utf-8"))
    suite.report("R.json", "solve", ranks or 1, report["grid"], report["transport"])
    return run, np.load(suite.folder / "X.npy"), report


def check_record(suite, rng):
    write_problem(suite, rng)
    before = int(time.time())
    _, _, report = solve(suite, "--damp", "0.3", "--hashes", "--history", "H.csv", ranks=2, environment={"GRIDLOPS_SOLVE_ITERATIONS": "77"})
    if report is None:
        return
    words = report["command_line"]
    suite.check(words[0] == str(suite.program) and words[1] == "solve" and words[words.index("--damp") + 1] == "0.3", "words", words)
    suite.check(report["environment"].get("GRIDLOPS_SOLVE_ITERATIONS") == "77", "environment", report["environment"])
    written = calendar.timegm(time.strptime(report["date"], "%Y-%m-%dT%H:%M:%SZ"))
    suite.check(before <= written <= time.time() + 1, "date", report["date"])
    suite.check(report["machine"]["hosts"] == [{"name": socket.gethostname(), "ranks": 2}], "machine", report["machine"])
    options = report["options"]
    suite.check((options["iterations"], options["damp"], options["tolerance"], options["one_pass"]) == (77, 0.3, 1e-8, False), options)
    suite.check({"lambda", "atol", "step"}.isdisjoint(options), "options that mean nothing to cgls", options)
    files = {file["option"]: file for file in report["files"]}
    suite.check(set(files) == {"--matrix", "--rhs", "--output", "--history"}, "files", files)
    for option, shape in {"--matrix": [30, 20], "--rhs": [30, 3], "--output": [20, 3], "--history": None}.items():
        path = suite.folder / files[option]["path"]
        suite.check(files[option]["bytes"] == path.stat().st_size and files[option].get("shape") == shape, "file", files[option])
        suite.check(re.fullmatch("[0-9a-f]{16}", files[option]["xxh3"]) and xxh3(path) in (None, files[option]["xxh3"]), "hash of", path)
    with open(suite.folder / "H.csv", newline="", encoding="utf-8") as file:
        text = PAGE.read_text(encoding="utf-8")
        names = re.findall(r"^\| `(\w+)` \|", text[text.index("## The history"):], re.MULTILINE)
        suite.check(next(csv.reader(file)) == names, "docs/reports.md has other columns of the history:", names)


def check_norms(suite, rng):
    """From the file alone one sees what has converged, and how far off the rest is."""
    for number, (solver, damp) in enumerate((("cgls", 0.3), ("lsqr", 0), ("lsmr", 0.3), ("block-cgls", 0.3))):
        for iterations, status in ((100, 0), (3, 3)):
            A, B = write_problem(suite, rng, name="c128" if number % 2 == status % 2 else "f64")
            _, X, report = solve(suite, "--solver", solver, "--damp", damp, "--iterations", iterations,
                                 ranks=2 if (solver, iterations) == ("cgls", 100) else None, status=status)
            if report is None:
                continue
            residual = B - A @ X
            expected = {"rhs_norm": np.linalg.norm(B, axis=0), "x_norm": np.linalg.norm(X, axis=0),
                        "reference_norm": np.linalg.norm(A.conj().T @ B, axis=0),
                        "objective": np.linalg.norm(residual, axis=0)**2 + damp**2 * np.linalg.norm(X, axis=0)**2}
            expected["tested_norm"] = np.linalg.norm(A.conj().T @ residual - damp**2 * X, axis=0) / expected["reference_norm"]
            for key, values in expected.items():
                found = np.array([column[key] for column in report["columns"]])
                suite.close(found, values, 1e-12 * (1 + values), solver, key)
            if solver in ("cgls", "block-cgls"):
                within = [column["tested_norm"] <= report["options"]["tolerance"] for column in report["columns"]]
                suite.check(within == [column["reason"] == "converged" for column in report["columns"]], solver, report["columns"])


def check_relative_lambdas(suite, rng):
    """--lambda-relative means the same at every scale of A and B: powers of two change no digit of X."""
    A, B = write_problem(suite, rng)
    for kind in ("soft", "hard", "half"):
        words = ("--solver", "ista", "--threshold", kind, "--lambda-relative", "0.1", "--iterations", "50", "--tolerance", "0")
        _, X, report = solve(suite, *words, status=3)
        np.save(suite.folder / "A.npy", A * 2.0**14)
        np.save(suite.folder / "B.npy", B * 2.0**-6)
        _, scaled, of_scaled = solve(suite, *words, status=3)
        np.save(suite.folder / "A.npy", A)
        np.save(suite.folder / "B.npy", B)
        if X is None or scaled is None:
            continue
        suite.close(scaled * 2.0**20, X, 1e-12 * np.abs(X).max(), kind, "X at another scale")
        # The misfit has the scale of b², and x that of b/A.
        lambdas, others = (np.array([column["lambda"] for column in of["columns"]]) for of in (report, of_scaled))
        suite.close(others, lambdas * 2.0**(-12 + 20 * {"soft": 1, "hard": 0, "half": 0.5}[kind]), 1e-12 * others, kind, "lambda at another scale")


def check_sparse(suite, rng):
    """λ by the largest gradient, the objective, and what the table shows of both."""
    A, B = write_problem(suite, rng)
    largest = np.abs(A.T @ B).max(axis=0)
    for solver, ranks in (("ista", None), ("fista", 2)):
        run, X, report = solve(suite, "--solver", solver, "--lambda-relative", "0.2", "--iterations", "2000", ranks=ranks)
        if report is None:
            continue
        columns = report["columns"]
        lambdas = np.array([column["lambda"] for column in columns])
        suite.close(lambdas, 0.2 * largest, 1e-13 * largest, solver, "lambda")
        objective = 0.5 * np.linalg.norm(B - A @ X, axis=0)**2 + lambdas * np.abs(X).sum(axis=0)
        suite.close(np.array([column["objective"] for column in columns]), objective, 1e-12 * objective, solver, "objective")
        suite.check([column["nonzeros"] for column in columns] == list((X != 0).sum(axis=0)), solver, "nonzeros", columns)
        suite.check(abs(report["options"]["step"] * np.linalg.norm(A, 2)**2 - 1) < 0.1, "step", report["options"])
        suite.check("lambda is 0.2 of |A^H b|_inf\n" in run.output, "lambda is not told:", run.output)
        lines = run.output.splitlines()
        head = next(line for line in lines if line.startswith("iteration")).split()
        table = [line.split() for line in lines if re.match(r" +\d+ ", line)]
        suite.check(head[4:6] == ["objective", "nonzeros"], "table", head)
        shown = [float(row[4]) for row in table]
        suite.check(solver == "fista" or shown == sorted(shown, reverse=True), "the objective rises:", shown)
        suite.check(abs(shown[-1] - objective.sum()) < 1e-4 * objective.sum(), "objective at the end", shown, objective.sum())
        suite.check(all(0 <= int(row[5]) <= X.size for row in table[:10]), "nonzeros", table)
    # The table's last row that is due is the last iterate here.
    run, X, _ = solve(suite, "--solver", "ista", "--lambda", "1", "--iterations", "32", "--tolerance", "0", ranks=2, status=3)
    if X is not None:
        rows = [line.split() for line in run.output.splitlines() if re.match(r" +32 ", line)]
        suite.check(rows and int(rows[0][5]) == (X != 0).sum(), "nonzeros of the last iterate", rows, (X != 0).sum())
    run, X, _ = solve(suite, "--solver", "fista", "--lambda", str(largest.max() * 1.01))
    suite.check(X is not None and not X.any() and "so that x is 0 in 3 columns" in run.output, "x = 0", run.output)


def check_promotions(suite, rng, full):
    """Files of mixed types are solved in the type that NumPy computes in, and the run says so."""
    types = list(program.TYPES)
    few = [("f32", "f64"), ("f64", "c64"), ("c64", "f64"), ("c64", "c64"), ("c128", "f32")]
    for number, (of_A, of_B) in enumerate(itertools.product(types, types) if full else few):
        A, B = program.random_matrix(rng, (24, 15), of_A), program.random_matrix(rng, (24, 2), of_B)
        np.save(suite.folder / "A.npy", A if number % 2 else np.asfortranarray(A))
        np.save(suite.folder / "B.npy", B)
        common = np.result_type(A, B)
        name = next(key for key, value in program.TYPES.items() if value == common)
        run, X, report = solve(suite, "--tolerance", "1e-5", ranks=2 if (of_A, of_B) == ("f64", "c64") else None)
        if report is None:
            continue
        suite.check(X.dtype == common and report["dtype"] == name, "type", of_A, of_B, X.dtype, report["dtype"])
        exact = np.linalg.lstsq(A.astype(common), B.astype(common), rcond=None)[0]
        suite.close(X, exact, 1e-3 * np.abs(exact).max(), of_A, of_B)
        for path, of in (("A.npy", of_A), ("B.npy", of_B)):
            told = f"{path} has elements of type {of}, which become {name}" in run.output
            suite.check(told == (of != name), "promotion of", path, of, name, run.output)
    np.save(suite.folder / "X.npy", program.random_matrix(rng, (15, 2), "c64"))
    X = np.load(suite.folder / "X.npy")
    A = program.random_matrix(rng, (24, 15), "f64")
    np.save(suite.folder / "A.npy", A)
    run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy", ranks=2)
    if suite.succeeded(run):
        Y = np.load(suite.folder / "Y.npy")
        suite.check(Y.dtype == np.complex128 and "A.npy has elements of type f64, which become c128" in run.output, run.output)
        suite.close(Y, A @ X, 1e-13, "a promoted product")


def check_bad_numbers(suite, rng):
    A, _ = write_problem(suite, rng)
    X = program.random_matrix(rng, (20, 2), "f64")
    for path, matrix, place in (("A.npy", A, (7, 5)), ("X.npy", X, (11, 1))):
        np.save(suite.folder / "A.npy", A)
        np.save(suite.folder / "X.npy", X)
        broken = matrix.copy()
        broken[place] = np.nan
        np.save(suite.folder / path, broken)
        run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy", ranks=2)
        suite.succeeded(run)
        suite.check(f"{path} holds nan at row {place[0]}, column {place[1]}" in run.errors, "place", run.errors)


def compared(suite, *names, ranks=None):
    """The table of these reports: by name the mark, and a cell of each."""
    run = suite.run("report", *names, ranks=ranks)
    rows = {}
    if suite.succeeded(run):
        for line in run.output.splitlines()[1:]:
            mark, name, *cells = [cell.strip() for cell in re.split(r"^([* ]) |  +", line) if cell is not None and cell != ""]
            rows[name] = (mark, cells)
    return rows


def check_table(suite, rng):
    """`gridlops report` has the values of the files, and marks what differs."""
    write_problem(suite, rng)
    reports = {}
    for name, damp in (("a.json", "0.1"), ("b.json", "0.5")):
        run = suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", name, "--damp", damp)
        suite.succeeded(run)
        reports[name] = json.loads((suite.folder / name).read_text(encoding="utf-8"))
    rows = compared(suite, "a.json", "b.json", ranks=2)
    if not rows:
        return
    a, b = reports.values()
    suite.check(rows["damp"] == ("*", ["0.1", "0.5"]), "damp", rows.get("damp"))
    suite.check(rows["size"][1] == ["30 x 20, 3 columns"] * 2 and rows["columns"][1] == ["3 converged"] * 2, "rows", rows)
    suite.check(rows["iterations"][1] == [str(a["iterations"]), str(b["iterations"])], "iterations", rows["iterations"])
    sums = [sum(column["objective"] for column in report["columns"]) for report in (a, b)]
    suite.check(np.allclose([float(cell) for cell in rows["objective"][1]], sums, rtol=1e-3), "objective", rows["objective"], sums)
    suite.check("lambda" not in rows, "a row that neither has", rows)
    # Of a report with hashes and one without sizes are compared, of two with hashes these.
    for name, damp in (("hashed.json", "0.1"), ("other.json", "0.5")):
        suite.succeeded(suite.run("solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--report", name, "--damp", damp, "--hashes"))
    size = f"A.npy ({(suite.folder / 'A.npy').stat().st_size} bytes)"
    rows = compared(suite, "a.json", "hashed.json")
    suite.check(rows["A"] == ("", [size] * 2) and rows["B"][0] == "", "files with hashes and without", rows.get("A"))
    rows = compared(suite, "hashed.json", "other.json")
    suite.check(rows["A"][0] == "" and re.fullmatch(r"A\.npy \([0-9a-f]{16}\)", rows["A"][1][0]), "hashes", rows.get("A"))
    (suite.folder / "bad.json").write_text("{", encoding="utf-8")
    run = suite.run("report", "a.json", "bad.json")
    suite.check(run.status == 65 and "bad.json is not JSON" in run.errors, "a file that is not JSON", run.status, run.errors)


def test(suite, full):
    rng = np.random.default_rng(20)
    if program.jsonschema is None:
        print("without python3-jsonschema the schema is not tried")
    else:
        program.jsonschema.Draft202012Validator.check_schema(program.schema().schema)
    check_page(suite)
    check_record(suite, rng)
    check_norms(suite, rng)
    check_relative_lambdas(suite, rng)
    check_sparse(suite, rng)
    check_promotions(suite, rng, full)
    check_bad_numbers(suite, rng)
    check_table(suite, rng)


if __name__ == "__main__":
    program.main(test, __doc__)
